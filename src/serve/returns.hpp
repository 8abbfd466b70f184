#pragma once
#include <memory>

#include "serve/desk.hpp"

namespace holdfast::serve {

/// Goods whose reservation has expired come back by themselves: now and then this looks for such reservations,
/// whoever made them. Any number of processes may; each reservation ends once.
class Returns {
 public:
  explicit Returns(Desk& desk) : desk_(desk) { plan(); }
  ~Returns();
  Returns(const Returns&) = delete;
  Returns& operator=(const Returns&) = delete;

 private:
  void plan();
  void look();

  Desk& desk_;
  TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace holdfast::serve
