"""The schedule: the same from the same seed, complete, and within the promise where it says so."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import schedule  # noqa: E402
from clocks import Clock  # noqa: E402


class Schedule(unittest.TestCase):
    def test_a_seed_gives_one_schedule(self):
        self.assertEqual(schedule.rounds(7, 2), schedule.rounds(7, 2))
        self.assertNotEqual(schedule.rounds(7, 2), schedule.rounds(8, 2))

    def test_two_minutes_have_every_kind_of_fault(self):
        every = set(schedule.WORKER_KINDS) | set(schedule.LANE_KINDS) | {
            "join", "leave", "disk_full", "lock_short", "lock_long", "feed_pause", "start_connection", "stop_connection"}
        for seed in range(50):
            plan = schedule.rounds(seed, 2)[0]
            kinds = {event.kind for event in plan.events}
            self.assertEqual(set(), every - kinds - {"leave", "feed_pause", "lock_long"}, f"seed {seed}")
            self.assertTrue(kinds & {"outage_refused", "outage_black_hole"}, f"seed {seed}")

    def test_a_minute_on_dynamodb_has_most_kinds_of_harm_to_the_store_and_no_locks(self):
        seen = set()
        for seed in range(20):
            plans = schedule.rounds(seed, 1, "dynamodb")
            kinds = {event.kind for plan in plans for event in plan.events}
            seen |= kinds
            self.assertEqual(set(), kinds & set(schedule.TABLE_KINDS["sqlite"]))
            self.assertGreater(len(kinds & set(schedule.TABLE_KINDS["dynamodb"])), 3, f"seed {seed}")
            self.assertTrue(kinds & {"plain_kill", "plain_drain"}, f"seed {seed}")
        self.assertEqual(set(), set(schedule.TABLE_KINDS["dynamodb"]) - seen)
        self.assertEqual(schedule.rounds(7, 2), schedule.rounds(7, 2, "sqlite"))

    def test_faults_overlap(self):
        events = [event for event in schedule.rounds(7, 2)[0].events if event.seconds > 0]
        overlapping = sum(1 for one in events for other in events if one.at < other.at < one.at + one.seconds)
        self.assertGreater(overlapping, 20)

    def test_long_runs_are_cut_into_rounds(self):
        plans = schedule.rounds(7, 60)
        self.assertEqual(40, len(plans))
        self.assertLess(max(plan.seconds for plan in plans), 200)
        self.assertEqual(20, sum(plan.promised for plan in plans))
        self.assertEqual(40, len({plan.events for plan in [plan._replace(events=tuple(plan.events)) for plan in plans]}))

    def test_clocks_stay_within_the_promise(self):
        for seed in range(50):
            plan = schedule.rounds(seed, 3)[0]
            clocks = [clock for each in plan.clocks.values() for clock in each]
            self.assertTrue(any(not clock.right for clock in clocks))
            lasting = (plan.seconds + 60) * 1000  # with the time to heal
            off = [clock.fake_ms(at, 0) - at for clock in clocks for at in (0, lasting)]
            self.assertLess(max(off) - min(off), schedule.SKEW_MS)

    def test_or_are_beyond_it(self):
        for seed in range(50):
            clocks = [clock for each in schedule.rounds(seed, 3)[1].clocks.values() for clock in each]
            self.assertGreater(max(abs(clock.offset_ms) for clock in clocks), schedule.SKEW_MS)
            self.assertTrue(any(clock.rate != 1 for clock in clocks))


class Clocks(unittest.TestCase):
    def test_true_and_fake_time_are_each_others_inverse(self):
        clock = Clock(-700, 1.25)
        self.assertEqual(1000 - 700 + 2500, clock.fake_ms(3000, 1000))
        self.assertAlmostEqual(3000, clock.true_ms(clock.fake_ms(3000, 1000), 1000))

    def test_a_right_clock_is_left_alone(self):
        self.assertEqual([], Clock().environment("library", 0))
        self.assertEqual(1234, Clock().true_ms(1234, 99))


if __name__ == "__main__":
    unittest.main()
