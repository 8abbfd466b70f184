"""A place in the fleet: a worker's name and the processes that have it, one after another."""
import os
import resource
import signal
import subprocess
import time
from typing import Optional

from clocks import Clock
from checks import Violation
from disk import SmallDisk
from processes import Process, Program, read_report
from schedule import CAPACITY, DISK_WORKER, LEASE_MS, MARGIN_MS, SKEW_MS
from tables import Table

PLAIN_WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers", "plain_worker.py")
PYTHON = os.environ.get("HOLDFAST_PYTHON") or "/usr/bin/python3"  # which has Debian's boto3
DRAIN_SECONDS = 5
DRAIN_SECONDS_MAX = DRAIN_SECONDS + 15   # from SIGTERM to the end; the machine may be busy
RSS_KB_MAX = 96 * 1024                   # a worker of 4 connections takes about 12 MB; its sink's buffer may take 8 more
MEMORY_BYTES = 105 * 1024 * 1024         # about the address space of a worker that has come up


class Slot:
    def __init__(self, name: str, folder: str, program: Program, clocks: list[Clock], disk: Optional[SmallDisk],
                 table: Table) -> None:
        self.name = name
        self.folder = folder
        self.program = program
        self.clocks = clocks
        self.table = table
        self.disk = disk if name == DISK_WORKER else None
        self.starts = 0
        self.process: Optional[Process] = None
        self.reports: list[str] = []
        self.busy = False         # under a fault of its own
        self.present = False      # meant to be there
        self.limited = False      # under a memory limit: may end with an error
        self.past: list[Process] = []
        self.rss_max_kb = 0

    def start(self, right_clock: bool = False, memory_bytes: int = 0) -> None:
        assert self.process is None or self.process.code() is not None
        clock = Clock() if right_clock else self.clocks[min(self.starts, len(self.clocks) - 1)]
        self.starts += 1
        self.present = True
        self.limited = memory_bytes > 0
        report = f"reports/{self.name}-{self.starts}.json"
        self.reports.append(report)
        sink = os.path.join(self.disk.mount, "out") if self.disk else os.path.join(self.folder, "out")
        arguments = ["worker", "--store", self.table.url(self.name), "--id", self.name, "--lease", f"{LEASE_MS}ms",
                     "--skew", f"{SKEW_MS}ms", "--sink", f"ndjson:{sink}?fsync=never", "--sink-patience", "2s",
                     "--drain-timeout", f"{DRAIN_SECONDS}s", "--report", report, "--log-level", "debug",
                     "--max-connections", str(CAPACITY)]
        if self.table.plain_endpoint():
            arguments += ["--margin", f"{MARGIN_MS}ms"]
        enter = self.disk.enter(self.folder) if self.disk else []
        log = os.path.join(self.folder, "logs", f"{self.name}-{self.starts}.log")
        self.process = Process(self.program, arguments, log, clock, enter, memory_bytes)
        self.past.append(self.process)

    def running(self) -> bool:
        return self.process is not None and self.process.code() is None

    def undisturbed(self) -> bool:
        return self.running() and not self.busy and not self.process.stopped

    def sample(self) -> None:
        if self.running():
            self.rss_max_kb = max(self.rss_max_kb, self.process.rss_max_kb())

    def kill(self) -> None:
        self.process.send(signal.SIGKILL)
        self.process.wait(20)

    def limit_descriptors(self, more: int) -> None:
        _, hard = resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (self.process.open_files() + more, hard))

    def unlimit_descriptors(self) -> None:
        _, hard = resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (hard, hard))

    def owner(self, process: Process) -> str:
        """As files name it; empty before it wrote its first line."""
        try:
            with open(process.log, encoding="utf-8", errors="replace") as source:
                for line in source:
                    _, found, rest = line.partition(" info    worker ")
                    if found:
                        return rest.split()[0].replace("#", "-")
        except OSError:
            pass
        return ""

    def told(self, words: str) -> int:
        """In how many lines of its logs, of all its processes."""
        count = 0
        for process in self.past:
            with open(process.log, encoding="utf-8", errors="replace") as source:
                count += sum(words in line for line in source)
        return count

    def expired_last(self) -> set[str]:
        """Connections that its latest process had taken, and then lost since its belief had ended."""
        gone: set[str] = set()
        with open(self.process.log, encoding="utf-8", errors="replace") as source:
            for line in source:
                conn = line.partition(" CONN#")[2].partition(": ")[0]
                if ": taken, epoch " in line:
                    gone.discard(conn)
                elif ": lost (belief_expired)" in line:
                    gone.add(conn)
        return gone

    def judge_end(self, waited: float) -> list[Violation]:
        """It was asked to stop, in order."""
        code = self.process.code()
        who = f"{self.name} (start {self.starts}, {self.process.log})"
        if code is None:
            return [Violation("S11", f"{who} did not end within {waited:.0f} s of SIGTERM: {self.process.last_words()}")]
        if code != 0:
            return [Violation("S11", f"{who} ended with {code} after SIGTERM: {self.process.last_words()}")]
        if read_report(os.path.join(self.folder, self.reports[-1])).get("end") not in ("drained", "cut"):
            return [Violation("S11", f"{who} was drained, but its report does not say so")]
        return []

    def judge_alive(self) -> list[Violation]:
        """Called while it is meant to run."""
        code = self.process.code() if self.process is not None else None
        if self.process is None or code is None or self.process.killed or self.process.asked_to_stop:
            return []
        if self.limited and (code > 0 or code == -signal.SIGABRT):
            return []  # it said that it had no memory and left, or gave up; any other signal would be a crash
        return [Violation("alive", f"{self.name} (start {self.starts}, {self.process.log}) ended by itself, code {code}: "
                                   f"{self.process.last_words()}")]

    def close(self) -> None:
        for process in self.past:
            process.end()


class PlainSlot:
    """A plain worker's name (tests/peers/plain_worker.py), and its processes. Each owns rows under a name of its own."""

    def __init__(self, name: str, folder: str, table: Table) -> None:
        self.name, self.folder, self.table = name, folder, table
        self.starts = 0
        self._process: Optional[subprocess.Popen] = None
        os.makedirs(os.path.join(folder, "plain"), exist_ok=True)

    def start(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self.starts += 1
        own = f"{self.name}-{self.starts}"
        out = os.path.join(self.folder, "plain", f"{own}.ndjson")
        with open(os.path.join(self.folder, "logs", f"{own}.log"), "ab") as errors:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", PYTHON, PLAIN_WORKER, "--endpoint", self.table.plain_endpoint(), "--table",
                 self.table.name, "--name", own, "--out", out, "--lease", str(LEASE_MS / 1000), "--hold-max", "3",
                 "--release-share", "0.1", "--key-prefix", "CONN#"],
                stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True)

    def end(self, number: int) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(DRAIN_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ended_badly(self) -> bool:
        return self._process is not None and self._process.poll() not in (None, 0, -signal.SIGKILL, -signal.SIGTERM)


def now() -> float:
    return time.monotonic()
