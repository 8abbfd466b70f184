#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/coord/stock.hpp"
#include "sim/coord/scene.hpp"
#include "sim/history/calls.hpp"

namespace holdfast::sim::coordinated {

/// Goods: what came in is available, set aside or sold, and nothing else; a reservation ends once, and comes back by
/// itself when its time is over.
class Stocks final : public Scene {
 public:
  Stocks(Stage& stage, std::size_t count) : Scene(stage), count_(count) {}
  void act(Node& node) override;
  void wrote(const Write& write) override;
  [[nodiscard]] std::string left() override;
  void judge() override;

  [[nodiscard]] std::string sku(std::size_t number) const { return "s" + std::to_string(number % count_); }
  /// In which state a reservation is; nothing: there is none.
  [[nodiscard]] std::optional<Reservation::State> state_of(const std::string& id) const;

 private:
  using State = Reservation::State;
  struct Call;
  void deliver(Node& node);
  void reserve(Node& node);
  void end(Node& node, const std::string& id);
  void end(const std::shared_ptr<Call>& call, State into);
  void return_expired(Node& node);
  void reserved(const std::shared_ptr<Call>& call, const Ended<Reservation>& ended);
  void ended(const std::shared_ptr<Call>& call, State into, const Ended<Reservation>& ended);
  void look_at_goods(const std::string& sku);
  void reservation_left(const Write::Left& left, const Origin& origin);
  StockCall& note(const Call& call);
  [[nodiscard]] Duration patience(Node& node) const;

  const std::size_t count_;
  std::size_t made_ = 0;
  std::vector<std::string> recent_;                // reservations
  std::map<std::string, Series> available_;        // by SKU
  std::map<std::string, std::int64_t> delivered_;  // the same
  std::map<std::string, Reservation> known_;       // as they are
  std::map<std::string, std::int64_t> set_aside_;  // by SKU: held or sold
  StockCalls history_;
};

}  // namespace holdfast::sim::coordinated
