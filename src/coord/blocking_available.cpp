// holdfast::AvailableCoordinator: the available mode for callers that wait.
#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>

#include "coord/available.hpp"
#include "coord/blocking.hpp"
#include "coord/engine.hpp"
#include "core/coord/limits.hpp"
#include "core/coord/names.hpp"
#include "core/coord/stock.hpp"
#include "holdfast/available.hpp"
#include "runtime/shortage.hpp"
#include "store/open.hpp"
#include "store/place.hpp"

namespace holdfast {

namespace {

using coord::Engine;
using coord::Journal;
using coord::refuse;

/// A pass comes to its caller step by step: what was rejected is made good for by his own code, on his own thread.
struct DueNow {
  Intent rejected;
  bool is_repeat = false;
};
using PassStep = std::variant<ReconcileReport, DueNow>;
/// Nobody can end his code, so the pass waits for it.
constexpr Duration no_limit = std::chrono::hours(24 * 365);

/// What lives on the loop. The journal is used there only.
struct Shop {
  Shop(std::unique_ptr<Journal> opened, Store& store, std::string its_url, Loop& its_loop,
       coord::AvailableOptions its_options)
      : journal(std::move(opened)),
        available(*journal, store, its_loop, its_options),
        url(std::move(its_url)),
        loop(its_loop),
        options(std::move(its_options)) {}

  /// Where the table's file is not there. A store that was never open cannot tell that from one that is to be made.
  template <class T, class Answer>
  bool accepts_without_store(const Wish& wish, const std::string& ticket, const Answer& answer) {
    const auto why = store::absent_file(url);
    if (!why) return false;
    auto accepted = coord::accept(*journal, wish, ticket, *why, options, loop.now(), loop.random());
    answer(accepted ? Ended<Accepted<T>>(*std::move(accepted)) : tl::unexpected(std::move(accepted.error())));
    return true;
  }

  const std::unique_ptr<Journal> journal;
  coord::Available available;
  const std::string url;
  Loop& loop;
  const coord::AvailableOptions options;
  bool is_reconciling = false;
  std::function<void(Ended<PassStep>)> tell;    // the pass's caller, who waits for its next step
  std::function<void(Result<void>)> made_good;  // of the compensation that he runs
};

/// What the caller's own code comes to: what it throws must not end the loop.
template <class T, class Call>
Result<T> caught(const std::string& what, const Call& call) {
  try {
    return call();
  } catch (const std::exception& thrown) {
    return tl::unexpected(
        runtime::shortage(thrown).value_or(Error(Code::internal, what + " threw: " + thrown.what())));
  }
}

Judge on_the_loop(Merge merge) {
  return [merge = std::move(merge)](const DecideWish& ours, const Decided& decided) {
    return caught<bool>("the merge", [&] { return merge(ours, decided); });
  };
}

}  // namespace

class AvailableCoordinator::Impl {
 public:
  Impl(std::shared_ptr<Engine> engine, Shop* shop, AvailableMode mode)
      : engine_(std::move(engine)), shop_(shop), mode_(std::move(mode)) {}
  ~Impl() { engine_->stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  template <class T, class Ask>
  Ended<T> ask(Ask ask) {
    return engine_->call<T>([this, ask](std::function<void(Ended<T>)> answer) { ask(*shop_, std::move(answer)); });
  }
  /// Of the journal alone.
  template <class T, class Ask>
  Ended<T> look(Ask look) {
    return ask<T>([look](Shop& shop, auto answer) { answer(look(*shop.journal)); });
  }
  [[nodiscard]] const AvailableMode& mode() const { return mode_; }

 private:
  const std::shared_ptr<Engine> engine_;
  Shop* const shop_;  // lives on the loop
  const AvailableMode mode_;
};

AvailableCoordinator::AvailableCoordinator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AvailableCoordinator::~AvailableCoordinator() = default;

Result<std::unique_ptr<AvailableCoordinator>> AvailableCoordinator::open(CoordinatorOptions options,
                                                                         AvailableMode mode) {
  if (auto good = coord::complete(options); !good) return tl::unexpected(good.error());
  if (mode.max_provisional < 1 || !coord::is_within(mode.max_age, coord::waiting)) {
    return fail(Code::usage,
                "At least one ticket must be allowed, and their age must be from a millisecond to a year.");
  }
  Shop* shop = nullptr;
  // A journal is one of a table that was there: another one in its place would be empty.
  std::error_code ignored;
  const bool makes =
      options.make_table && store::may_create(options.store) && !std::filesystem::exists(mode.journal, ignored);
  auto engine =
      Engine::start(options.store, makes ? Engine::First::make_table : Engine::First::nothing, options.patience,
                    [&](Store& store, Loop& loop) -> Result<std::shared_ptr<void>> {
                      coord::JournalOptions file;
                      file.path = mode.journal;
                      file.store = options.store;
                      file.place = store::place_of(options.store);
                      auto journal = Journal::open(std::move(file));
                      if (!journal) return tl::unexpected(journal.error());
                      auto made = std::make_shared<Shop>(
                          *std::move(journal), store, options.store, loop,
                          coord::AvailableOptions{mode.max_provisional, mode.max_age, options.patience, options.id});
                      shop = made.get();
                      return made;
                    });
  if (!engine) return tl::unexpected(engine.error());
  return std::unique_ptr<AvailableCoordinator>(
      new AvailableCoordinator(std::make_unique<Impl>(*std::move(engine), shop, std::move(mode))));
}

Ended<Accepted<Decided>> AvailableCoordinator::decide(std::string_view key, Value proposal, std::string_view ticket) {
  return impl_->ask<Accepted<Decided>>([key = std::string(key), proposal = std::move(proposal),
                                        ticket = std::string(ticket)](Shop& shop, auto answer) {
    const DecideWish wish{key, proposal, shop.options.proposer};
    if (shop.accepts_without_store<Decided>(wish, ticket, answer)) return;
    shop.available.decide(key, proposal, ticket, std::move(answer));
  });
}
Ended<Accepted<Added>> AvailableCoordinator::add(AddWish wish, std::string_view ticket) {
  return impl_->ask<Accepted<Added>>([wish = std::move(wish), ticket = std::string(ticket)](Shop& shop, auto answer) {
    if (shop.accepts_without_store<Added>(wish, ticket, answer)) return;
    shop.available.add(wish, ticket, std::move(answer));
  });
}
Ended<Accepted<Sent>> AvailableCoordinator::send(SendWish wish, std::string_view ticket) {
  return impl_->ask<Accepted<Sent>>([wish = std::move(wish), ticket = std::string(ticket)](Shop& shop, auto answer) {
    if (shop.accepts_without_store<Sent>(wish, ticket, answer)) return;
    shop.available.send(wish, ticket, std::move(answer));
  });
}
Ended<Provisional> AvailableCoordinator::sell(Basket basket, std::string_view ticket) {
  if (auto good = check_basket(basket); !good) return refuse(good.error());
  return impl_->ask<Provisional>([basket = std::move(basket), ticket = std::string(ticket)](Shop& shop, auto answer) {
    answer(shop.available.sell(basket, ticket));
  });
}

Ended<Quota> AvailableCoordinator::set_aside(std::string_view id, Basket basket, Duration ttl) {
  if (auto good = coord::check_name("A quota's id", id); !good) return refuse(good.error());
  if (auto good = check_basket(basket); !good) return refuse(good.error());
  if (!coord::is_within(ttl, coord::set_aside)) {
    return refuse(Error(Code::usage, "Goods are set aside for a second at least, and for 366 days at most."));
  }
  if (auto good = coord::check_set_aside(ttl, impl_->mode().max_age); !good) return refuse(good.error());
  return impl_->ask<Quota>([id = std::string(id), basket = std::move(basket), ttl](Shop& shop, auto answer) {
    if (auto why = store::absent_file(shop.url)) {
      return answer(tl::unexpected(Failure{Failure::Kind::unavailable, Error(Code::unavailable, *std::move(why))}));
    }
    shop.available.set_aside(id, basket, ttl, std::move(answer));
  });
}
Ended<bool> AvailableCoordinator::give_back(std::string_view id) {
  return impl_->look<bool>([id = std::string(id)](Journal& journal) { return journal.close_quota(id); });
}

Ended<ReconcileReport> AvailableCoordinator::reconcile() {
  const AvailableMode& mode = impl_->mode();
  Ended<PassStep> step = impl_->ask<PassStep>([&mode](Shop& shop, auto answer) {
    if (std::exchange(shop.is_reconciling, true)) {
      return answer(tl::unexpected(Failure{
          Failure::Kind::busy, Error(Code::unavailable, "Another thread reconciles this journal just now.")}));
    }
    coord::ReconcileOptions options;
    options.merge = on_the_loop(mode.merge);
    if (mode.compensate) {
      options.compensate = [&shop](const Intent& rejected, bool is_repeat, auto done) {
        shop.made_good = std::move(done);
        std::exchange(shop.tell, {})(PassStep(DueNow{rejected, is_repeat}));
      };
    }
    options.compensation_limit = no_limit;
    shop.tell = std::move(answer);
    shop.available.reconcile(std::move(options), [&shop](Ended<ReconcileReport> report) {
      shop.is_reconciling = false;
      std::exchange(shop.tell,
                    {})(std::move(report).map([](ReconcileReport all) { return PassStep(std::move(all)); }));
    });
  });
  while (step && std::holds_alternative<DueNow>(*step)) {
    const DueNow due = std::get<DueNow>(*std::move(step));
    const Result<void> how =
        caught<void>("the compensation", [&] { return mode.compensate(due.rejected, due.is_repeat); });
    step = impl_->ask<PassStep>([how](Shop& shop, auto answer) {
      shop.tell = std::move(answer);
      std::exchange(shop.made_good, {})(how);
    });
  }
  return std::move(step).map([](PassStep last) { return std::get<ReconcileReport>(std::move(last)); });
}

Ended<std::optional<Intent>> AvailableCoordinator::find(std::string_view ticket) {
  return impl_->look<std::optional<Intent>>(
      [ticket = std::string(ticket)](Journal& journal) { return journal.find(ticket); });
}

}  // namespace holdfast
