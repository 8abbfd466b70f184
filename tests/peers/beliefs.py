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
