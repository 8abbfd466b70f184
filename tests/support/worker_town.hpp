#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/lease.hpp"
#include "runtime/log.hpp"
#include "store/memory/memory_store.hpp"
#include "support/fake_resource.hpp"
#include "support/faulty_store.hpp"
#include "support/virtual_nodes.hpp"
#include "worker/worker.hpp"

namespace holdfast::test {

/// Several workers on one table in memory, in virtual time, holding fake resources in one world.
class Town {
 public:
  struct Citizen {
    Town& town;
    std::string name;
    VirtualLoop& loop;
    FaultyStore store;
    std::vector<std::string> log;
    runtime::Log speaker;
    std::map<std::string, FakeResource::Manner> manners;  // by connection
    std::optional<Error> sink_failure;
    bool ended = false;
    std::unique_ptr<worker::Worker> worker;

    /// The process dies: nothing is given back, nothing more is done.
    void crash() { worker.reset(); }
    void pause() { town.nodes.pause(loop); }
    void resume() { town.nodes.resume(loop); }
    [[nodiscard]] std::size_t said(const std::string& words) const {
      std::size_t count = 0;
      for (const std::string& line : log) count += line.find(words) != std::string::npos ? 1 : 0;
      return count;
    }
  };

  explicit Town(Duration lease = std::chrono::seconds(3)) {
    LeaseOptions options;
    options.lease = lease;
    terms = make_terms(options).value();
  }

  Citizen& join(const std::string& name, std::size_t capacity = 1000,
                const std::function<void(worker::WorkerOptions&)>& tune = {}, VirtualLoop* home = nullptr,
                VirtualLoop* second_home = nullptr) {
    VirtualLoop& loop = nodes.add();
    newest_loop = &loop;
    citizens_.push_back(std::unique_ptr<Citizen>(new Citizen{*this,
                                                             name,
                                                             loop,
                                                             FaultyStore(store::make_memory_store(table, loop), loop),
                                                             {},
                                                             runtime::Log::nowhere(),
                                                             {},
                                                             {},
                                                             false,
                                                             {}}));
    Citizen& citizen = *citizens_.back();
    citizen.speaker = runtime::Log(runtime::LogLevel::info, [&citizen](runtime::LogLevel, std::string_view line) {
      citizen.log.emplace_back(line);
    });
    worker::WorkerOptions options;
    options.name = name;
    options.incarnation = "0000000" + std::to_string(citizens_.size());
    options.terms = terms;
    options.max_connections = capacity;
    if (tune) tune(options);
    std::vector<Loop*> homes{home != nullptr ? home : &loop};  // where its resources live
    if (second_home != nullptr) homes.push_back(second_home);
    citizen.store.changes_need_reader = changes_need_reader || options.pokes != nullptr;
    const std::string actor = options.name + "#" + options.incarnation;
    citizen.worker = std::make_unique<worker::Worker>(
        std::move(options), loop, std::move(homes), citizen.store,
        [&citizen, actor](const Row& row, Loop& loop_of_it) -> std::unique_ptr<Resource> {
          if (row.text(attribute::url) == "unusable") return nullptr;
          const std::string id = row.key.substr(key_prefix::connection.size());
          return std::make_unique<FakeResource>(citizen.town.world, actor, loop_of_it, citizen.manners[id]);
        },
        citizen.speaker, [&citizen] { citizen.ended = true; });
    citizen.worker->start();
    return citizen;
  }

  // What people do to the table.

  void add(const std::string& id, std::int64_t last_seq = 0) {
    Update update;
    update.key = key(id);
    update.condition = Condition::row_missing();
    update.changes = {Change::set(attribute::desired_state, state::started), Change::set(attribute::expires_at, 0),
                      Change::set(attribute::url, "ws://example/" + id), Change::set(attribute::last_seq, last_seq)};
    execute(update);
  }
  void add_many(int count) {
    for (int i = 0; i < count; ++i) add("c" + std::to_string(i));
  }
  void edit(const std::string& id, std::string_view name, Value value) {
    execute({key(id), {Change::set(name, std::move(value))}, Condition::row_exists()});
  }
  [[nodiscard]] Row row(const std::string& id) { return row_at(key(id)); }
  [[nodiscard]] Row row_at(const std::string& row_key) {
    const auto answer = table->execute(store::Get{row_key}, WallTime{});
    return std::get<RowReply>(answer).value.value_or(Row{});
  }

  /// Until every connection c0…c(count-1) was seen at work within the last 30 ms, by somebody of the given name
  /// where there is one.
  [[nodiscard]] bool all_flow(int count, Duration limit, const std::string& name = {}) {
    return nodes.advance_until(
        [&] {
          for (int i = 0; i < count; ++i) {
            const std::string id = "c" + std::to_string(i);
            if (world.last_seen(id) + std::chrono::milliseconds(30) < nodes.now()) return false;
            if (!name.empty() && !world.actor(id).starts_with(name + "#")) return false;
          }
          return true;
        },
        limit);
  }
  [[nodiscard]] std::size_t owned_by(const std::string& name, int count) {
    std::size_t owned = 0;
    for (int i = 0; i < count; ++i) {
      owned += row("c" + std::to_string(i)).text(attribute::owner).starts_with(name + "#") ? 1 : 0;
    }
    return owned;
  }

  VirtualNodes nodes;
  bool changes_need_reader = false;    // of who joins from now on
  VirtualLoop* newest_loop = nullptr;  // of who joins, or joined last
  std::shared_ptr<store::MemoryTable> table = std::make_shared<store::MemoryTable>();
  World world;
  LeaseTerms terms;

 private:
  static std::string key(const std::string& id) { return std::string(key_prefix::connection) + id; }
  void execute(const Update& update) { (void)table->execute(update, WallTime{}); }

  std::vector<std::unique_ptr<Citizen>> citizens_;
};

}  // namespace holdfast::test
