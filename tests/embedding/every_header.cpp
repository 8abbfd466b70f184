// Every public header, and its plain structures as a program would fill them in: by name, with all warnings on.
#include <holdfast/assert.hpp>
#include <holdfast/available.hpp>
#include <holdfast/capacity.hpp>
#include <holdfast/coordination.hpp>
#include <holdfast/coordinator.hpp>
#include <holdfast/error.hpp>
#include <holdfast/flat_map.hpp>
#include <holdfast/fleet.hpp>
#include <holdfast/function_sink.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/loop.hpp>
#include <holdfast/provisional.hpp>
#include <holdfast/random.hpp>
#include <holdfast/report.hpp>
#include <holdfast/resource.hpp>
#include <holdfast/row.hpp>
#include <holdfast/sink.hpp>
#include <holdfast/store.hpp>
#include <holdfast/types.hpp>
#include <holdfast/update.hpp>

namespace {

using namespace holdfast;
using namespace std::chrono_literals;

template <class... T>
void take(const T&...) {}

}  // namespace

void fill_in() {
  take(Failure{.kind = Failure::Kind::busy}, Decided{.was_ours = true}, OnceResult{.succeeded = false});
  take(AddOptions{.key = "shirt", .delta = -1, .op_id = "a", .to = AddOptions::To::stock}, Added{.value = 1});
  take(ReserveOptions{.id = "order", .basket = {{"shirt", 1}}}, Reservation{.id = "order"});
  take(Message{.seq = 1}, Receipt{.queue = "q"}, Group{.queue = "q"}, SendOptions{.queue = "q", .group = "g"});
  take(Sent{.seq = 1}, GroupView{.group = {}}, GroupList{.is_partial = true}, Batch{.receives = 1},
       Settled{.left = 1}, Redriven{.moved = 1});
  take(CoordinatorOptions{.store = "sqlite:shop.db"}, RightOptions{.wait = 1s}, OnceRunOptions{.wait = 1s},
       OnceRunOptions{.input = "x"}, OnceRun{.was_replayed = true}, QueueOptions{.max = 1},
       LeaseOptions{.lease = 10s});
  take(FleetOptions{.store = "sqlite:feeds.db"}, LeaseTerms{.lease = 10s}, Error(Code::usage, "no"));
  take(DecideWish{.key = "k"}, AddWish{.key = "k"}, DrawWish{.basket = {}}, SendWish{.queue = "q"},
       Provisional{.ticket = "t"}, Intent{.ticket = "t"}, AvailableMode{.journal = "j"});
  take(Row{.key = "k"}, Change{.attribute = "a"}, Update{.key = "k"}, QueryDue{.state = "TASK"}, Page{.next = "n"},
       Capabilities{.name = "mine"}, Record{.data = "x"}, Grant{.row = {}}, Progress{.status = "open"});
}
