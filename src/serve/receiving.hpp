#pragma once
#include <boost/json/object.hpp>

#include "core/coord/queue.hpp"
#include "serve/desk.hpp"

namespace holdfast::serve {

[[nodiscard]] boost::json::object message_json(const Message& message);

/// Waits for messages, and hands them over. Poison on the way is dealt with as the caller has said.
void receive(Desk& desk, const CallPtr& call);

}  // namespace holdfast::serve
