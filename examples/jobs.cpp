// Jobs that exactly one process runs at a time, and no WebSocket anywhere: here each counts, goes on where its last
// owner had got to, and stops when its lease does. A table of their own: a Fleet takes every row that it finds.
//
//     holdfast conn add job-1 --store sqlite:jobs.db --url ws://job/     (a row has a URL; here nobody looks at it)
//     example_jobs sqlite:jobs.db                                        as often as you like
#include <atomic>
#include <holdfast/holdfast.hpp>
#include <iostream>

class Job : public holdfast::Resource {
 public:
  explicit Job(holdfast::Loop& loop) : loop_(loop) {}
  ~Job() override { loop_.cancel(timer_); }
  void start(holdfast::Grant grant) override {
    grant_ = std::move(grant);
    done_ = grant_.row.number(holdfast::attribute::last_seq);
    work();
  }
  void stop(holdfast::LossReason, holdfast::Instant, std::function<void()> stopped) override {
    loop_.cancel(timer_);
    stopped();
  }
  holdfast::Progress progress() const override { return {.last_seq = done_, .status = "counting"}; }

 private:
  void work() {
    if (!grant_.guard->holds(loop_.instant())) return;  // before every effect
    std::cout << grant_.id.value + " " + std::to_string(++done_) + "\n" << std::flush;
    timer_ = loop_.call_after(std::chrono::milliseconds(20), [this] { work(); });
  }
  holdfast::Loop& loop_;
  holdfast::Grant grant_;
  holdfast::TimerId timer_ = 0;
  std::atomic<std::int64_t> done_ = 0;
};

int main(int argc, char** argv) {
  holdfast::Fleet fleet(
      {.store = argc > 1 ? argv[1] : "sqlite:jobs.db", .lease = {.lease = std::chrono::seconds(3)}});
  fleet.holds([](const holdfast::Row&, holdfast::Loop& loop) { return std::make_unique<Job>(loop); });
  const auto report = fleet.run();
  if (!report) std::cerr << "jobs: " << report.error().detail << '\n';
  return report ? 0 : 1;
}
