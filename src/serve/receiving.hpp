#pragma once
#include <boost/json/object.hpp>

#include "core/coord/queue.hpp"
#include "serve/desk.hpp"

namespace holdfast::serve {

[[nodiscard]] boost::json::object message_json(const Message& message);

/// Nobody has it: due again at once. Where that fails, its lease runs out; where it has, nothing happens (S2).
/// What nobody was given does not count as received.
enum class Given { to_its_caller, to_nobody };
void give_back(Desk& desk, const Receipt& receipt, Given given, std::function<void()> done = {});

/// Waits for messages, and hands them over. Poison on the way is dealt with as the caller has said.
void receive(Desk& desk, const CallPtr& call);

}  // namespace holdfast::serve
