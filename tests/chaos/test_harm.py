"""The proxy and the wrong clock do the harm that they are for, and only that."""
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import clocks  # noqa: E402
import schedule  # noqa: E402
import tables  # noqa: E402
from clocks import Clock  # noqa: E402
from proxy import FaultProxy  # noqa: E402


class Echo:
    """Gives back what it is sent."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    @staticmethod
    def _serve(connection):
        try:
            while piece := connection.recv(4096):
                connection.sendall(piece)
        except OSError:
            pass
        connection.close()

    def close(self):
        self._listener.close()


class Proxy(unittest.TestCase):
    def setUp(self):
        echo = Echo()
        self.proxy = FaultProxy(echo.port, 2)
        self.addCleanup(echo.close)
        self.addCleanup(self.proxy.close)

    def connect(self, lane=0):
        client = socket.create_connection(("127.0.0.1", self.proxy.port(lane)), timeout=20)
        self.addCleanup(client.close)
        self.assert_works(client)
        return client

    def assert_works(self, client):
        client.sendall(b"hello")
        self.assertEqual(b"hello", client.recv(100))

    def assert_silent(self, client):
        client.settimeout(0.3)
        with self.assertRaises(TimeoutError):
            client.recv(100)
        client.settimeout(20)

    def test_a_cut_is_a_reset(self):
        client = self.connect()
        self.proxy.cut(0)
        with self.assertRaises(ConnectionResetError):
            client.recv(100)

    def test_half_closed_means_no_more_comes(self):
        client = self.connect()
        self.proxy.half_close(0)
        self.assertEqual(b"", client.recv(100))

    def test_what_is_stalled_comes_later(self):
        client = self.connect()
        self.proxy.set(0, "stall")
        client.sendall(b"later")
        self.assert_silent(client)
        self.proxy.set(0, "pass")
        self.assertEqual(b"later", client.recv(100))

    def test_what_a_black_hole_swallows_never_comes_and_the_connection_is_cut_at_its_end(self):
        client = self.connect()
        self.proxy.set(0, "black_hole")
        client.sendall(b"lost")
        self.assert_silent(client)
        self.assertGreater(self.proxy.effects["bytes swallowed"], 0)
        self.proxy.set(0, "pass")
        with self.assertRaises(ConnectionResetError):
            client.recv(100)
        self.connect()

    def test_refused_connections_are_taken_again_on_the_same_port(self):
        client = self.connect()
        self.proxy.set(0, "refuse")
        with self.assertRaises(ConnectionResetError):
            client.recv(100)
        with self.assertRaises(OSError):
            socket.create_connection(("127.0.0.1", self.proxy.port(0)), timeout=20)
        self.proxy.set(0, "pass")
        self.connect()

    def test_delayed_and_throttled_bytes_all_come_in_order(self):
        for mode, amount in (("delay", 0.05), ("throttle", 20_000)):
            client = self.connect()
            self.proxy.set(0, mode, amount)
            text = bytes(range(256)) * 16
            client.sendall(text)
            began, got = time.monotonic(), b""
            while len(got) < len(text):
                got += client.recv(10_000)
            self.assertEqual(text, got)
            self.assertGreater(time.monotonic() - began, 0.03)
            self.proxy.set(0, "pass")

    def test_lanes_are_apart(self):
        other = self.connect(1)
        self.proxy.set(0, "refuse")
        self.proxy.cut(0)
        self.assert_works(other)


class HarmToTheStore(unittest.TestCase):
    """What a kind's rules come to, when each request is harmed by the first rule that draws it."""

    def test_as_many_requests_are_harmed_as_the_schedule_says(self):
        for kind in tables.STORE_FAULTS:
            for share in (0.2, 0.8, 1.0):
                untouched = 1.0
                for rule in tables.rules_of(kind, share, 0):
                    self.assertLessEqual(rule["share"], 1.0)
                    untouched *= 1 - rule["share"]
                self.assertAlmostEqual(1 - share, untouched, msg=kind)

    def test_each_fault_of_a_kind_gets_its_part(self):
        first, second, third = tables.rules_of("store_cut", 1.0, 0)
        self.assertAlmostEqual(0.3, first["share"])
        self.assertAlmostEqual(0.35, (1 - first["share"]) * second["share"])
        self.assertAlmostEqual(1.0, third["share"])

    def test_every_kind_of_the_schedule_is_known(self):
        self.assertEqual(set(schedule.TABLE_KINDS["dynamodb"]), set(tables.STORE_FAULTS) | {"store_outage"})


class WrongClock(unittest.TestCase):
    PROGRAM = ("import time; print(time.time(), time.clock_gettime(time.CLOCK_MONOTONIC), "
               "time.clock_gettime(time.CLOCK_BOOTTIME)); time.sleep(0.2); print(time.time())")

    def run_with(self, clock: Clock, start_ms: float) -> list[float]:
        with tempfile.TemporaryDirectory() as folder:
            library = clocks.build(folder)
            if not library:
                self.skipTest("no C compiler")
            done = subprocess.run(["env", *clock.environment(library, start_ms), sys.executable, "-c", self.PROGRAM],
                                  capture_output=True, text=True, check=True)
        return [float(word) for word in done.stdout.split()]

    def test_the_wall_clock_is_off_and_the_others_are_not(self):
        before = time.time(), time.clock_gettime(time.CLOCK_MONOTONIC), time.clock_gettime(time.CLOCK_BOOTTIME)
        wall, monotonic, boot, _ = self.run_with(Clock(-3_600_000), time.time() * 1000)
        after = time.time(), time.clock_gettime(time.CLOCK_MONOTONIC), time.clock_gettime(time.CLOCK_BOOTTIME)
        self.assertTrue(before[0] - 3600 <= wall <= after[0] - 3600)
        self.assertTrue(before[1] <= monotonic <= after[1])
        self.assertTrue(before[2] <= boot <= after[2])

    def test_it_runs_at_its_rate_from_its_start_on(self):
        start_ms = (time.time() - 1000) * 1000
        clock = Clock(500, 2.0)
        before = clock.fake_ms(time.time() * 1000, start_ms) / 1000
        first, _, _, second = self.run_with(clock, start_ms)
        after = clock.fake_ms(time.time() * 1000, start_ms) / 1000
        self.assertTrue(before <= first < second <= after)
        self.assertGreater(second - first, 0.39)


if __name__ == "__main__":
    unittest.main()
