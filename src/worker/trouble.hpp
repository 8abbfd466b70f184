#pragma once
#include <functional>
#include <string>

namespace holdfast::worker {

/// Why a held connection does not flow, for the operator's log.
struct Trouble {
  std::string connection;
  bool parked = false;  ///< else it is tried again after a backoff
  std::string reason;   ///< one sentence
};

/// Called on the loop that the connection lives on.
using TroubleListener = std::function<void(Trouble)>;

}  // namespace holdfast::worker
