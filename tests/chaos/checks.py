"""What must hold of histories, whatever was done to the processes. Pure functions: no file, no process, no clock.

Each check gives violations with the number of the rule (docs/architecture.md) and adds to the counts of what it looked at.
"""
from collections import Counter, defaultdict
from typing import Callable, Iterable, NamedTuple

from records import Record


class Violation(NamedTuple):
    rule: str
    text: str


class Row(NamedTuple):
    """A connection's row, as `conn ls --json` had it."""
    conn: str
    state: str   # STARTED, STOPPED
    owner: str   # as in file names (name-incarnation); empty: nobody
    epoch: int
    lease: str   # free, held, expired
    last_seq: int
    status: str


def one_owner_per_epoch(records: Iterable[Record], looks: Iterable[list[Row]], counts: Counter) -> list[Violation]:
    """S3, from the files of all workers and from the rows together."""
    owners: dict[tuple[str, int], set[str]] = defaultdict(set)
    for record in records:
        owners[record.conn, record.epoch].add(record.owner)
    for look in looks:
        for row in look:
            if row.owner:
                owners[row.conn, row.epoch].add(row.owner)
    counts["epochs of connections with one owner (S3)"] += len(owners)
    return [Violation("S3", f"{conn} under epoch {epoch} has {len(who)} owners: {', '.join(sorted(who))}")
            for (conn, epoch), who in sorted(owners.items()) if len(who) > 1]


def rows_move_forwards(looks: Iterable[list[Row]], counts: Counter) -> list[Violation]:
    """S3, S9: from look to look a row's epoch never falls, nor does its last_seq."""
    found = []
    last: dict[str, Row] = {}
    for look in looks:
        for row in look:
            before = last.get(row.conn)
            last[row.conn] = row
            counts["rows looked at (S3, S9)"] += 1
            if before is None:
                continue
            if row.epoch < before.epoch:
                found.append(Violation("S3", f"the row of {row.conn} went from epoch {before.epoch} to {row.epoch}"))
            if row.last_seq < before.last_seq:
                found.append(Violation("S9", f"last_seq of {row.conn} went from {before.last_seq} to {row.last_seq}"))
    return found


def epochs_rise_in_files(records: Iterable[Record], counts: Counter) -> list[Violation]:
    """S3: what one incarnation writes of one connection never goes back to an older epoch; and within one epoch of one
    file numbers rise (a file written again after a failure is another file)."""
    found = []
    epoch_of: dict[tuple[str, str], int] = {}
    seq_of: dict[tuple[str, str, int], int] = {}
    for record in sorted(records, key=lambda record: record.file):  # stable: within a file the order of its lines
        counts["records in order within their file (S3, S9)"] += 1
        key = record.owner, record.conn
        if record.epoch < epoch_of.get(key, 0):
            found.append(Violation("S3", f"{record.file}: {record.conn} goes back from epoch {epoch_of[key]} to {record.epoch}"))
        epoch_of[key] = max(record.epoch, epoch_of.get(key, 0))
        if record.seq is None:
            continue
        place = record.file, record.conn, record.epoch
        if record.seq <= seq_of.get(place, 0):
            found.append(Violation("S9", f"{record.file}: {record.conn} under epoch {record.epoch} has {record.seq} after {seq_of[place]}"))
        seq_of[place] = record.seq
    return found


def nothing_old_after_newer_as_seen(records: Iterable[Record], counts: Counter) -> list[Violation]:
    """S1, S2, where clocks are as promised: nothing under an older epoch is written after the first record of a newer
    one. By the order in which the records were found in the files, which needs no clock and no tolerance."""
    return _old_after_new(records, lambda record: record.absent, lambda record: record.seen, 0, counts,
                          "records with nothing newer before them, by their order in files (S1, S2)",
                          lambda late: "as the files were read")


def nothing_old_after_newer_by_clock(records: Iterable[Record], true_ms: Callable[[Record], float], tolerance_ms: float,
                                     counts: Counter) -> list[Violation]:
    """The same by each record's own time, turned into true time by `true_ms`."""
    return _old_after_new(records, true_ms, true_ms, tolerance_ms, counts,
                          "records with nothing newer before them, by their time (S1, S2)",
                          lambda late: f"{late:.0f} ms later")


def _old_after_new(records, not_before, not_after, tolerance, counts, count_name, say) -> list[Violation]:
    # Per connection and epoch: the latest proof of "written after", and the earliest of "written before".
    latest: dict[tuple[str, int], tuple[float, Record]] = {}
    first: dict[tuple[str, int], float] = {}
    for record in records:
        counts[count_name] += 1
        key = record.conn, record.epoch
        if key not in latest or not_before(record) > latest[key][0]:
            latest[key] = not_before(record), record
        first[key] = min(first.get(key, float("inf")), not_after(record))
    by_conn: dict[str, list[int]] = defaultdict(list)
    for conn, epoch in latest:
        by_conn[conn].append(epoch)
    found = []
    for conn, epochs in sorted(by_conn.items()):
        newer_first, newer_epoch = float("inf"), 0
        for epoch in sorted(epochs, reverse=True):
            time, record = latest[conn, epoch]
            late = time - newer_first
            if late >= tolerance:
                found.append(Violation("S1", f"{conn}: {record.owner} wrote {record.seq or record.gap} under epoch {epoch} after "
                                             f"epoch {newer_epoch} had begun, {say(late)}"))
            if first[conn, epoch] < newer_first:
                newer_first, newer_epoch = first[conn, epoch], epoch
    return found


def nothing_written_while_another_believed(records: Iterable[Record], beliefs: Iterable, true_ms: Callable[[Record], float],
                                           tolerance_ms: float, counts: Counter) -> list[Violation]:
    """S1 between our workers and plain ones: no record from inside the time in which a plain worker believed. `beliefs`
    are those of plain workers (key, worker, since, until; in seconds of the true clock)."""
    by_conn: dict[str, list] = defaultdict(list)
    for belief in beliefs:
        by_conn[belief.key.removeprefix("CONN#")].append(belief)
    found: dict[tuple, Violation] = {}
    for record in records:
        at = true_ms(record)
        for belief in by_conn[record.conn]:
            counts["records beside the beliefs of plain workers (S1)"] += 1
            if belief.since * 1000 + tolerance_ms <= at <= belief.until * 1000 - tolerance_ms:
                found.setdefault((record.conn, record.epoch, belief), Violation(
                    "S1", f"{record.conn}: {record.owner} wrote {record.seq or record.gap} under epoch {record.epoch}, "
                          f"{at - belief.since * 1000:.0f} ms after {belief.worker} had begun to believe and "
                          f"{belief.until * 1000 - at:.0f} ms before it stopped"))
    return list(found.values())


def accounting(records: Iterable[Record], counts: Counter) -> list[Violation]:
    """S9: of each connection, after dropping repeats, all numbers from 1 to the highest are there, or in a gap record.
    The upstream of a chaos run keeps everything, so a gap record is itself a message that was lost."""
    found = []
    numbers: dict[str, set[int]] = defaultdict(set)
    gaps: dict[str, set[int]] = defaultdict(set)
    once: set[tuple] = set()
    for record in records:
        if record.gap is not None:
            gaps[record.conn].update(range(record.gap[0], record.gap[1] + 1))
            found.append(Violation("S9", f"{record.conn}: {record.owner} recorded a gap {list(record.gap)} although the upstream has all"))
            continue
        key = record.conn, record.epoch, record.seq
        if key in once:
            counts["repeats within an epoch"] += 1
        elif record.seq in numbers[record.conn]:
            counts["repeats under another epoch"] += 1
        once.add(key)
        numbers[record.conn].add(record.seq)
    for conn in sorted(set(numbers) | set(gaps)):
        have = numbers[conn] | gaps[conn]
        missing = max(have) - len(have) if min(have) >= 1 else 0
        counts["messages accounted for (S9)"] += len(numbers[conn])
        if missing or min(have) < 1:
            first = next((seq for seq in range(1, max(have) + 1) if seq not in have), min(have))
            found.append(Violation("S9", f"{conn}: {missing} of {max(have)} messages are missing, the first is {first}"))
    return found


class Written:
    """S9, as it goes: the highest number in any sink file, by connection, against the rows' last_seq."""

    def __init__(self) -> None:
        self.highest: dict[str, int] = defaultdict(int)

    def add(self, records: Iterable[Record]) -> None:
        for record in records:
            high = record.gap[1] if record.gap is not None else record.seq
            self.highest[record.conn] = max(self.highest[record.conn], high)

    def check(self, look: list[Row], counts: Counter) -> list[Violation]:
        """The rows were read before the records that were added last."""
        counts["checkpoints not above what is in files (S9)"] += len(look)
        return [Violation("S9", f"last_seq of {row.conn} is {row.last_seq}, but no file has more than {self.highest[row.conn]}")
                for row in look if row.last_seq > self.highest[row.conn]]


def rows_at_rest(look: list[Row], written: Written, counts: Counter) -> list[Violation]:
    """S11: after all workers were drained in order, every row is free and its last_seq is the last that was written."""
    found = []
    for row in look:
        counts["rows given back with all that was written noted (S11)"] += 1
        if row.lease != "free":
            found.append(Violation("S11", f"{row.conn} is {row.lease} by {row.owner} although all were drained"))
        if row.last_seq != written.highest[row.conn]:
            found.append(Violation("S11", f"last_seq of {row.conn} is {row.last_seq} after the drain, files have {written.highest[row.conn]}"))
    return found


def whole_records(faults: Iterable, torn: Iterable[tuple[str, str]], may_be_torn: set[str], counts: Counter) -> list[Violation]:
    """A line that ends is a record; only a crash leaves one that does not end."""
    found = [Violation("S9", f"{fault.file}: {fault.text}") for fault in faults]
    for name, owner in torn:
        counts["files that a crash left without a last line break"] += 1
        if owner not in may_be_torn:
            found.append(Violation("S9", f"{name} ends in the middle of a line, although {owner} did not crash"))
    return found
