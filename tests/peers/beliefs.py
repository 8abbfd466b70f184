"""What workers believed, and whether two believed the same at once. Reads what plain_worker.py wrote."""
import json
import pathlib
from typing import Iterable, NamedTuple


class Belief(NamedTuple):
    """One worker held one key from a time to another, in seconds since 1970; `taken_from`: whose it was before."""
    key: str
    worker: str
    since: float
    until: float
    taken_from: str


def beliefs_in(lines: Iterable[str]) -> "list[Belief]":
    """Of one worker, in the order of its lines. One that ends without a word believed until the expiry that it wrote."""
    found: list[Belief] = []
    held: dict[str, Belief] = {}
    for line in lines:
        if not line.endswith("\n"):
            break  # it was killed while it wrote
        said = json.loads(line)
        key, event = said.get("key"), said["event"]
        if event == "claim":
            held[key] = Belief(key, said["worker"], said["at"], said["until"], said["from"])
        elif event == "renew":
            belief = held[key]
            if said["at"] > belief.until:  # it believed nothing in between
                found.append(belief)
                belief = belief._replace(since=said["at"])
            held[key] = belief._replace(until=said["until"])
        elif event in ("release", "lost", "ended"):
            belief = held.pop(key)
            found.append(belief._replace(until=min(belief.until, said["at"])))
    return found + list(held.values())


def beliefs_of(files: Iterable[pathlib.Path]) -> "list[Belief]":
    found = []
    for file in files:
        with open(file, encoding="utf-8", newline="\n") as lines:
            found += beliefs_in(lines)
    return found


def both_at_once(beliefs: "list[Belief]") -> "list[tuple[Belief, Belief]]":
    """Pairs of beliefs of different workers in one key that overlap in time."""
    overlaps = []
    by_key: dict[str, list[Belief]] = {}
    for belief in beliefs:
        by_key.setdefault(belief.key, []).append(belief)
    for several in by_key.values():
        several.sort(key=lambda belief: belief.since)
        latest: "dict[str, Belief]" = {}  # of each worker, the one that lasts longest so far
        for belief in several:
            overlaps += [(other, belief) for worker, other in latest.items()
                         if worker != belief.worker and other.until > belief.since]
            if belief.worker not in latest or latest[belief.worker].until < belief.until:
                latest[belief.worker] = belief
    return overlaps


def takeovers(beliefs: "list[Belief]") -> "set[tuple[str, str]]":
    """(who took, whose it was) of all claims of rows that had been another's."""
    return {(belief.worker, belief.taken_from) for belief in beliefs
            if belief.taken_from not in ("", belief.worker)}


def spans_of_records(folder: pathlib.Path) -> "list[Belief]":
    """What Holdfast's workers must have believed, from the files of their NDJSON sinks: for each epoch of a connection
    from its first record to its last. One epoch is one ownership without a break."""
    spans: "dict[tuple[str, str, int], Belief]" = {}
    for file in sorted(folder.glob("*.ndjson")):
        owner = file.name.rpartition("-")[0]
        with open(file, encoding="utf-8", newline="\n") as lines:
            for line in lines:
                if not line.endswith("\n"):
                    break  # it was killed while it wrote
                record = json.loads(line)
                if "gap" in record:
                    continue
                at = record["at_ms"] / 1000
                place = (owner, record["conn"], record["epoch"])
                span = spans.get(place) or Belief("CONN#" + record["conn"], owner, at, at, "")
                spans[place] = span._replace(since=min(span.since, at), until=max(span.until, at))
    return list(spans.values())


def handover_pairs(beliefs: "list[Belief]") -> "list[tuple[str, str]]":
    """(who took, whose it was) each time that one belief in a key follows another's in time, whatever the claim said."""
    found = []
    by_key: dict[str, list[Belief]] = {}
    for belief in beliefs:
        by_key.setdefault(belief.key, []).append(belief)
    for several in by_key.values():
        several.sort(key=lambda belief: belief.since)
        found += [(after.worker, before.worker) for before, after in zip(several, several[1:])
                  if before.worker != after.worker]
    return found


def handovers(beliefs: "list[Belief]") -> "set[tuple[str, str]]":
    """The same, each pair once."""
    return set(handover_pairs(beliefs))
