#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/coord/read_procedure.hpp"
#include "core/coord/row_procedure.hpp"
#include "holdfast/coordination.hpp"

namespace holdfast {

inline constexpr std::size_t basket_most = 99;  ///< of a transaction's 100 rows, one is the reservation's
/// One that is past its expiry can no longer be confirmed, whether its goods are back already or not.
[[nodiscard]] Reservation as_of(Reservation reservation, WallTime now);
[[nodiscard]] Result<void> check_basket(const Basket& basket);
[[nodiscard]] Value value_of(const Basket& basket);
/// Nothing where it is no basket.
[[nodiscard]] std::optional<Basket> basket_from(const Value& value);

/// What the row says; nothing where it is damaged.
[[nodiscard]] std::optional<Reservation> reservation_in(const Row& row);

/// Sets goods aside, all or none, never below zero: a transaction over the reservation and its SKUs, so it needs a
/// store with transactions. Refused where one SKU has too few (Code::exhausted), which leaves no trace, and where the
/// id's reservation was cancelled or has expired (Code::denied). A repeat of what is held or confirmed is told its
/// state.
///
/// `quota_of`: the journal whose quota it is. Only that journal's repeat is one: what another made, or nobody that is
/// a journal, is a mismatch, so that no two promise the same goods.
class Reserve final : public RowProcedure<Reservation> {
 public:
  Reserve(ReserveOptions options, Instant deadline, Random& random, std::string quota_of = {});

  [[nodiscard]] static std::string row_key(std::string_view id);
  [[nodiscard]] static std::string stock_key(std::string_view sku);

 private:
  [[nodiscard]] Plan plan(Now now) override;

  const ReserveOptions options_;
  const std::string quota_of_;
};

struct DrawOptions {
  std::string id;                                  ///< of what is drawn
  std::string from;                                ///< the reservation that it is part of
  Basket basket;                                   ///< 1 to 99 SKUs, all or none
  Duration remember = std::chrono::hours(24 * 7);  ///< how long the id is known, at least
};

/// Sells part of what a reservation holds back: it becomes a reservation of its own, confirmed at once, and what is
/// left stays held. One transaction over both, once for each id, whichever reservation it was drawn from. Refused
/// where too little is left, or where the reservation has ended; from its expiry on it may end at any time, and until
/// it does it can be drawn on.
class Draw final : public RowProcedure<Reservation> {
 public:
  Draw(DrawOptions options, Instant deadline, Random& random);

 private:
  [[nodiscard]] Plan plan(Now now) override;

  const DrawOptions options_;
};

/// A reservation as it is; refused where there is none. Reads only.
class ReadReservation final : public RowProcedure<Reservation> {
 public:
  ReadReservation(std::string_view id, Instant deadline, Random& random);

 private:
  [[nodiscard]] Plan plan(Now now) override;

  const std::string id_;
};

/// Ends a reservation: confirmed, cancelled, or returned because it expired. Each once, whatever is repeated; what
/// has ended in one way is refused in another. Confirming is refused from the expiry on, by this process's clock:
/// whoever returns it waits for the skew besides.
class EndReservation final : public RowProcedure<Reservation> {
 public:
  /// `basket` as the reservation's row says: a reservation is read first (or found through the index). What was drawn
  /// from it since is left alone. The quota of a journal is confirmed or cancelled by that journal alone
  /// (`quota_of`): it may have sold of it what the store has not heard of yet.
  EndReservation(const Reservation& reservation, Reservation::State into, Duration skew, Instant deadline,
                 Random& random, std::string quota_of = {});

 private:
  [[nodiscard]] Plan plan(Now now) override;

  const Reservation reservation_;
  const Reservation::State into_;
  const Duration skew_;
  const std::string quota_of_;
};

/// Returns the goods of reservations that have expired, as the index tells them: the result is how many. At most
/// `most`, earliest first. Those that cannot be returned hold up no others; where nothing else was returned, it is
/// told why not.
class ReturnExpired final : public ReadProcedure<std::size_t> {
 public:
  ReturnExpired(Duration skew, std::size_t most, Instant deadline, Random& random);

  [[nodiscard]] std::optional<Ask> next(Now now) override;
  void on(Answer answer, Now now) override;

 private:
  [[nodiscard]] Ask read(Now now) override;
  void took(Answer answer, Now now) override;

  const Duration skew_;
  const std::size_t most_;
  Random& random_;
  bool has_looked_ = false;
  std::string page_;                // the next one; empty: there is none
  std::vector<Reservation> found_;  // the next to be returned last
  std::optional<EndReservation> returning_;
  std::size_t returned_ = 0;
  std::optional<Failure> failure_;  // of the latest that was not
};

}  // namespace holdfast
