#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/service.hpp"
#include "store/memory/memory_store.hpp"
#include "support/asked.hpp"
#include "support/faulty_store.hpp"
#include "support/virtual_loop.hpp"

namespace holdfast::serve {

/// One server: a store of its own on the common table.
struct Server {
  Server(const std::shared_ptr<store::MemoryTable>& table, Loop& loop, const ServiceOptions& options)
      : store(store::make_memory_store(table, loop), loop),
        service(std::make_unique<Service>(store, loop, options)) {}
  test::FaultyStore store;
  std::unique_ptr<Service> service;
};

class ServiceTest : public testing::Test {
 protected:
  Server& start(const ServiceOptions& options = {.id = "here", .version = "1"}) {
    servers_.push_back(std::make_unique<Server>(table_, loop_, options));
    return *servers_.back();
  }
  static runtime::HttpIncoming request(const std::string& method, const std::string& target,
                                       const std::string& body = {}) {
    runtime::HttpIncoming request;
    request.method = method;
    request.target = target;
    request.body = body;
    request.headers = {{"Host", "localhost:7420"}, {"Content-Type", "application/json"}};
    return request;
  }
  test::Asked begin(Server& at, const std::string& target, const std::string& body = "{}") {
    test::Asked asked(request("POST", target, body));
    at.service->serve(asked.exchange());
    return asked;
  }
  test::Asked post(Server& at, const std::string& target, const std::string& body = "{}") {
    test::Asked asked = begin(at, target, body);
    EXPECT_TRUE(until([&] { return asked.is_answered(); })) << target;
    return asked;
  }
  test::Asked get(Server& at, const std::string& target) {
    test::Asked asked(request("GET", target));
    at.service->serve(asked.exchange());
    EXPECT_TRUE(until([&] { return asked.is_answered(); })) << target;
    return asked;
  }
  bool until(const std::function<bool()>& condition, Duration limit = std::chrono::minutes(10)) {
    return loop_.advance_until(condition, limit);
  }
  /// Whether somebody else can have the task within this time.
  bool is_free(Server& at, const std::string& task, const std::string& within = "0") {
    const test::Asked asked =
        post(at, "/v1/tasks/" + task + "/acquire", R"({"hold_for":"1s","wait":")" + within + "\"}");
    if (asked.status() == 201) post(at, "/v1/guards/" + asked.text("guard") + "/release");
    return asked.status() == 201;
  }

  test::VirtualLoop loop_;
  std::shared_ptr<store::MemoryTable> table_ = std::make_shared<store::MemoryTable>();
  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace holdfast::serve
