#!/usr/bin/env python3
"""Small wrong changes to the code, one at a time: each must be noticed by a test or a seed.

Usage: tools/mutants.py [--check | --list] [--work FOLDER] [--jobs N] [--json FILE] [NAME...]

Reads tests/mutants/mutants.toml. Works on a copy of the sources in FOLDER (build/mutants), which keeps its build
between runs; the sources themselves are not touched. First every program that is to notice something must pass
on the code as it is. NAME picks the mutants whose name contains it. --check only looks whether each still fits
the code. Exits 1 where one survives, no longer fits or does not compile.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIST = ROOT / "tests/mutants/mutants.toml"
TIME_LIMIT_S = 600  # of one program; a mutant that makes it wait for ever is noticed, too


@dataclasses.dataclass
class Mutant:
    name: str
    rule: str
    file: str
    before: str
    after: str
    killers: list[str]


def read_list() -> list[Mutant]:
    entries = tomllib.loads(LIST.read_text())["mutant"]
    return [Mutant(e["name"], e["rule"], e["file"], e["from"], e["to"], e["killers"]) for e in entries]


def misfits(mutants: list[Mutant]) -> list[str]:
    found = []
    names = [mutant.name for mutant in mutants]
    for mutant in mutants:
        path = ROOT / mutant.file
        count = path.read_text().count(mutant.before) if path.is_file() else 0
        if count != 1:
            found.append(f"'{mutant.name}': its text is {count} times in {mutant.file}, not once")
        if mutant.before == mutant.after:
            found.append(f"'{mutant.name}' changes nothing")
        if names.count(mutant.name) != 1:
            found.append(f"'{mutant.name}' is there twice")
        if not mutant.killers:
            found.append(f"'{mutant.name}' names nothing that would notice it")
    return found


def copy_sources(work: pathlib.Path) -> None:
    """The files that git knows or would know, newer ones only, so that the build there stays valid."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, check=True).stdout.decode().split("\0")
    wanted = {name for name in listed if name and (ROOT / name).is_file()}
    for name in sorted(wanted):
        source, target = ROOT / name, work / name
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    for folder in ("src", "include", "tests", "examples", "bench", "cmake"):
        for path in (work / folder).rglob("*"):
            if path.is_file() and str(path.relative_to(work)) not in wanted:
                path.unlink()


class Workshop:
    def __init__(self, work: pathlib.Path, jobs: int):
        self.work, self.jobs = work, jobs
        self.build_folder = work / "build/dev"

    def configure(self) -> None:
        subprocess.run(["cmake", "--preset", "dev", "-DHOLDFAST_TESTS=ON"], cwd=self.work, check=True,
                       stdout=subprocess.DEVNULL)

    def build(self, programs: list[str]) -> tuple[bool, str]:
        done = subprocess.run(["cmake", "--build", str(self.build_folder), "-j", str(self.jobs), "--target", *programs],
                              cwd=self.work, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return done.returncode == 0, done.stdout + done.stderr

    def run(self, killer: str) -> tuple[bool, str]:
        """Whether it passed, and what it said first of a failure."""
        program, _, rest = killer.partition(" ")
        arguments = rest.split()
        if program.endswith("_tests"):
            arguments = ["--gtest_brief=1", "--gtest_fail_fast"] + [f"--gtest_filter={a}" for a in arguments]
        try:
            done = subprocess.run([str(self.build_folder / "bin" / program), *arguments], cwd=self.work,
                                  capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
                                  timeout=TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            return False, f"{killer}: not done within {TIME_LIMIT_S} s"
        if done.returncode == 0:
            return True, ""
        for line in (done.stdout + done.stderr).splitlines():
            if line.startswith("[  FAILED  ]"):
                return False, line.removeprefix("[  FAILED  ] ").split(" (")[0]
        last = (done.stdout + done.stderr).strip().splitlines()
        return False, f"{killer}: exit {done.returncode}: {last[-1][:160] if last else ''}"


def try_mutant(shop: Workshop, mutant: Mutant) -> tuple[str, str]:
    """killed, survived or broken; and by whom or why."""
    path = shop.work / mutant.file
    right = path.read_text()
    path.write_text(right.replace(mutant.before, mutant.after))
    try:
        for killer in mutant.killers:
            built, words = shop.build([killer.split(" ")[0]])
            if not built:
                errors = [line for line in words.splitlines() if "error" in line]
                return "broken", "it does not compile: " + (errors[0] if errors else words[-200:])
            passed, who = shop.run(killer)
            if not passed:
                return "killed", who
        return "survived", ", ".join(mutant.killers) + " passed"
    finally:
        path.write_text(right)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()

    mutants = read_list()
    wrong = misfits(mutants)
    for line in wrong:
        print(f"mutants: {line}", file=sys.stderr)
    if wrong or options.check:
        return 1 if wrong else 0
    if options.names:
        mutants = [mutant for mutant in mutants if any(name in mutant.name for name in options.names)]
        if not mutants:
            print("mutants: none has such a name", file=sys.stderr)
            return 2
    if options.list:
        for mutant in mutants:
            print(f"{mutant.rule:10} {mutant.name}  ({mutant.file}; {', '.join(mutant.killers)})")
        return 0

    copy_sources(options.work)
    shop = Workshop(options.work, options.jobs)
    shop.configure()
    killers = sorted({killer for mutant in mutants for killer in mutant.killers})
    print(f"mutants: building {len(killers)} programs as they are", flush=True)
    built, words = shop.build(sorted({killer.split(' ')[0] for killer in killers}))
    if not built:
        print(words[-4000:], file=sys.stderr)
        return 1
    for killer in killers:
        passed, who = shop.run(killer)
        if not passed:
            print(f"mutants: {killer} fails on the code as it is ({who}): nothing can be learned", file=sys.stderr)
            return 1

    results = []
    for mutant in mutants:
        started = time.monotonic()
        verdict, who = try_mutant(shop, mutant)
        results.append({"name": mutant.name, "rule": mutant.rule, "file": mutant.file, "verdict": verdict, "by": who})
        print(f"{verdict:9} {time.monotonic() - started:5.0f} s  {mutant.rule:9} {mutant.name}\n"
              f"                    {who}", flush=True)
    bad = [result for result in results if result["verdict"] != "killed"]
    print(f"mutants: {len(results)} tried, {len(results) - len(bad)} killed, {len(bad)} not")
    if options.json:
        options.json.write_text(json.dumps({"tried": len(results), "mutants": results}, indent=1) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
