#pragma once
#include <functional>
#include <memory>

namespace holdfast::runtime {

class AsioLoop;
class Child;

/// The end of a child, as a call on a loop: once, on its thread, never inside the constructor. Child::wait() then
/// tells how. Destroyed earlier: no call.
class ExitWatch {
 public:
  ExitWatch(AsioLoop& loop, const Child& child, std::function<void()> on_exit);
  ~ExitWatch();
  ExitWatch(const ExitWatch&) = delete;
  ExitWatch& operator=(const ExitWatch&) = delete;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace holdfast::runtime
