"""One round: set up, do harm as planned, stop, see it heal, stop everything in order, judge."""
import json
import os
import pathlib
import signal
import time
from collections import Counter
from typing import Callable, Optional

import checks
from checks import Row, Violation
from disk import SmallDisk
from harm import Harm
from processes import Process, Program, read_report
from proxy import FaultProxy
from records import Counter as ReadCounter, Record, SinkFolder
from schedule import CONNECTIONS, GUEST, LANES, LEASE_MS, PLAIN_WORKERS, SKEW_MS, WORKERS, Plan
from tables import Table  # from here on tests/peers is looked in, too
from beliefs import Belief, beliefs_of, both_at_once, handover_pairs
from workers import DRAIN_SECONDS_MAX, RSS_KB_MAX, PlainSlot, Slot, now

RATE = 4             # messages per second of each stream
SIZE = 32
# After faults stop: an orphan is found within a lease, skew and a look; a stream whose upstream was away waits up to
# 60 s before it tries again (docs/options.md). The rest is for a busy machine.
HEAL_SECONDS_MAX = 60 + (LEASE_MS + SKEW_MS) / 1000 + 25
# Times of records are whole milliseconds, rounded down; a wrong clock is converted exactly but for that.
TOLERANCE_MS = 3
STEP_SECONDS = 0.1


def beliefs_of_records(records: list[Record], true_ms: Callable[[Record], float]) -> "list[Belief]":
    """From the first record of an ownership to its last."""
    spans: "dict[tuple[str, str, int], Belief]" = {}
    for record in records:
        at = true_ms(record) / 1000
        place = record.owner, record.conn, record.epoch
        span = spans.get(place) or Belief("CONN#" + record.conn, record.owner, at, at, "")
        spans[place] = span._replace(since=min(span.since, at), until=max(span.until, at))
    return list(spans.values())


def merged(one: Counter, other: Counter) -> Counter:
    """Sums, but for names with `_max`."""
    result = Counter(one)
    for name, value in other.items():
        result[name] = max(result[name], value) if "_max" in name else result[name] + value
    return result


class Round:
    def __init__(self, plan: Plan, program: str, clock_library: str, folder: str, say: Callable[[str], None], without: set[str],
                 make_table: Callable[[str], Table]) -> None:
        self.plan = plan
        self.folder = folder
        self.say = say
        self.without = without
        for name in ("", "out", "logs", "reports"):
            os.makedirs(os.path.join(folder, name), exist_ok=True)
        self.table = make_table(folder)
        self.program = Program(program, folder, clock_library, self.table.environment)
        self.checked: Counter = Counter()
        self.facts: Counter = Counter()
        self.violations: list[Violation] = []
        self.records: list[Record] = []
        self.line_faults: list = []
        self.looks: list[list[Row]] = []
        self.written = checks.Written()
        self.states = {f"s{i}": "STARTED" for i in range(CONNECTIONS)}
        self._reads = ReadCounter()
        self._steps = 0
        self.harm: Optional[Harm] = None
        self.disk: Optional[SmallDisk] = None
        self.feed: Optional[Process] = None
        self.proxy: Optional[FaultProxy] = None
        self.slots: dict[str, Slot] = {}
        self.plain: dict[str, PlainSlot] = {}
        self._folders: list[SinkFolder] = []

    # ---- running ----

    def run(self) -> None:
        try:
            self._set_up()
            self.harm.plan(self.plan.events)
            self._go_on(now() + self.plan.seconds)
            self.harm.end(self._step)
            self._stop_plain()
            if not self.plan.promised:
                self._set_clocks_right()
            for slot in self.slots.values():
                if not slot.running():
                    slot.start(right_clock=not self.plan.promised)
            self._heal()
            self._stop_all()
            self._judge()
        finally:
            self._close()

    def _set_up(self) -> None:
        if self.plan.promised and "disk_full" not in self.without:
            self.disk = SmallDisk(self.folder)
            if not self.disk.works:
                self.say(f"no small disk here: {self.disk.why_not}")
                self.without.add("disk_full")
                self.disk.close()
                self.disk = None
        self.feed = Process(self.program, ["feed", "--port", "0", "--streams", str(CONNECTIONS), "--rate", str(RATE), "--size",
                                           f"{SIZE}B", "--history", "1000000"], os.path.join(self.folder, "logs", "feed.log"))
        line = self.feed.first_line()
        port = int(line.split("127.0.0.1:")[1].split("/")[0])
        self.proxy = FaultProxy(port, LANES)
        lines = []
        for index, name in enumerate(self.states):
            url = f"ws://127.0.0.1:{self.proxy.port(index % LANES)}/stream/{name}"
            lines.append(json.dumps({"id": name, "url": url, "options": {
                "resume.query": "since", "seq.pointer": "/seq", "ping_every": "1s", "dead_after": "3s"}}))
        with open(os.path.join(self.folder, "connections.ndjson"), "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")
        for command in (["init"], ["conn", "import", "connections.ndjson"]):
            done = self.program.run(*command)
            if done.code != 0:
                raise RuntimeError(f"{command}: {done.err}")
        self._folders = [SinkFolder(os.path.join(self.folder, "out"), SIZE)]
        if self.disk:
            self._folders.append(SinkFolder(self.disk.out, SIZE))
        for name in WORKERS:
            self.slots[name] = Slot(name, self.folder, self.program, self.plan.clocks[name], self.disk, self.table)
            if name != GUEST:
                self.slots[name].start()
        if self.table.plain_endpoint():
            self.plain = {name: PlainSlot(name, self.folder, self.table) for name in PLAIN_WORKERS}
        self.harm = Harm(self.program, self.folder, self.states, self.slots, self.plain, self.feed, self.proxy, self.table,
                         self.disk, self.without)
        deadline = now() + 60
        while len({record.conn for record in self.records}) < CONNECTIONS:
            self._step()
            if now() > deadline:
                raise RuntimeError("not all connections were streaming within 60 s of the start")
        for plain in self.plain.values():
            plain.start()

    def _go_on(self, until: float) -> None:
        while now() < until:
            self.harm.turn()
            self._step()

    def _step(self) -> None:
        """Watches for a tenth of a second."""
        time.sleep(STEP_SECONDS)
        self._steps += 1
        for slot in self.slots.values():
            if slot.present and not slot.running():
                found = slot.judge_alive()
                if found or (slot.limited and not slot.process.killed):
                    slot.present = False
                    self.facts["ended for want of memory, with an error"] += 0 if found else 1
                self.violations += found
        if self._steps % 20 == 0:
            self._look()
        elif self._steps % 3 == 0:
            self._read_files()
        if self._steps % 10 == 0:
            for slot in self.slots.values():
                slot.sample()

    def _read_files(self) -> None:
        for folder in self._folders:
            records, faults = folder.read(self._reads)
            self.records += records
            self.line_faults += faults
            self.written.add(records)

    def _look(self) -> list[Row]:
        """The rows first, then the files: what a row says was acknowledged must be found in them."""
        done = self.program.run("conn", "ls", "--json")
        rows: list[Row] = []
        try:
            for one in json.loads(done.out):
                owner = (one["owner"] or "").replace("#", "-")
                is_plain = any(owner.startswith(name + "-") for name in self.plain)  # epochs are not theirs
                rows.append(Row(one["id"], one["desired_state"], "" if is_plain else owner, one["epoch"], one["lease"],
                                one["last_seq"] or 0, one["status"] or ""))
        except (ValueError, KeyError):
            self.facts["looks at the table that failed"] += 1
        self._read_files()
        if rows:
            self.looks.append(rows)
            self.violations += self.written.check(rows, self.checked)
        return rows

    # ---- the end ----

    def _set_clocks_right(self) -> None:
        running = [slot for slot in self.slots.values() if slot.running()]
        deadline = now() + DRAIN_SECONDS_MAX
        while not all(slot.process.ready() or not slot.running() for slot in running) and now() < deadline:
            self._step()
        asked = now()
        for slot in running:
            slot.process.send(signal.SIGTERM)
        while any(slot.running() for slot in running) and now() - asked < DRAIN_SECONDS_MAX:
            self._step()
        for slot in running:
            self.checked["workers that were stopped in order ended with 0 (S11)"] += 1
            self.violations += slot.judge_end(now() - asked)
            if slot.running():
                slot.kill()

    def _stop_plain(self) -> None:
        for plain in self.plain.values():
            if plain.ended_badly():
                self.violations.append(Violation("alive", f"{plain.name}-{plain.starts}, a plain worker, ended by itself"))
            plain.end(signal.SIGTERM)

    def _heal(self) -> None:
        """Liveness: what is to run is owned and flows, what is not is free, and all workers live."""
        self._read_files()
        goal = dict(self.written.highest)
        began = now()
        offsets = [clock.offset_ms / 1000 for clocks in self.plan.clocks.values() for clock in clocks]
        limit = HEAL_SECONDS_MAX + (0 if self.plan.promised else max(offsets) + 0.4 * self.plan.seconds)
        while True:
            self._go_on(now() + 1)
            late = self._not_yet(goal)
            if not late:
                break
            if now() - began > limit:
                for what in late:
                    self.violations.append(Violation("liveness", f"{limit:.0f} s after all faults had stopped {what}"))
                break
        self.checked["connections owned and flowing, or free, after faults stopped"] += CONNECTIONS
        self.checked["workers alive after faults stopped"] += len(self.slots)
        self.facts["time to heal: seconds_max"] = max(self.facts["time to heal: seconds_max"], round(now() - began))

    def _not_yet(self, goal: dict[str, int]) -> list[str]:
        rows = {row.conn: row for row in self._look()}
        late = []
        for name, state in self.states.items():
            row = rows.get(name)
            if row is None:
                late.append(f"{name} is not in the table")
            elif state == "STOPPED" and row.lease == "held":
                late.append(f"{name} is stopped, but held by {row.owner}")
            elif state == "STARTED" and row.lease != "held":
                late.append(f"{name} is {row.lease}")
            elif state == "STARTED" and self.written.highest[name] <= goal.get(name, 0):
                late.append(f"{name} is {row.status}, but has nothing new")
        late += [f"{slot.name} is not running" for slot in self.slots.values() if not slot.running()]
        # SIGTERM ends a process that has not come up at once, without a word: it is asked later.
        late += [f"{slot.name} has not come up" for slot in self.slots.values() if slot.running() and not slot.process.ready()]
        return late

    def _stop_all(self) -> None:
        asked = now()
        for slot in self.slots.values():
            slot.busy = True
            if slot.running():
                slot.process.send(signal.SIGTERM)
        while any(slot.running() for slot in self.slots.values()) and now() - asked < DRAIN_SECONDS_MAX:
            self._step()
        for slot in self.slots.values():
            self.checked["workers that were stopped in order ended with 0 (S11)"] += 1
            self.violations += slot.judge_end(now() - asked)
        rows = self._look()
        # A lease that ended by itself just before the drain, as a busy machine's store did not answer, is given back by nobody.
        gone = {(conn, slot.owner(slot.process)) for slot in self.slots.values() for conn in slot.expired_last()}
        at_rest = [row for row in rows if self.states.get(row.conn) == "STARTED" and (row.conn, row.owner) not in gone]
        self.facts["leases that ended by themselves just before the drain"] += sum((row.conn, row.owner) in gone for row in rows)
        self.violations += checks.rows_at_rest(at_rest, self.written, self.checked)
        if self.feed.code() is not None:
            self.violations.append(Violation("alive", f"the feed ended: {self.feed.last_words()}"))

    def _judge(self) -> None:
        crashed: set[str] = set()
        process_of: dict[str, Process] = {}
        for slot in self.slots.values():
            for process in slot.past:
                owner = slot.owner(process)
                process_of[owner] = process
                if process.killed or (process.code() or 0) != 0:
                    crashed.add(owner)
            self.checked["workers whose memory stayed bounded (S10)"] += 1
            self.facts["memory of a worker: rss_max_kb"] = max(self.facts["memory of a worker: rss_max_kb"], slot.rss_max_kb)
            self._add_reports(slot)
            if slot.rss_max_kb > RSS_KB_MAX:
                self.violations.append(Violation("S10", f"{slot.name} had {slot.rss_max_kb} KiB of memory, the bound is {RSS_KB_MAX}"))
        torn = [one for folder in self._folders for one in folder.torn()]
        self.violations += self.harm.violations
        self.checked.update(self.harm.checked)
        counts = self.checked
        self.violations += checks.whole_records(self.line_faults, torn, crashed, counts)
        self.violations += checks.one_owner_per_epoch(self.records, self.looks, counts)
        self.violations += checks.rows_move_forwards(self.looks, counts)
        self.violations += checks.epochs_rise_in_files(self.records, counts)
        self.violations += checks.accounting(self.records, counts)

        def true_ms(record: Record) -> float:
            process = process_of.get(record.owner)
            return record.at_ms if process is None else process.clock.true_ms(record.at_ms, process.started_ms)
        self._judge_plain(true_ms)
        if self.plan.promised:
            self.violations += checks.nothing_old_after_newer_as_seen(self.records, counts)
            self.violations += checks.nothing_old_after_newer_by_clock(self.records, true_ms, TOLERANCE_MS, counts)
        else:
            both = checks.nothing_old_after_newer_as_seen(self.records, Counter())
            self.facts["clocks beyond the promise: ownerships that overlapped (S1 is not promised there)"] += len(both)
        self.facts = merged(self.facts, self.harm.facts)
        self.facts["records"] += len(self.records)
        self.facts["worker processes"] += sum(slot.starts for slot in self.slots.values())
        self.facts["ownerships"] += len({(record.conn, record.epoch) for record in self.records})
        self.facts.update({f"proxy: {name}": count for name, count in self.proxy.effects.items()})

    def _judge_plain(self, true_ms: Callable[[Record], float]) -> None:
        if not self.plain:
            return
        ours = beliefs_of_records(self.records, true_ms)
        theirs = beliefs_of(pathlib.Path(self.folder, "plain").glob("*.ndjson"))
        both = checks.nothing_written_while_another_believed(self.records, theirs, true_ms, TOLERANCE_MS, self.checked)
        if self.plan.promised:
            self.violations += both
        else:
            self.facts["clocks beyond the promise: beliefs of plain workers in which ours wrote (not promised there)"] += len(both)
        self.checked["beliefs of plain workers beside each other's"] += len(theirs)
        self.violations += [Violation("S1", f"two plain workers believe at once: {one} and {other}")
                            for one, other in both_at_once(theirs)]
        names = tuple(f"{name}-" for name in self.plain)
        for after, before in handover_pairs(ours + theirs):
            if after.startswith(names) != before.startswith(names):
                self.facts["rows that plain workers had after ours" if after.startswith(names) else
                           "rows that ours had after plain workers"] += 1
        for what, count in self.table.effects().items():
            self.facts[f"the table's proxies: {what}"] += count

    def _add_reports(self, slot: Slot) -> None:
        """What became of the leases, as far as workers lived to tell."""
        self.facts["sinks that could not write"] += slot.told(" warning sink: ")
        self.facts["sinks that failed for so long that all was given back"] += slot.told(" sink: still failing")
        self.facts["connections taken"] += slot.told(": taken, epoch ")
        self.facts[f"memory of {slot.name}: rss_max_kb"] = slot.rss_max_kb
        for name in slot.reports:
            report = read_report(os.path.join(self.folder, name))
            for reason, count in report.get("leases", {}).get("losses", {}).items():
                self.facts[f"leases that ended: {reason}"] += count
            self.facts["claims that met a conflict"] += report.get("leases", {}).get("conflicts", 0)
            self.facts["upstream connections made anew"] += report.get("streams", {}).get("reconnects", 0)
            for outcomes in report.get("store", {}).values():
                for outcome in ("throttled", "unknown"):
                    self.facts[f"requests to the store that were {outcome}"] += outcomes.get(outcome, 0)

    def _close(self) -> None:
        for slot in self.slots.values():
            slot.close()
        for plain in self.plain.values():
            plain.end(signal.SIGKILL)
        self.table.close()
        if self.disk:
            self.disk.close(os.path.join(self.folder, "out-of-disk"))
        if self.proxy:
            self.proxy.close()
        if self.feed:
            self.feed.end()
