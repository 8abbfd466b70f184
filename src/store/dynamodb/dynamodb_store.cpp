#include "store/dynamodb/dynamodb_store.hpp"

#include <chrono>
#include <utility>

#include "store/desk.hpp"
#include "store/diagnosis.hpp"
#include "store/dynamodb/context.hpp"
#include "store/dynamodb/diagnose.hpp"
#include "store/dynamodb/stream_feed.hpp"
#include "store/dynamodb/write_order.hpp"
#include "store/request_store.hpp"

namespace holdfast::store::dynamodb {

namespace {

/// The client ends its calls at their deadline, and knows better than we what became of them.
constexpr Duration grace = std::chrono::milliseconds(100);

class DynamoDbStore final : public RequestStore, public Diagnosable {
 public:
  DynamoDbStore(TableOptions options, std::unique_ptr<Caller> caller, Loop& loop, std::unique_ptr<Caller> streams)
      : RequestStore(loop), context_(std::make_shared<Context>(loop, std::move(options), std::move(caller))) {
    if (streams) feed_ = std::make_unique<StreamFeed>(context_, std::move(streams));
  }

  ~DynamoDbStore() override {
    context_->closed = true;
    feed_.reset();
    context_->caller.reset();
    self_->store = nullptr;
  }

  void changes(ChangeListener listener) override {
    if (feed_) feed_->listen(std::move(listener));
  }

  [[nodiscard]] Capabilities capabilities() const override {
    const TableOptions& options = context_->options;
    const std::string& where = options.endpoint.empty() ? options.region : options.endpoint;
    return {.name = "dynamodb (" + options.table + (where.empty() ? "" : ", " + where) + ")",
            .transactions = context_->server.transactions != Server::Does::no,
            .changes = feed_ && context_->server.stream == Server::Does::yes,
            .changes_need_reader = true,
            .no_changes = feed_ ? feed_->no_feed() : "",
            .index_is_consistent = false,
            .returns_row_on_conflict = true,  // read afterwards, where the server does not show it
            .has_doubles = false};
  }

  [[nodiscard]] ConsumedByKind consumed() const override { return context_->caller->consumed(); }

  void diagnose(Instant deadline, Handler<Diagnosis> handler) override {
    examine(context_, feed_ ? &feed_->caller() : nullptr, deadline, std::move(handler));
  }
  void update_apart(Update update, Instant deadline, Handler<RowReply> handler) override {
    run(context_, update, deadline,
        [handler = std::move(handler)](Answer answer) { handler(std::get<RowReply>(std::move(answer))); });
  }
  void walk(std::string from, Instant deadline, Handler<Reply<Walked>> handler) override {
    dynamodb::walk(context_, from, deadline, std::move(handler));
  }

 protected:
  void submit(std::shared_ptr<Operation> operation) override {
    desk_.add(operation, operation->deadline + grace, [this, operation] { expire(operation); });
    if (order_.enter(operation)) start(operation);
  }

  void shut(std::function<void()> done) override {
    if (feed_) feed_->listen(nullptr);
    context_->closed = true;
    loop().post([self = self_, done = std::move(done)] {
      if (self->store != nullptr) self->store->answer_all(self);
      done();
    });
  }

 private:
  struct Self {
    DynamoDbStore* store;  // null once it is gone
  };
  using SelfPtr = std::shared_ptr<Self>;

  void start(const std::shared_ptr<Operation>& operation) {
    if (!operation->begin()) return go_on(operation);  // its deadline passed while it waited for others
    std::visit(
        [&](const auto& request) {
          run(context_, request, operation->deadline,
              [this, operation](Answer answer) { finish(operation, std::move(answer)); });
        },
        operation->request);
  }

  /// Those that waited for it may start.
  void go_on(const std::shared_ptr<Operation>& operation) {
    for (const auto& ready : order_.leave(operation)) start(ready);
  }

  void finish(const std::shared_ptr<Operation>& operation, Answer answer) {
    go_on(operation);
    desk_.settle(operation, std::move(answer));  // last: the handler may destroy the store
  }

  void expire(const std::shared_ptr<Operation>& operation) {
    if (operation->withdraw()) {
      // Its place in the order stays, for those behind it: it leaves when its turn comes.
      const Error error(Code::unavailable, "it waited for an earlier write to the same row until its deadline");
      return desk_.settle(operation, operation->failure(Outcome::throttled, error));
    }
    const Error error(Code::unavailable, "no answer within its deadline from table " + context_->options.table +
                                             ", which may still do it");
    finish(operation, operation->failure(Outcome::unknown, error));
  }

  void answer_all(const SelfPtr& self) {
    for (const auto& operation : desk_.all()) {
      const bool begun = !operation->withdraw();
      const Error error(Code::unavailable, begun ? "the store was closed before it answered; it may have been done"
                                                 : "the store was closed before it was begun");
      desk_.settle(operation, operation->failure(begun ? Outcome::unknown : Outcome::throttled, error));
      if (self->store == nullptr) return;  // a handler destroyed it
    }
  }

  const ContextPtr context_;
  std::unique_ptr<StreamFeed> feed_;  // null: nobody to ask
  Desk desk_{loop()};
  WriteOrder order_;
  // Tasks on the loop find the store through this, and nothing once it is gone.
  SelfPtr self_ = std::make_shared<Self>(Self{this});
};

}  // namespace

std::unique_ptr<Store> make_dynamodb_store(TableOptions options, std::unique_ptr<Caller> caller, Loop& loop,
                                           std::unique_ptr<Caller> streams) {
  return std::make_unique<DynamoDbStore>(std::move(options), std::move(caller), loop, std::move(streams));
}

}  // namespace holdfast::store::dynamodb
