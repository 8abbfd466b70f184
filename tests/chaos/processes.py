"""The built program as processes: a feed, workers, one-shot commands. Ended by id, and they die with us."""
import json
import os
import signal
import subprocess
import time
from typing import NamedTuple, Optional

from clocks import Clock

TICKS = os.sysconf("SC_CLK_TCK")
COMMAND_SECONDS_MAX = 60


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def environment(more: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "AWS_"))}
    return {**kept, **more}


class Program:
    def __init__(self, path: str, folder: str, clock_library: str = "",
                 environment_of_its_own: Optional[dict[str, str]] = None) -> None:
        self.path = os.path.abspath(path)
        self.environment = environment(environment_of_its_own or {})
        self.folder = folder
        self.clock_library = clock_library

    def run(self, *arguments: str) -> Ended:
        try:
            done = subprocess.run([self.path, *arguments], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX, start_new_session=True)
        except subprocess.TimeoutExpired:
            return Ended(-1, "", f"no answer within {COMMAND_SECONDS_MAX} s")
        return Ended(done.returncode, done.stdout, done.stderr)


class Process:
    """One process of the program, with its log in a file."""

    def __init__(self, program: Program, arguments: list[str], log: str, clock: Clock = Clock(), enter: list[str] = [],
                 memory_bytes: int = 0) -> None:
        self.log = log
        self.clock = clock
        self.killed = False
        self.asked_to_stop = False
        command = enter + ["setpriv", "--pdeathsig", "KILL"]
        if memory_bytes:
            command += ["prlimit", f"--as={memory_bytes}"]
        self.started_ms = time.time() * 1000
        command += ["env", *clock.environment(program.clock_library, self.started_ms), program.path, *arguments]
        with open(log, "ab") as errors:
            self._child = subprocess.Popen(command, cwd=program.folder, env=program.environment, stdin=subprocess.DEVNULL,
                                           stdout=subprocess.PIPE, stderr=errors, start_new_session=True)
        self.pid = self._child.pid
        self.stopped = False

    def code(self) -> Optional[int]:
        """None while it runs; below zero: the signal that ended it."""
        return self._child.poll()

    def first_line(self) -> str:
        return self._child.stdout.readline().decode().strip()

    def send(self, number: int) -> None:
        if self.code() is not None:
            return
        self.killed |= number == signal.SIGKILL
        self.asked_to_stop |= number == signal.SIGTERM
        self.stopped = number == signal.SIGSTOP or (self.stopped and number != signal.SIGCONT)
        os.kill(self.pid, number)

    def wait(self, seconds: float) -> Optional[int]:
        try:
            return self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """For good, whatever it does."""
        if self.code() is None:
            self.send(signal.SIGKILL)
            self._child.wait()
        self._child.stdout.close()

    def _proc(self, name: str) -> str:
        try:
            with open(f"/proc/{self.pid}/{name}", encoding="utf-8") as source:
                return source.read()
        except OSError:
            return ""

    def cpu_seconds(self) -> float:
        fields = self._proc("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS if len(fields) > 12 else 0.0

    def rss_max_kb(self) -> int:
        for line in self._proc("status").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
        return 0

    def open_files(self) -> int:
        try:
            return len(os.listdir(f"/proc/{self.pid}/fd"))
        except OSError:
            return 0

    def ready(self) -> bool:
        """A worker that has come up says so in its first line."""
        try:
            with open(self.log, encoding="utf-8", errors="replace") as source:
                return " info    worker " in source.read()
        except OSError:
            return False

    def last_words(self) -> str:
        try:
            with open(self.log, encoding="utf-8", errors="replace") as source:
                return " | ".join(source.read().splitlines()[-3:])
        except OSError:
            return ""


def read_report(path: str) -> dict:
    try:
        with open(path, encoding="utf-8") as source:
            return json.load(source)
    except (OSError, ValueError):
        return {}
