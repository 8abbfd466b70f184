#!/usr/bin/env python3
"""Real processes under real faults, and a judgement of what they did. See docs/trust.md.

Usage: ./dev chaos [--store sqlite|dynamodb] [--minutes M] [--seed N] [--json FILE] [--keep FOLDER]
"""
import argparse
import errno
import json
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter

import clocks
import schedule
from harm import LEFT_OUT
from round import Round, merged
from tables import DynamoTable, SqliteTable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from arguments import Parser  # noqa: E402: it is found by the line above

SHOWN_MAX = 20


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(prog="chaos", description="real processes under real faults, checked")
    parser.add_argument("--minutes", type=float, default=2.0, metavar="M", help="about how long [2]")
    parser.add_argument("--seed", type=int, default=None, metavar="N", help="draws the schedule [a random one, printed]")
    parser.add_argument("--store", choices=["sqlite", "dynamodb"], default="sqlite", help="what workers share [sqlite]")
    parser.add_argument("--json", metavar="FILE", help="the result as JSON")
    parser.add_argument("--keep", metavar="FOLDER", help="where tables, records and logs stay; on a failure they always do")
    parser.add_argument("--schedule", action="store_true", help="print what would be done, and end")
    parser.add_argument("--program", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if not 0.2 <= options.minutes <= 10_000:
        parser.error("--minutes is between 0.2 and 10000")
    return options


def commit() -> str:
    here = os.path.dirname(os.path.abspath(__file__))
    done = subprocess.run(["git", "-C", here, "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def table(title: str, counts: Counter) -> list[str]:
    width = max([len(name) for name in counts] + [1])
    return [title] + [f"  {name:<{width}}  {count:>8,}" for name, count in sorted(counts.items())]


def start_server(store: str, seed: int):
    """The server, if the store has one, and what makes a round's table."""
    if store == "sqlite":
        return None, SqliteTable
    from dynamodb_server import Server  # pylint: disable=import-outside-toplevel
    server = Server("local")
    return server, lambda folder: DynamoTable(server, schedule.WORKERS, f"{seed}/{folder}")


def own_folder(keep: str | None) -> str:
    """By its full name, since a worker may see it from a file system of its own; and empty: what an earlier run left
    behind would be judged with what this one does."""
    if not keep:
        return tempfile.mkdtemp(prefix="holdfast-chaos-")
    folder = os.path.abspath(keep)
    os.makedirs(folder, exist_ok=True)
    if os.listdir(folder):
        raise OSError(errno.ENOTEMPTY, "it is not empty")
    return folder


class Result:
    def __init__(self) -> None:
        self.injected, self.checked, self.facts = Counter(), Counter(), Counter()
        self.violations: list = []

    def add(self, number: int, one: Round) -> None:
        if one.harm:
            self.injected.update(one.harm.injected)
        self.checked.update(one.checked)
        self.facts = merged(self.facts, one.facts)
        self.violations += [(number, violation) for violation in one.violations]


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    seed = options.seed if options.seed is not None else secrets.randbelow(1_000_000)
    plans = schedule.rounds(seed, options.minutes, options.store)
    if options.schedule:
        print(f"seed {seed}")
        for plan in plans:
            print(f"{plan.seconds:.0f} s, clocks {'within' if plan.promised else 'beyond'} the promise")
            for event in plan.events:
                print(f"  {event.at:7.2f} s  {event.kind:<18} {event.target:<4} for {event.seconds:5.2f} s  {event.amount or ''}")
        return 0
    if options.json:
        try:  # before the run, not after it
            open(options.json, "w", encoding="utf-8").close()
        except OSError as fault:
            print(f"chaos: cannot write {options.json}: {fault.strerror}", file=sys.stderr)
            return 2
    try:
        folder = own_folder(options.keep)
    except OSError as fault:
        print(f"chaos: cannot keep anything in {options.keep}: {fault.strerror}", file=sys.stderr)
        return 2
    without: set[str] = set()
    again = f"./dev chaos --seed {seed} --minutes {options.minutes:g}" + (f" --store {options.store}" if options.store != "sqlite" else "")
    started = time.monotonic()
    print(f"chaos: seed {seed}, commit {commit()}, {len(plans)} rounds; to repeat: {again}", flush=True)
    library = clocks.build(folder)
    if not library:
        print("chaos: there is no C compiler, so clocks stay right")
        plans = [plan._replace(clocks={name: [clocks.Clock()] for name in plan.clocks}) for plan in plans]
        without.add("wrong clocks")
    server, make_table = start_server(options.store, seed)
    result, ended = Result(), True
    try:
        for number, plan in enumerate(plans, 1):
            where = os.path.join(folder, f"round-{number}")
            one = Round(plan, options.program, library, where, lambda words: print(f"chaos: {words}", flush=True), without, make_table)
            began = time.monotonic()
            try:
                one.run()
            finally:
                result.add(number, one)
            print(f"chaos: round {number}, {plan.seconds:.0f} s of faults, clocks {'within' if plan.promised else 'beyond'} the promise: "
                  f"{one.facts['records']:,} records, {sum(one.harm.injected.values()) - one.harm.injected[LEFT_OUT]} faults, "
                  f"{len(one.violations)} violations, {time.monotonic() - began:.0f} s", flush=True)
            if not one.violations and not options.keep:
                shutil.rmtree(where, ignore_errors=True)
    except (KeyboardInterrupt, SystemExit):
        ended = False
        print("\nchaos: interrupted: all processes were ended", flush=True)
    finally:
        if server:
            server.stop()
    seconds = time.monotonic() - started
    print("\n".join([""] + table("Injected", result.injected) + [""] + table("Checked", result.checked) + [""] + table("Seen", result.facts) + [""]))
    bad = bool(result.violations)
    if bad:
        print(f"{len(result.violations)} violations:")
        for number, violation in result.violations[:SHOWN_MAX]:
            print(f"  round {number}  {violation.rule}: {violation.text}")
        if len(result.violations) > SHOWN_MAX:
            print(f"  and {len(result.violations) - SHOWN_MAX} more: see {folder}/result.json")
        print(f"All files are in {folder}. To repeat: {again}")
    elif ended:
        print(f"Nothing was violated in {seconds:.0f} s. Seed {seed}.")
    document = {"store": options.store, "seed": seed, "commit": commit(), "minutes": options.minutes, "seconds": round(seconds), "complete": ended,
                "not_possible_here": sorted(without), "injected": dict(result.injected), "checked": dict(result.checked),
                "seen": dict(result.facts),
                "violations": [{"round": number, "rule": each.rule, "text": each.text} for number, each in result.violations]}
    for path in ([options.json] if options.json else []) + ([os.path.join(folder, "result.json")] if bad or options.keep else []):
        with open(path, "w", encoding="utf-8") as out:
            json.dump(document, out, indent=2)
            out.write("\n")
    if not bad and not options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if bad else 0 if ended else 130


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(sys.argv[1:]))
