#pragma once
#include <boost/json/object.hpp>

#include "core/coord/queue.hpp"
#include "serve/desk.hpp"

namespace holdfast::serve {

[[nodiscard]] boost::json::object message_json(const Message& message);

/// Nobody has it: due again at once. Where that fails, its lease runs out; where it has, nothing happens (S2).
void give_back(Desk& desk, const Receipt& receipt, std::function<void()> done = {});

/// Waits for messages, and hands them over. Poison on the way is dealt with as the caller has said.
void receive(Desk& desk, const CallPtr& call);

}  // namespace holdfast::serve
