"""What is done when: drawn from a seed, before anything runs. The same seed and length give the same schedule."""
import random
from typing import NamedTuple

from clocks import Clock

WORKERS = ("w1", "w2", "w3", "w4", "w5")
LANES = 3
CONNECTIONS = 12
CAPACITY = 4          # of each worker: three of five can hold all, so that each fault finds somebody who holds something
LEASE_MS = 4000
SKEW_MS = 1000
CLOCK_WORKER = "w3"   # its clock is wrong within the promise
MARGIN_MS = 1000      # where plain workers share the table: they take over at the expiry, without waiting for `skew`
DISK_WORKER = "w4"    # its sink is on the small disk
GUEST = "w5"          # joins later, leaves, comes back

WORKER_KINDS = ("kill", "kill", "pause_long", "pause_long", "pause_short", "drain", "drain", "kill_paused", "descriptors", "memory")
TABLE_KINDS = {
    "sqlite": ("lock_short", "lock_short", "lock_long"),
    "dynamodb": ("store_throttle", "store_throttle", "store_errors", "store_cut", "store_cut", "store_spoiled", "store_delay",
                 "store_late", "store_late", "store_silence", "store_outage"),
}
PLAIN_WORKERS = ("p1", "p2")  # of a table that is shared with such
LANE_KINDS = ("refuse", "black_hole", "delay", "throttle", "stall", "cut", "half_close")


class Event(NamedTuple):
    at: float        # seconds from the beginning
    kind: str
    target: str      # a worker, a lane, a connection; or empty
    seconds: float   # how long
    amount: float = 0.0


class Plan(NamedTuple):
    promised: bool               # clocks are within the promise
    seconds: float
    clocks: dict[str, list]      # of each start of a worker, in turn
    events: list[Event]


class Deck:
    """Deals every kind before any comes again, so that a short run has all of them."""

    def __init__(self, kinds, draw: random.Random) -> None:
        self._kinds, self._draw, self._rest = list(kinds), draw, []

    def deal(self) -> str:
        if not self._rest:
            self._rest = self._kinds[:]
            self._draw.shuffle(self._rest)
        return self._rest.pop()


def within_promise(draw: random.Random, seconds: float) -> Clock:
    """Off by less than half of the skew, so that any two differ by less than all of it, for as long as the round lasts."""
    limit = SKEW_MS * 0.45
    if draw.random() < 0.5:
        return Clock(round(draw.uniform(-limit, limit)), 1.0)
    drift = draw.choice((-1, 1)) * min(0.02, limit / 1000 / (seconds + 60) * draw.uniform(0.5, 1.0))
    return Clock(0, round(1 + drift, 5))


def beyond_promise(draw: random.Random) -> Clock:
    if draw.random() < 0.3:
        return Clock(0, round(draw.choice((draw.uniform(0.7, 0.9), draw.uniform(1.1, 1.4))), 3))
    return Clock(round(draw.choice((-1, 1)) * draw.uniform(1.5 * SKEW_MS, 2.0 * LEASE_MS)), 1.0)


def _worker_events(name: str, seconds: float, deck: Deck, draw: random.Random) -> list[Event]:
    events = []
    at = draw.uniform(2, 7)
    if name == GUEST:
        events.append(Event(draw.uniform(3, 8), "join", name, 0))
        at = events[0].at + draw.uniform(4, 8)
    while at < seconds - 1:
        kind = deck.deal()
        if name == GUEST and kind == "drain":
            kind = "leave"
        length = {"kill": draw.uniform(0.2, 6), "drain": draw.uniform(0.2, 4), "leave": draw.uniform(3, 8),
                  "kill_paused": draw.uniform(0.5, 8), "pause_short": draw.uniform(0.3, 0.6 * LEASE_MS / 1000),
                  "pause_long": draw.uniform(1.3, 2.4) * LEASE_MS / 1000,
                  "descriptors": draw.uniform(4, 8), "memory": draw.uniform(4, 8)}[kind]
        # Memory: a share of what a worker needs to come up. Descriptors: how many more it may open.
        amount = {"memory": round(draw.uniform(0.3, 1.2), 2), "descriptors": float(draw.randint(0, 3))}.get(kind, 0.0)
        events.append(Event(round(at, 2), kind, name, round(length, 2), amount))
        # The disk's worker is left in peace for longer, so that its disk has somebody to harm.
        at += length + (draw.uniform(9, 16) if name == DISK_WORKER else draw.uniform(4, 11))
    return events


def _lane_events(lane: int, seconds: float, deck: Deck, draw: random.Random) -> list[Event]:
    events = []
    at = draw.uniform(4, 9)
    while at < seconds - 1:
        kind = deck.deal()
        length = 0.0 if kind in ("cut", "half_close") else draw.uniform(1, 6)
        amount = {"delay": draw.uniform(0.2, 1.5), "throttle": draw.uniform(150, 1500)}.get(kind, 0.0)
        events.append(Event(round(at, 2), kind, str(lane), round(length, 2), round(amount, 2)))
        at += length + draw.uniform(4, 12)
    return events


def _store_events(seconds: float, draw: random.Random) -> list[Event]:
    """One at a time, on the way of all workers to the table, or of one."""
    events = []
    at, deck = draw.uniform(3, 6), Deck(TABLE_KINDS["dynamodb"], draw)
    while at < seconds - 2:
        kind = deck.deal()
        length = draw.uniform(1.0, 2.0) * LEASE_MS / 1000 if draw.random() < 0.4 else draw.uniform(0.5, 3)
        # Of a delay: how long; else the share of requests that are harmed.
        amount = {"store_delay": draw.uniform(0.1, 2.5), "store_outage": 0.0, "store_silence": 1.0}.get(kind, draw.choice((1.0, draw.uniform(0.2, 0.8))))
        target = "" if draw.random() < 0.5 else draw.choice(WORKERS)
        events.append(Event(round(at, 2), kind, target, round(length, 2), round(amount, 2)))
        at += length + draw.uniform(1, 5)
    return events


def _plain_events(name: str, seconds: float, draw: random.Random) -> list[Event]:
    events = []
    at = draw.uniform(6, 12)
    while at < seconds - 1:
        length = draw.uniform(0.2, 5)
        events.append(Event(round(at, 2), draw.choice(("plain_kill", "plain_drain")), name, round(length, 2)))
        at += length + draw.uniform(6, 12)
    return events


def _others(seconds: float, promised: bool, table: str, draw: random.Random) -> list[Event]:
    """What befalls all: outages, locks, the feed, the desired state."""
    events = []
    locks = TABLE_KINDS["sqlite"] if table == "sqlite" else ()
    at, deck = draw.uniform(5, 9), Deck((*locks, "feed_pause"), draw)
    while at < seconds - 2:
        kind = deck.deal()
        length = {"lock_short": draw.uniform(0.5, 2.4), "lock_long": draw.uniform(1.2, 2.0) * LEASE_MS / 1000,
                  "feed_pause": draw.uniform(2, 6)}[kind]
        events.append(Event(round(at, 2), kind, "", round(length, 2)))
        at += length + draw.uniform(6, 12) * (1 if locks else 4)
    at, deck = seconds * draw.uniform(0.3, 0.5), Deck(("outage_refused", "outage_black_hole"), draw)
    while at < seconds - 7:
        length = draw.uniform(5, 7)
        events.append(Event(round(at, 2), deck.deal(), "", round(length, 2)))
        at += length + draw.uniform(20, 40)
    stopped: set[int] = set()
    at = draw.uniform(3, 6)
    while at < seconds:
        if len(stopped) > 3 or (stopped and draw.random() < 0.5):
            index = draw.choice(sorted(stopped))
            stopped.discard(index)
            events.append(Event(round(at, 2), "start_connection", f"s{index}", 0))
        else:
            index = draw.choice([i for i in range(CONNECTIONS) if i not in stopped])
            stopped.add(index)
            events.append(Event(round(at, 2), "stop_connection", f"s{index}", 0))
        at += draw.uniform(2, 5)
    if promised:
        at = draw.uniform(8, 14)
        while at < seconds - 3:
            length = draw.uniform(3, 7)
            events.append(Event(round(at, 2), "disk_full", DISK_WORKER, round(length, 2), float(draw.choice((0, 0, 4096)))))
            at += length + draw.uniform(7, 12)
    return events


def make_plan(seed: str, seconds: float, promised: bool, table: str = "sqlite") -> Plan:
    draw = random.Random(seed)
    deck, lane_deck = Deck(WORKER_KINDS, draw), Deck(LANE_KINDS, draw)
    events: list[Event] = []
    for name in WORKERS:
        events += _worker_events(name, seconds, deck, draw)
    for lane in range(LANES):
        events += _lane_events(lane, seconds, lane_deck, draw)
    events += _others(seconds, promised, table, draw)
    clocks = {}
    for name in WORKERS:
        if not promised:
            clocks[name] = [beyond_promise(draw) if draw.random() < 0.75 else Clock() for _ in range(64)]
        elif name == CLOCK_WORKER:
            clocks[name] = [within_promise(draw, seconds) for _ in range(64)]
        else:
            clocks[name] = [Clock()]
    if table == "dynamodb":
        events += _store_events(seconds, draw)
        for name in PLAIN_WORKERS:
            events += _plain_events(name, seconds, draw)
    return Plan(promised, seconds, clocks, sorted(events))


def rounds(seed: int, minutes: float, table: str = "sqlite") -> list[Plan]:
    """Rounds of at most three minutes; the last fifth of each pair is spent with clocks beyond the promise."""
    total = minutes * 60
    pairs = max(1, round(total / 180))
    plans = []
    for number in range(pairs):
        share = total / pairs
        plans.append(make_plan(f"{seed}/{number}/promised", round(share * 0.6, 1), True, table))
        plans.append(make_plan(f"{seed}/{number}/beyond", round(share * 0.2, 1), False, table))
    return plans
