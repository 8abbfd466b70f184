"""Histories that are wrong in known ways are refused, each by its rule; right ones are left alone."""
import os
import sys
import unittest
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
import checks  # noqa: E402
from beliefs import Belief  # noqa: E402
from checks import Row, Written  # noqa: E402
from records import Fault, Record  # noqa: E402


def record(seq, epoch=1, owner="w1-aaaaaaaa", conn="s0", gap=None, at_ms=0, file=None, seen=0, absent=-1):
    return Record(conn, epoch, None if gap else seq, gap, at_ms, owner, file or f"{owner}-000001.ndjson", seen, absent)


def row(conn="s0", state="STARTED", owner="w1-aaaaaaaa", epoch=1, lease="held", last_seq=0, status="flowing"):
    return Row(conn, state, owner, epoch, lease, last_seq, status)


class Checks(unittest.TestCase):
    def setUp(self):
        self.counts = Counter()

    def rules(self, violations):
        return [violation.rule for violation in violations]


class OneOwnerPerEpoch(Checks):
    def check(self, records, looks=()):
        return self.rules(checks.one_owner_per_epoch(records, looks, self.counts))

    def test_each_epoch_has_its_owner(self):
        self.assertEqual([], self.check([record(1), record(2, epoch=2, owner="w2-bbbbbbbb")], [[row(), row("s1", epoch=7)]]))
        self.assertEqual(3, self.counts["epochs of connections with one owner (S3)"])

    def test_two_workers_write_under_one_epoch(self):
        self.assertEqual(["S3"], self.check([record(1), record(2, owner="w2-bbbbbbbb")]))

    def test_two_incarnations_of_a_worker_are_two_owners(self):
        self.assertEqual(["S3"], self.check([record(1), record(2, owner="w1-bbbbbbbb")]))

    def test_the_row_names_another_owner_than_the_files(self):
        self.assertEqual(["S3"], self.check([record(1)], [[row(owner="w2-bbbbbbbb")]]))

    def test_a_row_that_nobody_holds_names_no_owner(self):
        self.assertEqual([], self.check([record(1)], [[row(owner="", lease="free")]]))


class RowsMoveForwards(Checks):
    def check(self, *rows):
        return self.rules(checks.rows_move_forwards([[each] for each in rows], self.counts))

    def test_forwards(self):
        self.assertEqual([], self.check(row(), row(epoch=2, last_seq=5), row(epoch=2, last_seq=5)))

    def test_an_epoch_that_falls(self):
        self.assertEqual(["S3"], self.check(row(epoch=3), row(epoch=2)))

    def test_a_checkpoint_that_falls(self):
        self.assertEqual(["S9"], self.check(row(last_seq=9), row(epoch=2, last_seq=8)))

    def test_connections_are_told_apart(self):
        self.assertEqual([], self.check(row(epoch=3), row("s1", epoch=2)))


class EpochsRiseInFiles(Checks):
    def check(self, *records):
        return self.rules(checks.epochs_rise_in_files(records, self.counts))

    def test_rising(self):
        self.assertEqual([], self.check(record(1), record(2), record(2, epoch=3), record(3, epoch=3)))

    def test_back_to_an_older_epoch(self):
        self.assertEqual(["S3"], self.check(record(1, epoch=3), record(2)))

    def test_back_in_a_later_file_of_the_same_worker(self):
        later = record(2, file="w1-aaaaaaaa-000002.ndjson")
        self.assertEqual(["S3"], self.check(later, record(1, epoch=3)))

    def test_numbers_that_fall_or_repeat_within_a_file(self):
        self.assertEqual(["S9"], self.check(record(2), record(1)))
        self.assertEqual(["S9"], self.check(record(2), record(2)))

    def test_what_was_written_again_is_in_another_file(self):
        self.assertEqual([], self.check(record(2), record(2, file="w1-aaaaaaaa-000002.ndjson")))


class NothingOldAfterNewer(Checks):
    OTHER = "w2-bbbbbbbb"

    def seen(self, *records):
        return self.rules(checks.nothing_old_after_newer_as_seen(records, self.counts))

    def by_clock(self, *records, tolerance=3, true_ms=lambda record: record.at_ms):
        return self.rules(checks.nothing_old_after_newer_by_clock(records, true_ms, tolerance, self.counts))

    def test_an_old_record_that_was_not_there_when_the_newer_one_was_read(self):
        self.assertEqual(["S1"], self.seen(record(1, epoch=2, owner=self.OTHER, seen=5, absent=1), record(1, seen=9, absent=6)))
        self.assertEqual(["S1"], self.seen(record(1, epoch=2, owner=self.OTHER, seen=5, absent=1), record(1, seen=9, absent=5)))

    def test_an_old_record_that_may_have_been_there_is_no_proof(self):
        self.assertEqual([], self.seen(record(1, epoch=2, owner=self.OTHER, seen=5, absent=1), record(1, seen=9, absent=4)))
        self.assertEqual([], self.seen(record(1, seen=2, absent=1), record(2, epoch=2, owner=self.OTHER, seen=5, absent=3)))

    def test_epochs_in_between_hide_nothing(self):
        middle = record(2, epoch=2, owner=self.OTHER, seen=50, absent=40)
        newest = record(3, epoch=3, owner=self.OTHER, seen=5, absent=1)
        self.assertEqual(["S1", "S1"], self.seen(record(1, seen=60, absent=55), middle, newest))

    def test_gap_records_are_effects_too(self):
        self.assertEqual(["S1"], self.seen(record(1, epoch=2, owner=self.OTHER, seen=5), record(0, gap=(1, 2), seen=9, absent=6)))

    def test_a_time_after_the_newer_epoch_began(self):
        self.assertEqual(["S1"], self.by_clock(record(2, epoch=2, owner=self.OTHER, at_ms=1000), record(1, at_ms=1003)))
        self.assertEqual([], self.by_clock(record(2, epoch=2, owner=self.OTHER, at_ms=1000), record(1, at_ms=1002)))

    def test_the_earliest_record_of_the_newer_epoch_counts(self):
        newer = [record(seq, epoch=2, owner=self.OTHER, at_ms=at) for seq, at in ((2, 1000), (3, 2000))]
        self.assertEqual(["S1"], self.by_clock(*newer, record(1, at_ms=1500)))

    def test_times_are_made_true_first(self):
        def true_ms(one):
            return one.at_ms - (500 if one.owner == "w1-aaaaaaaa" else 0)
        self.assertEqual([], self.by_clock(record(2, epoch=2, owner=self.OTHER, at_ms=1000), record(1, at_ms=1400), true_ms=true_ms))
        self.assertEqual(["S1"], self.by_clock(record(2, epoch=2, owner=self.OTHER, at_ms=1000), record(1, at_ms=1600), true_ms=true_ms))

    def test_connections_are_told_apart(self):
        self.assertEqual([], self.by_clock(record(2, epoch=2, conn="s1", at_ms=1000), record(1, at_ms=5000)))


class Accounting(Checks):
    def check(self, *records):
        return checks.accounting(records, self.counts)

    def test_complete_with_repeats(self):
        self.assertEqual([], self.check(record(1), record(2), record(2, epoch=2), record(3, epoch=2), record(3, epoch=2)))
        self.assertEqual(1, self.counts["repeats under another epoch"])
        self.assertEqual(1, self.counts["repeats within an epoch"])
        self.assertEqual(3, self.counts["messages accounted for (S9)"])

    def test_one_is_missing(self):
        found = self.check(record(1), record(2), record(4, epoch=2))
        self.assertEqual(["S9"], self.rules(found))
        self.assertIn("1 of 4 messages are missing, the first is 3", found[0].text)

    def test_the_first_is_missing(self):
        self.assertEqual(["S9"], self.rules(self.check(record(2), record(3))))

    def test_a_gap_record_stands_for_what_is_missing_but_the_upstream_had_it(self):
        found = self.check(record(1), record(0, gap=(2, 3)), record(4))
        self.assertEqual(1, len(found))
        self.assertIn("recorded a gap [2, 3]", found[0].text)

    def test_a_number_below_the_first(self):
        self.assertEqual(["S9"], self.rules(self.check(record(0), record(1), record(2))))

    def test_each_connection_by_itself(self):
        self.assertEqual(["S9"], self.rules(self.check(record(1), record(2, conn="s1"), record(2))))


class Checkpoints(Checks):
    def test_not_above_what_is_written(self):
        written = Written()
        written.add([record(5), record(3), record(0, gap=(6, 7), conn="s1")])
        self.assertEqual([], written.check([row(last_seq=5), row("s1", last_seq=7), row("s2")], self.counts))
        self.assertEqual(["S9"], self.rules(written.check([row(last_seq=6)], self.counts)))
        self.assertEqual(["S9"], self.rules(written.check([row("s2", last_seq=1)], self.counts)))

    def test_after_a_drain_all_is_noted_and_free(self):
        written = Written()
        written.add([record(5)])
        free = row(owner="", lease="free", last_seq=5)
        self.assertEqual([], checks.rows_at_rest([free], written, self.counts))
        self.assertEqual(["S11"], self.rules(checks.rows_at_rest([free._replace(last_seq=4)], written, self.counts)))
        self.assertEqual(["S11"], self.rules(checks.rows_at_rest([free._replace(lease="held")], written, self.counts)))
        self.assertEqual(["S11"], self.rules(checks.rows_at_rest([free._replace(lease="expired")], written, self.counts)))


class PlainWorkers(Checks):
    def check(self, *records):
        belief = Belief("CONN#s0", "p1-1", 1.0, 2.0, "")
        return self.rules(checks.nothing_written_while_another_believed(records, [belief], lambda one: one.at_ms, 3, self.counts))

    def test_records_before_and_after_a_belief_and_of_other_connections_are_fine(self):
        self.assertEqual([], self.check(record(1, at_ms=1002), record(2, at_ms=1998), record(3, conn="s1", at_ms=1500)))

    def test_a_record_inside_a_belief_is_a_second_believer(self):
        self.assertEqual(["S1"], self.check(record(1, at_ms=1003), record(2, at_ms=1500)))
        self.assertEqual(["S1", "S1"], self.check(record(1, at_ms=1003), record(2, epoch=2, at_ms=1500)))


class WholeRecords(Checks):
    def test_only_a_crash_may_tear_the_last_line(self):
        torn = [("w1-aaaaaaaa-000001.ndjson", "w1-aaaaaaaa")]
        self.assertEqual([], checks.whole_records([], torn, {"w1-aaaaaaaa"}, self.counts))
        self.assertEqual(["S9"], self.rules(checks.whole_records([], torn, set(), self.counts)))

    def test_a_line_that_is_no_record(self):
        self.assertEqual(["S9"], self.rules(checks.whole_records([Fault("f", "w1-aaaaaaaa", "no JSON")], [], {"w1-aaaaaaaa"}, self.counts)))


if __name__ == "__main__":
    unittest.main()
