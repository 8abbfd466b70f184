#pragma once
#include <functional>
#include <string>

#include "store/diagnosis.hpp"
#include "store/dynamodb/context.hpp"

namespace holdfast::store::dynamodb {

/// Looks at credentials, table, index, TTL and stream, tries each call in a way that changes nothing, and compares
/// the clocks. `streams` calls the streams' endpoint; null: there is none. The context's store must outlive it, or be
/// closed before its end.
void examine(const ContextPtr& context, Caller* streams, Instant deadline, std::function<void(Diagnosis)> done);

/// Some of all rows, by Scan.
void walk(const ContextPtr& context, const std::string& from, Instant deadline, Handler<Reply<Walked>> handler);

}  // namespace holdfast::store::dynamodb
