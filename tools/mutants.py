#!/usr/bin/env python3
"""Small wrong changes to the code, one at a time: each must be noticed by a test or a seed.

Usage: tools/mutants.py [--check | --list] [--by PROGRAM]... [--json FILE] [--copies N] [--jobs N]
                        [--patience SECONDS] [--root FOLDER] [--work FOLDER] [NAME...]

Reads tests/mutants/mutants.toml. Works on copies of the sources in --work (build/mutants), as many as --copies at
once; they keep their builds between runs. The sources themselves are not touched. First every program that is to
notice something must pass on the code as it is. NAME picks the mutants whose name or file contains it. --by asks what
these programs notice, instead of those that the list names. --check only looks whether each still fits the code. Each
mutant is one of

  killed    a program failed, crashed, or did not end in ten times its usual time (and --patience); and, where the list
            says that the simulation notices it as well, a seed broke a rule
  survived  all its programs passed, or all its seeds: a test is missing, or the change is none
  broken    it no longer fits the code, or does not compile

Exits 0 where all are killed, 1 otherwise, 2 for wrong usage, 130 after Ctrl-C.
"""
import argparse
import concurrent.futures
import dataclasses
import fcntl
import json
import os
import pathlib
import queue
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib

from arguments import Parser, at_least_one

# So many times as long as on the code as it is, and --patience at least, is how long a program may take: a mutant that
# makes it wait for ever is noticed by this, and a machine that is busy with other work is not taken for one.
LIMIT_FACTOR = 10
PATIENCE_S = 60
BASELINE_LIMIT_S = 900
# A mutant that takes memory without end is noticed by this, and not by everything else on the machine.
MEMORY_MAX = 6 << 30
OUTPUT_MAX = 1 << 30
SIMULATOR = "holdfast_sim"
# What is added to a killer, by the beginning or the end of its name.
TEST_OPTIONS = ["--gtest_fail_fast"]
SIM_OPTIONS = ["--quiet", "--no-shrink"]
QUICK = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -g0"]
OPTIMISED = ["-DCMAKE_BUILD_TYPE=Release"]
# Tests that draw their cases draw the same ones each time: what is noticed once is noticed again.
KILLERS_ENVIRONMENT = {"RC_PARAMS": "seed=1"}


class Stopped(Exception):
    """The run was interrupted; nothing is started any more."""


@dataclasses.dataclass
class Mutant:
    name: str
    rule: str
    file: str
    before: str
    after: str
    killers: list[str]
    seeds: str = ""  # with which the simulation notices it as well, whatever else does

    def asked(self) -> list[list[str]]:
        """Of each group of programs one has to notice it."""
        groups = [self.killers] if self.killers else []
        return groups + ([[f"{SIMULATOR} --seeds {self.seeds}"]] if self.seeds else [])


@dataclasses.dataclass
class Result:
    mutant: Mutant
    verdict: str
    by: str
    seconds: float


def program_of(killer: str) -> str:
    return killer.split(" ")[0]


def read_list(path: pathlib.Path) -> list[Mutant]:
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(e["name"], e["rule"], e["file"], e["from"], e["to"], e["killers"], e.get("seeds", "")) for e in entries]


def misfits(root: pathlib.Path, mutants: list[Mutant]) -> list[str]:
    found = []
    names = [mutant.name for mutant in mutants]
    for mutant in mutants:
        path = root / mutant.file
        count = path.read_text(encoding="utf-8").count(mutant.before) if path.is_file() else 0
        if count != 1:
            found.append(f"'{mutant.name}': its text is {count} times in {mutant.file}, not once")
        if mutant.before == mutant.after:
            found.append(f"'{mutant.name}' changes nothing")
        if names.count(mutant.name) != 1:
            found.append(f"'{mutant.name}' is there twice")
        if not mutant.asked():
            found.append(f"'{mutant.name}' names nothing that would notice it")
    return found


class Processes:
    """Starts programs, each in a process group of its own, and ends them all when the run is interrupted."""

    def __init__(self, inherited: int):
        self.inherited = inherited  # the lock: held until the last of them has ended, whatever happens to us
        self.mutex = threading.Lock()
        self.running: set[subprocess.Popen] = set()
        self.stopping = False

    def run(self, command: list[str], cwd: pathlib.Path, environment: dict[str, str] | None = None,
            limit_s: float | None = None, limited: bool = False) -> tuple[int | None, str]:
        """Its exit code, None where it took too long, and what it said."""
        with tempfile.TemporaryFile() as output:  # not a pipe: what outlives the program would hold that open
            with self.mutex:
                if self.stopping:
                    raise Stopped
                process = subprocess.Popen(command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                           stderr=subprocess.STDOUT, start_new_session=True, pass_fds=(self.inherited,))
                self.running.add(process)
            try:
                if limited:
                    self.limit(process)
                code = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                self.end(process)
                code = None
            except BaseException:
                self.end(process)
                raise
            finally:
                with self.mutex:
                    self.running.discard(process)
                self.signal(process, signal.SIGKILL)  # what it started and left behind
            if self.stopping:
                raise Stopped
            output.seek(0)
            return code, output.read().decode(errors="replace")

    @staticmethod
    def limit(process: subprocess.Popen) -> None:
        try:
            for what, most in ((resource.RLIMIT_AS, MEMORY_MAX), (resource.RLIMIT_FSIZE, OUTPUT_MAX), (resource.RLIMIT_CORE, 0)):
                resource.prlimit(process.pid, what, (most, most))
        except ProcessLookupError:
            pass  # it has ended already

    @staticmethod
    def signal(process: subprocess.Popen, number: int) -> None:
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def end(self, process: subprocess.Popen) -> None:
        """TERM first: ninja then ends its compilers, which are in groups of their own, and what they had begun."""
        self.signal(process, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            self.signal(process, signal.SIGKILL)
            process.wait()

    def stop(self) -> None:
        with self.mutex:
            self.stopping = True
            running = list(self.running)
        for process in running:
            self.signal(process, signal.SIGTERM)
        for process in running:
            self.end(process)


class Copy:
    """One copy of the sources, with its build. Used by one thread at a time."""

    def __init__(self, folder: pathlib.Path, root: pathlib.Path, jobs: int, processes: Processes):
        self.folder, self.root, self.jobs, self.processes = folder, root, jobs, processes
        self.source = folder / "source"
        # With ccache, what one copy compiled is there for the others.
        self.environment = {**os.environ, "CCACHE_BASEDIR": str(folder), "CCACHE_NOHASHDIR": "1"}

    def refresh(self) -> None:
        """The files that git knows or would know; those alone that differ are written, so that the build stays valid.
        So a mutant that an interrupted run left behind is gone, too."""
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=self.root,
                                capture_output=True, check=True).stdout.decode().split("\0")
        wanted = {name for name in listed if name and (self.root / name).is_file()}
        for name in sorted(wanted):
            right, target = self.root / name, self.source / name
            if target.is_file() and target.read_bytes() == right.read_bytes():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(right, target)
        for path in list(self.source.rglob("*")):
            name = path.relative_to(self.source)
            if name.parts[0] != "build" and not path.is_dir() and name.as_posix() not in wanted:
                path.unlink()

    def build_of(self, program: str) -> pathlib.Path:
        """Tests are compiled as fast as can be; the simulation, which runs for longer than it compiles, as it ships:
        then ccache has most of it from there."""
        return self.source / "build" / "release" if program == SIMULATOR else self.folder / "build"

    def prepare(self, programs: list[str]) -> tuple[bool, str]:
        """Configures the builds of these programs, and builds them."""
        for folder in sorted({self.build_of(program) for program in programs}):
            options = OPTIMISED if folder == self.build_of(SIMULATOR) else QUICK
            code, words = self.processes.run(
                ["cmake", "-S", str(self.source), "-B", str(folder), "-G", "Ninja", "-DCMAKE_CXX_COMPILER=g++",
                 "-DHOLDFAST_TESTS=ON", *options], self.folder, self.environment)
            if code != 0:
                return False, words
        return self.build(programs)

    def build(self, programs: list[str]) -> tuple[bool, str]:
        for folder in sorted({self.build_of(program) for program in programs}):
            # By the file's name, since a target may have another.
            targets = [f"bin/{program}" for program in programs if self.build_of(program) == folder]
            code, words = self.processes.run(["cmake", "--build", str(folder), "-j", str(self.jobs), "--target", *targets],
                                             self.folder, self.environment)
            if code != 0:
                return False, words
        return True, ""

    def run(self, killer: str, limit_s: float) -> tuple[bool, str]:
        """Whether it passed, and what it said first of a failure."""
        program, *arguments = killer.split(" ")
        if program.endswith("_tests"):
            arguments = TEST_OPTIONS + [f"--gtest_filter={argument}" for argument in arguments]
        elif program == SIMULATOR:
            arguments += SIM_OPTIONS
        code, words = self.processes.run([str(self.build_of(program) / "bin" / program), *arguments], self.folder,
                                         {**os.environ, **KILLERS_ENVIRONMENT}, limit_s, limited=True)
        if code == 0:
            return True, ""
        return False, first_words(killer, code, words, limit_s)

    def ask(self, killers: list[str], limits: dict[str, float]) -> tuple[str, str]:
        """The verdict of the first of them that notices something; and by whom or why."""
        for killer in killers:
            built, words = self.build([program_of(killer)])
            if not built:
                errors = [line for line in words.splitlines() if "error: " in line]
                first = errors[0].removeprefix(f"{self.source}/") if errors else words[-200:]
                return "broken", f"it does not compile: {first}"
            passed, who = self.run(killer, limits[killer])
            if not passed:
                return "killed", who
        return "survived", ", ".join(killers) + " passed"

    def try_mutant(self, mutant: Mutant, limits: dict[str, float]) -> tuple[str, str]:
        """The verdict; and by whom or why. The copy is as it was afterwards."""
        path = self.source / mutant.file
        right = path.read_bytes()
        text = right.decode()
        if text.count(mutant.before) != 1:
            return "broken", "it no longer fits: its file was edited meanwhile"
        try:
            path.write_bytes(text.replace(mutant.before, mutant.after).encode())
            noticed = []
            for killers in mutant.asked():
                verdict, by = self.ask(killers, limits)
                if verdict != "killed":
                    return verdict, by
                noticed.append(by)
            return "killed", f"\n{'':19}".join(noticed)
        finally:
            # Only now, with every compiler ended: an object that is younger than its source passes for built from it.
            path.write_bytes(right)


def first_words(killer: str, code: int | None, words: str, limit_s: float) -> str:
    """Which test failed or which rule was broken; else where it was, or what it said last."""
    lines = words.strip().splitlines()
    last = lines[-1][:160] if lines else ""
    for line in lines:
        if line.startswith("[  FAILED  ]"):
            return line.removeprefix("[  FAILED  ] ").split(" (")[0].split(", where ")[0]
        if line.startswith("BROKEN"):
            return f"{killer}: {line[:160]}"
        if line.startswith("[ RUN      ]"):
            last = line.removeprefix("[ RUN      ] ")
    if code is None:
        return f"{killer}: not done within {limit_s:.0f} s: {last}"
    return f"{killer}: {f'signal {-code}' if code < 0 else f'exit {code}'}: {last}"


class Run:
    """Several copies, each with a thread that works in it. To be used as a context: at its end all threads are done,
    and have put right what they had changed."""

    def __init__(self, copies: list[Copy], processes: Processes):
        self.copies, self.processes = copies, processes
        self.executor = concurrent.futures.ThreadPoolExecutor(len(copies))
        self.free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for copy in copies:
            self.free.put(copy)

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind, value, traceback) -> None:
        if kind is not None:
            self.processes.stop()
        self.executor.shutdown(cancel_futures=True)

    def each(self, what, items):
        """what(copy, item) for each, as many at once as there are copies; results as they come."""
        def one(item):
            copy = self.free.get()
            try:
                return what(copy, item)
            finally:
                self.free.put(copy)

        for future in concurrent.futures.as_completed([self.executor.submit(one, item) for item in items]):
            yield future.result()

    def prepare(self, killers: list[str]) -> str:
        """Why nothing can be learned; nothing where all is well. Every copy is built as the code is."""
        programs = sorted({program_of(killer) for killer in killers})
        for copy in self.copies:
            copy.folder.mkdir(parents=True, exist_ok=True)
            copy.refresh()
            jobs = copy.jobs
            copy.jobs *= len(self.copies)  # nobody else is at work yet
            done, words = copy.prepare(programs)
            copy.jobs = jobs
            if not done:
                return f"the code as it is does not build:\n{words[-4000:]}"
        return ""

    def baseline(self, killers: list[str], patience_s: float) -> tuple[dict[str, float], str]:
        """How long each may take; or which fails although nothing is wrong."""
        def one(copy: Copy, killer: str) -> tuple[str, float, str]:
            started = time.monotonic()
            passed, who = copy.run(killer, BASELINE_LIMIT_S)
            return killer, time.monotonic() - started, "" if passed else who

        limits, failed = {}, ""
        for killer, seconds, who in self.each(one, killers):
            print(f"{'fails' if who else 'passes':9} {seconds:5.0f} s  {killer}", flush=True)
            limits[killer] = max(patience_s, LIMIT_FACTOR * seconds)
            failed = who or failed
        return limits, failed

    def mutants(self, mutants: list[Mutant], limits: dict[str, float]):
        def one(copy: Copy, mutant: Mutant) -> Result:
            started = time.monotonic()
            verdict, by = copy.try_mutant(mutant, limits)
            return Result(mutant, verdict, by, time.monotonic() - started)

        # Those of one file one after another: going on to another file compiles two.
        yield from self.each(one, sorted(mutants, key=lambda mutant: (mutant.asked()[0][0], mutant.file)))


def interrupt_on(numbers: list[int]) -> None:
    def handler(number, frame):
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)  # tidying up is not interrupted
        raise KeyboardInterrupt(number)

    for number in numbers:
        signal.signal(number, handler)


def try_all(options: argparse.Namespace, mutants: list[Mutant], lock: int) -> list[Result] | None:
    """Nothing where the code as it is does not build or pass; then it has been said."""
    processes = Processes(lock)
    count = max(1, min(options.copies, options.jobs, len(mutants)))
    copies = [Copy(options.work / str(number), options.root, max(1, options.jobs // count), processes)
              for number in range(1, count + 1)]
    killers = sorted({killer for mutant in mutants for group in mutant.asked() for killer in group})
    print(f"mutants: building what is to notice them, in {count} {'copies' if count > 1 else 'copy'}", flush=True)
    with Run(copies, processes) as run:
        if why := run.prepare(killers):
            print(f"mutants: {why}", file=sys.stderr)
            return None
        limits, failed = run.baseline(killers, options.patience)
        if failed:
            print(f"mutants: nothing can be learned where the code as it is fails: {failed}", file=sys.stderr)
            return None
        results: list[Result] = []
        for result in run.mutants(mutants, limits):
            results.append(result)
            print(f"{result.verdict:9} {result.seconds:5.0f} s  {result.mutant.rule:9} {result.mutant.name}\n"
                  f"{'':19}{result.by}", flush=True)
    return sorted(results, key=lambda result: mutants.index(result.mutant))


def report(results: list[Result], seconds: float, json_file: pathlib.Path | None) -> int:
    bad = [result for result in results if result.verdict != "killed"]
    print(f"mutants: {len(results)} tried in {seconds:.0f} s, {len(results) - len(bad)} killed, {len(bad)} not")
    for result in bad:
        print(f"  {result.verdict}: {result.mutant.name}")
    if json_file:
        entries = [{"name": result.mutant.name, "rule": result.mutant.rule, "file": result.mutant.file,
                    "verdict": result.verdict, "by": result.by, "seconds": round(result.seconds, 1)} for result in results]
        json_file.write_text(json.dumps({"tried": len(results), "killed": len(results) - len(bad), "mutants": entries},
                                        indent=1) + "\n", encoding="utf-8")
    return 1 if bad else 0


def main() -> int:
    parser = Parser(prog="mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--copies", type=at_least_one, default=2)
    parser.add_argument("--jobs", type=at_least_one, default=os.cpu_count() or 1)
    parser.add_argument("--patience", type=float, default=PATIENCE_S)
    parser.add_argument("--by", action="append")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.root = options.root.resolve()
    options.work = (options.work or options.root / "build/mutants").resolve()

    mutants = read_list(options.root / "tests/mutants/mutants.toml")
    wrong = misfits(options.root, mutants)
    for line in wrong:
        print(f"mutants: {line}", file=sys.stderr)
    if wrong or options.check:
        return 1 if wrong else 0
    if options.names:
        mutants = [mutant for mutant in mutants
                   if any(name in mutant.name or name in mutant.file for name in options.names)]
        if not mutants:
            print("mutants: none has such a name", file=sys.stderr)
            return 2
    if options.by:
        mutants = [dataclasses.replace(mutant, killers=options.by, seeds="") for mutant in mutants]
    if options.list:
        for mutant in mutants:
            print(f"{mutant.rule:10} {mutant.name}  ({mutant.file}; {' and '.join(', '.join(group) for group in mutant.asked())})")
        return 0

    options.work.mkdir(parents=True, exist_ok=True)
    with open(options.work / "lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"mutants: another run, or what one left behind, is still at work in {options.work}", file=sys.stderr)
            return 1
        interrupt_on([signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
        started = time.monotonic()
        try:
            results = try_all(options, mutants, lock.fileno())
        except KeyboardInterrupt as interrupt:
            number = interrupt.args[0] if interrupt.args else signal.SIGINT
            print("mutants: interrupted; the sources were not touched, the copies are as they were", file=sys.stderr)
            return 128 + number
    return 1 if results is None else report(results, time.monotonic() - started, options.json)


if __name__ == "__main__":
    sys.exit(main())
