"""Sink files, read while workers write them.

Each record keeps, beside what it says, two marks of when it was written. Reads of all files are counted on one counter:
`seen` is the read that returned the record, `absent` the latest read (or listing) before it that would have returned it
had it been there. So a record with `absent` >= another's `seen` was certainly written later than that one: no clock is
asked, and no tolerance is needed.
"""
import json
import os
import re
from typing import NamedTuple, Optional

NAME = re.compile(r"^(?P<owner>.+-[0-9a-f]{8})-(?P<number>\d+)\.ndjson$")


class Record(NamedTuple):
    conn: str
    epoch: int
    seq: Optional[int]
    gap: Optional[tuple]
    at_ms: int  # the writer's clock
    owner: str  # the writer's name and incarnation, as in the file's name
    file: str
    seen: int = 0
    absent: int = -1


class Fault(NamedTuple):
    """A line that is no record."""
    file: str
    owner: str
    text: str


def payload(seq: int, size: int) -> str:
    """The "data" of a message of `holdfast feed`: it differs from message to message."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return "".join(letters[(seq + i) % 26] for i in range(size))


def parse(line: bytes, owner: str, file: str, seen: int, absent: int, size: int) -> "Record | Fault":
    """One whole line. `size` is the length of the feed's texts."""
    def fault(what: str) -> Fault:
        return Fault(file, owner, f"{what}: {line[:120]!r}")
    try:
        value = json.loads(line)
    except ValueError:
        return fault("no JSON")
    try:
        conn, epoch, at_ms = value["conn"], value["epoch"], value["at_ms"]
        if not (isinstance(conn, str) and isinstance(epoch, int) and isinstance(at_ms, int) and epoch >= 1):
            return fault("fields of the wrong kind")
        if "gap" in value:
            low, high = value["gap"]
            if not (isinstance(low, int) and isinstance(high, int) and low <= high):
                return fault("a gap that is none")
            return Record(conn, epoch, None, (low, high), at_ms, owner, file, seen, absent)
        seq = value["seq"]
        message = json.loads(value["data"])
        good = (message["stream"] == conn and message["seq"] == seq and message["data"] == payload(seq, size))
    except (KeyError, TypeError, ValueError):
        return fault("a field is missing or of the wrong kind")
    if not good:
        return fault("the message is not the one of this connection and number")
    return Record(conn, epoch, seq, None, at_ms, owner, file, seen, absent)


class _File:
    def __init__(self, owner: str, absent: int):
        self.owner = owner
        self.offset = 0
        self.rest = b""          # the beginning of a line whose end was not there yet
        self.rest_absent = -1    # before that beginning
        self.last_read = absent  # the latest read that would have returned what is new now


class SinkFolder:
    """Follows the files of one folder. `read()` gives what is new."""

    def __init__(self, path: str, size: int):
        self.path = path
        self.size = size
        self._files: dict[str, _File] = {}
        self._listed = -1

    def read(self, clock: "Counter") -> tuple[list, list]:
        """All that is new: records and faults."""
        records: list = []
        faults: list = []
        listed = clock.next()
        try:
            names = sorted(os.listdir(self.path))
        except OSError:
            return records, faults
        for name in names:
            match = NAME.match(name)
            if match and name not in self._files:
                self._files[name] = _File(match["owner"], self._listed)
        self._listed = listed
        for name, file in self._files.items():
            self._read_file(name, file, clock.next(), records, faults)
        return records, faults

    def _read_file(self, name: str, file: _File, now: int, records: list, faults: list) -> None:
        try:
            with open(os.path.join(self.path, name), "rb") as source:
                source.seek(file.offset)
                fresh = source.read()
        except OSError:
            return
        before, file.last_read = file.last_read, now
        if not fresh:
            return
        file.offset += len(fresh)
        lines = (file.rest + fresh).split(b"\n")
        absent_of_first = file.rest_absent if file.rest else before
        for index, line in enumerate(lines[:-1]):
            one = parse(line, file.owner, name, now, absent_of_first if index == 0 else before, self.size)
            (records if isinstance(one, Record) else faults).append(one)
        if lines[-1] and (len(lines) > 1 or not file.rest):
            file.rest_absent = before
        file.rest = lines[-1]

    def torn(self) -> list[tuple[str, str]]:
        """Files that end in the middle of a line: (name, owner)."""
        return [(name, file.owner) for name, file in self._files.items() if file.rest]


class Counter:
    def __init__(self) -> None:
        self._value = 0

    def next(self) -> int:
        self._value += 1
        return self._value
