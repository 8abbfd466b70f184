"""Does to the processes of a round what its schedule says, and undoes it in time."""
import heapq
import signal
from collections import Counter
from typing import Callable, Optional

from checks import Violation
from disk import SmallDisk
from processes import Process, Program
from proxy import FaultProxy
from schedule import LANES, WORKERS, Event
from tables import Table
from workers import DRAIN_SECONDS_MAX, MEMORY_BYTES, PlainSlot, Slot, now

CPU_SHARE_MAX = 0.3  # of one core, while the upstream is away: more is a loop without a wait
LEFT_OUT = "left out, as the target was under another fault"


class Harm:
    def __init__(self, program: Program, folder: str, states: dict[str, str], slots: dict[str, Slot], plain: dict[str, PlainSlot],
                 feed: Process, proxy: FaultProxy, table: Table, disk: Optional[SmallDisk], without: set[str]) -> None:
        self.program, self.folder, self.states = program, folder, states
        self.slots, self.plain, self.feed, self.proxy, self.table, self.disk = slots, plain, feed, proxy, table, disk
        self.without = without  # kinds of fault that this machine does not allow
        self.injected: Counter = Counter()
        self.checked: Counter = Counter()
        self.facts: Counter = Counter()
        self.violations: list[Violation] = []
        self.over = False
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._order = 0
        self._lane_use = [0] * LANES       # so that the end of an older fault does not end a newer one
        self._lane_free = [0.0] * LANES

    def plan(self, events: list[Event]) -> None:
        begin = now()
        for event in events:
            self._at(begin + event.at, lambda event=event: self._inject(event))

    def turn(self) -> None:
        """What is due by now."""
        while self._due and self._due[0][0] <= now():
            heapq.heappop(self._due)[2]()

    def end(self, step: Callable[[], None]) -> None:
        """Ends all faults; what takes time (a drain) is waited for with `step`."""
        self.over = True
        while self._due:
            heapq.heappop(self._due)[2]()
            step()
        self.table.end()
        if self.disk:
            self.disk.empty()
        for lane in range(LANES):
            self.proxy.set(lane, "pass")
        self.feed.send(signal.SIGCONT)

    def _at(self, when: float, task: Callable[[], object]) -> None:
        self._order += 1
        heapq.heappush(self._due, (when, self._order, task))

    def _inject(self, event: Event) -> None:
        name = event.kind
        if self.over or name in self.without or (name == "disk_full" and not self.disk):
            return
        done = getattr(self, "_do_" + name, None)
        if done is None and name.startswith(("lock_", "store_")):
            done = self._do_table
        if done is None:
            done = self._do_worker if event.target in WORKERS else self._do_lane
        if done(event):
            self.injected[name] += 1
        else:
            self.injected[LEFT_OUT] += 1

    def _do_worker(self, event: Event) -> bool:
        slot = self.slots[event.target]
        if event.kind == "join":
            if slot.present:
                return False
            slot.start()
            return True
        if not slot.undisturbed() or not slot.process.ready():
            return False
        end = now() + event.seconds
        slot.busy = True
        if event.kind in ("pause_long", "pause_short"):
            slot.process.send(signal.SIGSTOP)
            self._at(end, lambda: (slot.process.send(signal.SIGCONT), self._free(slot)))
        elif event.kind == "descriptors":
            slot.limit_descriptors(int(event.amount))
            self._at(end, lambda: (slot.running() and slot.unlimit_descriptors(), self._free(slot)))
        elif event.kind in ("drain", "leave"):
            slot.process.send(signal.SIGTERM)
            self._await_drain(slot, now(), event.seconds)
        elif event.kind == "kill_paused":
            slot.process.send(signal.SIGSTOP)
            self._at(end, lambda: (slot.kill(), self._restart(slot)))
        elif event.kind == "kill":
            slot.present = False
            slot.kill()
            self._at(end, lambda: self._restart(slot))
        elif event.kind == "memory":
            slot.kill()
            slot.start(memory_bytes=int(MEMORY_BYTES * event.amount))
            self._at(end, lambda: (slot.kill(), self._restart(slot)))
        return True

    def _free(self, slot: Slot) -> None:
        slot.busy = False

    def _restart(self, slot: Slot) -> None:
        slot.start()
        slot.busy = False

    def _await_drain(self, slot: Slot, asked: float, then: float) -> None:
        if slot.running() and now() - asked < DRAIN_SECONDS_MAX:
            self._at(now() + 0.1, lambda: self._await_drain(slot, asked, then))
            return
        self.checked["workers that were stopped in order ended with 0 (S11)"] += 1
        self.violations += slot.judge_end(now() - asked)
        slot.present = False
        if slot.running():
            slot.kill()
        self._at(now() + then, lambda: self._restart(slot))

    def _do_lane(self, event: Event) -> bool:
        lane = int(event.target)
        if self._lane_free[lane] > now():
            return False
        if event.kind in ("cut", "half_close"):
            getattr(self.proxy, event.kind)(lane)
            return True
        restore = self._use_lane(lane, event.kind, event.amount, event.seconds)
        self._at(now() + event.seconds, restore)
        return True

    def _use_lane(self, lane: int, mode: str, amount: float, seconds: float) -> Callable[[], None]:
        self._lane_use[lane] += 1
        use = self._lane_use[lane]
        self._lane_free[lane] = now() + seconds + 0.2
        self.proxy.set(lane, mode, amount)

        def restore() -> None:
            if self._lane_use[lane] == use:
                self.proxy.set(lane, "pass")
        return restore

    def _outage(self, event: Event, mode: str) -> bool:
        # The whole upstream goes away, whatever its parts were doing.
        restores = [self._use_lane(lane, mode, 0, event.seconds) for lane in range(LANES)]
        began = now()
        watched = [(slot, slot.process, slot.process.cpu_seconds()) for slot in self.slots.values()
                   if slot.running() and slot.process.ready()]

        def over() -> None:
            for slot, process, before in watched:
                if process is slot.process and slot.running():  # what else befell it at most slowed it down
                    used = (process.cpu_seconds() - before) / (now() - began)
                    self.checked["workers that did not spin while the upstream was away (S10)"] += 1
                    name = "processor of a worker while the upstream was away: percent_max"
                    self.facts[name] = max(self.facts[name], round(used * 100))
                    if used > CPU_SHARE_MAX:
                        self.violations.append(Violation("S10", f"{slot.name} took {used:.0%} of a core while the upstream was away ({mode})"))
            for restore in restores:
                restore()
        self._at(now() + event.seconds, over)
        return True

    def _do_outage_refused(self, event: Event) -> bool:
        return self._outage(event, "refuse")

    def _do_outage_black_hole(self, event: Event) -> bool:
        return self._outage(event, "black_hole")

    def _do_feed_pause(self, event: Event) -> bool:
        self.feed.send(signal.SIGSTOP)
        self._at(now() + event.seconds, lambda: self.feed.send(signal.SIGCONT))
        return True

    def _do_table(self, event: Event) -> bool:
        if not self.table.begin(event.kind, event.target, event.amount):
            return False
        self._at(now() + event.seconds, self.table.end)
        return True

    def _do_plain_kill(self, event: Event) -> bool:
        self.plain[event.target].end(signal.SIGKILL if event.kind == "plain_kill" else signal.SIGTERM)
        self._at(now() + event.seconds, lambda: self.over or self.plain[event.target].start())
        return True

    _do_plain_drain = _do_plain_kill

    def _set_state(self, event: Event, verb: str, state: str) -> bool:
        if self.table.holds_up_commands:
            return False
        if self.program.run("conn", verb, event.target).code != 0:
            return False
        self.states[event.target] = state
        return True

    def _do_stop_connection(self, event: Event) -> bool:
        return self._set_state(event, "stop", "STOPPED")

    def _do_start_connection(self, event: Event) -> bool:
        return self._set_state(event, "start", "STARTED")

    def _do_disk_full(self, event: Event) -> bool:
        self.disk.fill(int(event.amount))
        self._at(now() + event.seconds, self.disk.empty)
        return True
