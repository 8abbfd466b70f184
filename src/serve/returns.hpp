#pragma once
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "serve/desk.hpp"

namespace holdfast::serve {

/// Goods whose reservation has expired come back by themselves: now and then this looks for such reservations,
/// whoever made them. Any number of processes may; each reservation ends once.
class Returns {
 public:
  /// `complain`: told of each change, not of each look.
  Returns(Desk& desk, std::function<void(std::string_view)> complain) : desk_(desk), complain_(std::move(complain)) {
    plan();
  }
  ~Returns();
  Returns(const Returns&) = delete;
  Returns& operator=(const Returns&) = delete;

 private:
  void plan();
  void look();
  void looked(const Ended<std::size_t>& returned);

  Desk& desk_;
  const std::function<void(std::string_view)> complain_;
  bool is_failing_ = false;
  TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace holdfast::serve
