"""Holdfast's workers and plain ones (boto3, no epoch) contend for the rows of one table on DynamoDB Local.

  sharing.py --program build/release/bin/holdfast [--names fleet|coordinators] [--seconds N] [--seed N] [--keep FOLDER]

Each side has processes that are killed, stopped in order and started again while it goes on; Holdfast's are also paused
for longer than their leases. Then the histories are judged: what the plain workers wrote down that they believed, what
stands in the files of Holdfast's sinks, and every change of every row from the table's stream.

  - Never do two believe in one row, and nothing was written into a sink while another believed.
  - No change of owner came before the lease of the one before had ended, or been given back.
  - Epochs only rise, and each claim of Holdfast's raises it.
  - Each side has taken over from the other: rows that were given back, and rows of those that died.
  - Every message of every connection is in a file.

`coordinators` is a table that others made: CoordenadoresEfemeros with tarefa_id, instancia_id, and expiracao in seconds.
Ends with 0 if all of that held; prints what it saw.
"""
import argparse
import ctypes
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from typing import Callable, NamedTuple, Optional

from beliefs import beliefs_of, both_at_once, spans_of_records
from dynamodb_server import Server
from plain_worker import Names, open_table
from row_history import changes_of, judge_changes

HERE = pathlib.Path(__file__).resolve().parent
ROWS = 8
RATE = 20  # messages a second of each stream: how closely Holdfast's histories follow what it did
HOLDFAST = ("h1", "h2")
PLAIN = ("p1", "p2", "p3")
HOLD_MAX = 3  # of each worker: together they can hold more than there is
PATIENCE_SECONDS = 120  # for one thing to happen on a busy machine
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_CONFIG_FILE": "/dev/null",
               "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true"}


class Kind(NamedTuple):
    names: Names       # as plain workers call things
    parameters: str    # of the store's URL
    table: str         # how its name begins
    plain_lease: float
    lease: float       # of Holdfast's workers
    skew: float


KINDS = {
    "fleet": Kind(Names(), "", "fleet", 2.0, 2.0, 0.2),
    # An expiry in whole seconds, cut off, says up to a second less than a plain worker meant. Rows have a state, since
    # connections have one; these plain workers do not look at it, and find rows by a scan.
    "coordinators": Kind(Names("tarefa_id", "instancia_id", "expiracao", 1, ""),
                         "&key=tarefa_id&owner=instancia_id&expires=expiracao&expires_unit=s", "CoordenadoresEfemeros",
                         4.0, 3.0, 0.2),
}


def dies_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Place:
    """A worker's name, and the processes that have it, one after another."""

    def __init__(self, start: Callable[[int], subprocess.Popen]) -> None:
        self._start = start
        self.starts = 0
        self.process: "Optional[subprocess.Popen]" = None
        self.free_at = 0.0  # not to be harmed before

    def start(self) -> None:
        self.starts += 1
        self.process = self._start(self.starts)

    def send(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def end(self, number: int) -> None:
        self.send(number)
        if self.process is not None:
            self.process.wait(PATIENCE_SECONDS)


class Contest:
    def __init__(self, options: argparse.Namespace, folder: pathlib.Path) -> None:
        self.kind = KINDS[options.names]
        self.options = options
        self.folder = folder
        self.drawn = random.Random(options.seed)
        self.did: Counter = Counter()
        self.failures: "list[str]" = []
        self._due: "list[tuple[float, Callable[[], None]]]" = []
        # Of our own: where DynamoDB Local has hundreds of tables, as after other tests, it takes minutes to add an index.
        self._server = Server("local")
        self.table = open_table(self._server.endpoint, f"{self.kind.table}-{os.urandom(8).hex()}", PATIENCE_SECONDS)
        self.url = (f"dynamodb://{self.table.name}?region=us-east-1&endpoint={self._server.endpoint}"
                    + self.kind.parameters)
        for name in ("out", "plain", "logs"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self.places = {name: Place(lambda n, name=name: self._start_holdfast(name, n)) for name in HOLDFAST}
        self.places.update({name: Place(lambda n, name=name: self._start_plain(name, n)) for name in PLAIN})
        self.feed: "Optional[subprocess.Popen]" = None

    # ---- processes ----

    def _environment(self) -> dict:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "HOLDFAST_"))}
        return {**kept, **ENVIRONMENT, "HOLDFAST_STORE": self.url}

    def _spawn(self, command: list, log: str, **more) -> subprocess.Popen:
        with open(self.folder / "logs" / log, "ab") as errors:
            return subprocess.Popen(  # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
                [str(part) for part in command], cwd=self.folder, env=self._environment(), stdin=subprocess.DEVNULL,
                stderr=errors, preexec_fn=dies_with_parent, **more)

    def _command(self, *arguments: str) -> str:
        done = subprocess.run([self.options.program, *arguments], cwd=self.folder, env=self._environment(),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_SECONDS,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(f"holdfast {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def _start_holdfast(self, name: str, number: int) -> subprocess.Popen:
        return self._spawn([self.options.program, "worker", "--id", name, "--lease", f"{self.kind.lease:g}s", "--skew",
                            f"{self.kind.skew:g}s", "--max-connections", HOLD_MAX, "--sink", "ndjson:out?fsync=never",
                            "--drain-timeout", "10s", "--log-level", "debug"], f"{name}-{number}.log")

    def _start_plain(self, name: str, number: int) -> subprocess.Popen:
        names = self.kind.names
        own = f"{name}-{number}"
        return self._spawn([sys.executable, HERE / "plain_worker.py", "--endpoint", self._server.endpoint, "--table",
                            self.table.name, "--name", own, "--out", self.folder / "plain" / f"{own}.ndjson", "--key",
                            names.key, "--owner", names.owner, "--expires", names.expires, "--expires-unit",
                            "ms" if names.per_second == 1000 else "s", "--state", names.state, "--lease",
                            self.kind.plain_lease, "--hold-max", HOLD_MAX, "--release-share", "0.1", "--key-prefix",
                            "CONN#"], f"{own}.log")

    def set_up(self) -> None:
        names = self.kind.names
        if not names.state:  # others made it, with its key and nothing else
            self.table.meta.client.create_table(
                TableName=self.table.name, BillingMode="PAY_PER_REQUEST",
                AttributeDefinitions=[{"AttributeName": names.key, "AttributeType": "S"}],
                KeySchema=[{"AttributeName": names.key, "KeyType": "HASH"}])
            self.table.wait_until_exists()
        print(self._command("init").strip())
        self.table.meta.client.update_table(TableName=self.table.name, StreamSpecification={
            "StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
        self.feed = self._spawn([self.options.program, "feed", "--port", "0", "--streams", ROWS, "--rate", RATE,
                                 "--history", "1000000"], "feed.log", stdout=subprocess.PIPE)
        port = int(self.feed.stdout.readline().decode().split("127.0.0.1:")[1].split("/")[0])
        lines = [json.dumps({"id": f"s{i}", "url": f"ws://127.0.0.1:{port}/stream/s{i}",
                             "options": {"resume.query": "since", "seq.pointer": "/seq"}}) for i in range(ROWS)]
        (self.folder / "connections.ndjson").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._command("conn", "import", "connections.ndjson")
        for place in self.places.values():
            place.start()

    # ---- what befalls them ----

    def contend(self) -> None:
        begin = time.monotonic()
        next_at, end = begin + 4.0, begin + self.options.seconds
        while True:
            if time.monotonic() >= end:
                # On a machine that is very busy there was too little of some kind so far.
                missing = self._missing(self._judge_rows()[0])
                if not missing or end > begin + 4 * self.options.seconds:
                    break
                end += 10
                print(f"10 s more, as {missing[0]}", flush=True)
            self._due.sort(key=lambda one: one[0])
            while self._due and self._due[0][0] <= time.monotonic():
                self._due.pop(0)[1]()
            if time.monotonic() >= next_at:
                self._harm()
                next_at = time.monotonic() + self.drawn.uniform(1.5, 3.5)
            self._see_that_all_live()
            time.sleep(0.05)
        for _, task in self._due:
            task()

    def _later(self, seconds: float, task: Callable[[], None]) -> None:
        self._due.append((time.monotonic() + seconds, task))

    def _harm(self) -> None:
        free = [name for name, place in self.places.items() if place.free_at <= time.monotonic()]
        if not free:
            return
        name = self.drawn.choice(free)
        place = self.places[name]
        what = self.drawn.choice(("kill", "drain", "pause") if name in HOLDFAST else ("kill", "drain"))
        seconds = self.drawn.uniform(0.2, 4.0)
        if what == "pause":
            seconds += self.kind.lease
            place.send(signal.SIGSTOP)
            self._later(seconds, lambda: place.send(signal.SIGCONT))
        else:
            place.end(signal.SIGKILL if what == "kill" else signal.SIGTERM)
            self._later(seconds, place.start)
        place.free_at = time.monotonic() + seconds + 6.0
        self.did[f"{'holdfast' if name in HOLDFAST else 'plain'}: {what}"] += 1

    def _ended_well(self, name: str) -> bool:
        """Whether its process ended as it may. SIGTERM ends one that has not come up at once."""
        place = self.places[name]
        code = place.process.poll()
        if code == -signal.SIGTERM:
            log = self.folder / "logs" / f"{name}-{place.starts}.log"
            return name in PLAIN or " info    worker " not in log.read_text(encoding="utf-8")
        return code in (0, -signal.SIGKILL)

    def _see_that_all_live(self) -> None:
        for name, place in self.places.items():
            if place.process.poll() is not None and not self._ended_well(name):
                raise RuntimeError(f"{name} ended with {place.process.poll()}: {self.folder}/logs/{name}-{place.starts}.log")

    def stop(self) -> None:
        for place in self.places.values():
            place.send(signal.SIGTERM)
        for name, place in self.places.items():
            place.process.wait(PATIENCE_SECONDS)
            if not self._ended_well(name):
                self.failures.append(f"{name} ended with {place.process.poll()} when it was asked to stop")

    def close(self) -> None:
        for place in self.places.values():
            place.end(signal.SIGKILL)
        if self.feed is not None:
            self.feed.kill()
            self.feed.wait()
        self._server.stop()

    # ---- the judgement ----

    def _beliefs(self) -> "list[Belief]":
        return beliefs_of((self.folder / "plain").glob("*.ndjson")) + spans_of_records(self.folder / "out")

    def _judge_rows(self) -> "tuple[Counter, list[str]]":
        def is_holdfast(owner: str) -> bool:
            return owner.startswith("h")
        return judge_changes(changes_of(self._server.endpoint, self.table), self.kind.names,
                             lambda owner: self.kind.lease if is_holdfast(owner) else self.kind.plain_lease, is_holdfast)

    @staticmethod
    def _missing(seen: Counter) -> "list[str]":
        wanted = [f"{direction}, {how}" for direction in ("plain → holdfast", "holdfast → plain")
                  for how in ("ended", "given back")]
        return [f"no row went {one}" for one in wanted if seen[one] == 0]

    def judge(self) -> None:
        beliefs = beliefs_of((self.folder / "plain").glob("*.ndjson")) + spans_of_records(self.folder / "out")
        self.failures += [f"two believe in one row: {one} and {other}" for one, other in both_at_once(beliefs)]
        seen, wrong = self._judge_rows()
        self.failures += wrong + self._missing(seen)
        messages = self._judge_messages()
        print(f"{len(beliefs)} beliefs, {messages} messages")
        for title, counts in (("rows", seen), ("done to them", self.did)):
            print(f"{title}:", ", ".join(f"{name}: {count}" for name, count in sorted(counts.items())))

    def _judge_messages(self) -> int:
        numbers: "dict[str, set[int]]" = {}
        for file in (self.folder / "out").glob("*.ndjson"):
            for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
                if not line.endswith("\n"):
                    continue
                record = json.loads(line)
                if "gap" in record:
                    self.failures.append(f"a gap although the upstream has all: {line.strip()}")
                else:
                    numbers.setdefault(record["conn"], set()).add(record["seq"])
        for conn, have in numbers.items():
            missing = sorted(set(range(1, max(have) + 1)) - have)
            if missing:
                self.failures.append(f"{conn}: {len(missing)} of {max(have)} messages are missing, the first is {missing[0]}")
        return sum(len(have) for have in numbers.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, metavar="FILE", help="the built holdfast")
    parser.add_argument("--names", choices=sorted(KINDS), default="fleet")
    parser.add_argument("--seconds", type=float, default=60.0, metavar="N", help="of contention [60]")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000), metavar="N")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="where files stay; on a failure they always do")
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    folder = (options.keep or pathlib.Path(tempfile.mkdtemp(prefix="holdfast-sharing-"))).resolve()
    print(f"sharing: {options.names}, {options.seconds:g} s, seed {options.seed}", flush=True)
    contest = Contest(options, folder)
    try:
        contest.set_up()
        contest.contend()
        contest.stop()
        contest.judge()
    finally:
        contest.close()
    if contest.failures:
        print(f"{len(contest.failures)} things are wrong; files are in {folder}:")
        print("\n".join(f"  {failure}" for failure in contest.failures[:20]))
        return 1
    if options.keep is None:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
