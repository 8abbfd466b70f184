#!/usr/bin/env python3
"""Verifies spec/lease.pml with spin, and shows that every variant that is wrong on purpose is refuted.

Usage: spec/verify.py [--build FOLDER] [--jobs N] [--quick] [--show NAME] [NAME...]

Right models are searched exhaustively: a search that was cut short (depth, memory) is a failure, never a pass. Prints
one line for each run: states, depth and time, or the property that broke and the steps that lead there. --show prints
those steps. --quick leaves out what takes a minute or more. Exits 1 when a right one fails or a wrong one survives.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
MODEL = HERE / "lease.pml"
DEPTH_MAX = 400_000
MEMORY_MB_MAX = 3500
SECONDS_MAX = 600


class Run(NamedTuple):
    name: str
    defines: str
    breaks: str  # the property that must break; empty: none may
    about: str


RIGHT = [
    Run("promised-clocks", "EPOCHS=2 CRASHES", "", "clocks within the promise, workers crash"),
    Run("wild-clocks", "EPOCHS=2 WILD", "", "wall clocks beyond the promise: S2, S3, S5, S6"),
    Run("progress", "EPOCHS=1 CALM CRASHES", "", "a free row; faults stop: somebody believes in it, in bounded time"),
    Run("progress-after-a-crash", "EPOCHS=2 CALM ORPHANED_BY_A_CRASH", "", "its owner has crashed: the same"),
]
LONG = ("wild-clocks",)
# What is without effect in the right model may well have one in a wrong one.
PLAIN = "NOTHING_IS_WITHOUT_EFFECT EPOCHS=2"
WRONG = [
    Run("belief-from-the-reply", f"{PLAIN} S1_ONLY BELIEF_FROM_THE_REPLY", "S1", "belief is counted from the reply"),
    Run("takeover-without-skew", f"{PLAIN} S1_ONLY TAKEOVER_WITHOUT_SKEW", "S1", "others take over at the expiry"),
    Run("no-margin", f"{PLAIN} S1_ONLY NO_MARGIN", "S1", "no margin for slow monotonic clocks"),
    Run("timer-only", f"{PLAIN} S1_ONLY BELIEF_ENDS_ON_A_TIMER_ONLY", "S1", "a paused process acts before it looks at its clock"),
    Run("settled-by-the-latest", f"{PLAIN} S1_ONLY SETTLED_BY_THE_LATEST_TRY", "S1", "a lost success is counted from the latest try"),
    Run("release-unconditional", f"{PLAIN} RELEASE_WITHOUT_CONDITION", "S4", "a late release frees the successor's lease"),
    Run("renewal-takes-back", f"{PLAIN} RENEW_TAKES_BACK", "S4", "a late duplicate lowers the expiry"),
    Run("no-fence", f"{PLAIN} NO_FENCE", "S2", "a checkpoint is accepted whoever owns the row"),
    Run("renewal-without-epoch", "NOTHING_IS_WITHOUT_EFFECT EPOCHS=3 WILD RENEW_WITHOUT_EPOCH", "S2", "renewal is conditional on the owner only"),
    Run("release-resets-epoch", f"{PLAIN} RELEASE_RESETS_THE_EPOCH", "S3", "a release begins the epochs anew"),
    Run("claim-unpinned", f"{PLAIN} CLAIM_WITHOUT_WHAT_WAS_SEEN", "S3", "a claim is not conditional on what was seen"),
    Run("new-attempt-per-try", f"{PLAIN} A_NEW_ATTEMPT_PER_TRY", "S5", "unknown counts as failed: a new attempt id"),
    Run("unknown-is-loss", f"{PLAIN} UNKNOWN_IS_LOSS", "S6", "a renewal without an answer is a loss"),
    Run("claim-only-free", "EPOCHS=2 CALM ORPHANED_BY_A_CRASH CLAIM_ONLY_WHAT_IS_FREE", "progress", "what a crashed worker held is never taken over"),
]


class Failed(Exception):
    """A tool did not do its work; what it said is the argument."""


class Found(NamedTuple):
    broken: str  # property, or empty
    states: int
    depth: int
    seconds: float


def run_tool(command: list[str], folder: pathlib.Path, seconds: int = SECONDS_MAX) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"{command[0]} took longer than {seconds} s") from None
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def options_of(run: Run) -> list[str]:
    return [f"-D{define}" for define in run.defines.split()]


def verify(run: Run, folder: pathlib.Path) -> Found:
    folder.mkdir(parents=True, exist_ok=True)
    for old in [*folder.glob("*.trail"), folder / "pan"]:
        old.unlink(missing_ok=True)
    run_tool(["spin", *options_of(run), "-a", str(MODEL)], folder)
    # Wrong ones breadth first: then no counterexample is shorter.
    search = ["-DBFS"] if run.breaks else []
    run_tool(["gcc", "-O2", "-w", "-DSAFETY", "-DNOFAIR", f"-DMEMLIM={MEMORY_MB_MAX}", *search, "-o", "pan", "pan.c"], folder)
    started = time.monotonic()
    said = run_tool(["./pan", "-n", f"-m{DEPTH_MAX}", "-w22"], folder)
    (folder / "pan.log").write_text(said, encoding="utf-8")
    return read(said, time.monotonic() - started)


def read(said: str, seconds: float) -> Found:
    """What pan found. Raises where the search was not complete and found nothing either."""
    broken = re.search(r"pan:\d+: (.*) \(at depth (\d+)\)", said)
    errors = re.search(r"depth reached (\d+), errors: (\d+)", said)
    states = re.search(r"^\s*(\d+) states, stored", said, re.M)
    if not errors or not states:
        raise Failed(f"pan did not say what it found:\n{said[-2000:]}")
    what = ""
    if int(errors.group(2)) > 0:
        name = re.search(r"assertion violated \(?(\w+)", broken.group(1)) if broken else None
        what = name.group(1) if name else (broken.group(1) if broken else "an error without a name")
    elif any(words in said for words in ("max search depth too small", "Search not completed", "out of memory", "hit the memory")):
        raise Failed("the search was cut short, so nothing is verified; pan says:\n" + said[-2000:])
    elif "Full statespace search" not in said:
        raise Failed("this was no full search; pan says:\n" + said[-2000:])
    return Found(what, int(states.group(1)), int(errors.group(1)), seconds)


def judge(run: Run, found: Found) -> str:
    """Empty: as it must be."""
    if not run.breaks:
        return f"broke {found.broken}" if found.broken else ""
    if not found.broken:
        return "SURVIVED: the model does not notice"
    return "" if found.broken.startswith(run.breaks) else f"broke {found.broken}, but {run.breaks} was to break"


def steps_of(run: Run, folder: pathlib.Path) -> str:
    trails = list(folder.glob("*.trail"))
    if not trails:
        return "    (nothing broke)"
    said = run_tool(["spin", *options_of(run), "-B", "-k", str(trails[0]), str(MODEL)], folder)
    told = [line.strip() for line in said.splitlines()]
    steps = [line for line in told if re.match(r"worker|the table|the network|a tick|faults", line)]
    return "\n".join(f"    {number:2} {step}" for number, step in enumerate(steps, 1))


def tell(run: Run, found: Found, folder: pathlib.Path) -> str:
    fault = judge(run, found)
    if fault:
        return f"FAILED    {run.name}: {run.about}\n          {fault}"
    if run.breaks:
        steps = len(steps_of(run, folder).splitlines())
        return f"refuted   {run.name:24} {found.broken}, {steps} steps ({run.about})"
    return f"verified  {run.name:24} {found.states} states, depth {found.depth}, {found.seconds:.1f} s ({run.about})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build" / "spec", help="where pan is made")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="so many at once; each takes up to 2 GB")
    parser.add_argument("--quick", action="store_true", help=f"without {', '.join(LONG)}")
    parser.add_argument("--show", metavar="NAME", help="this run, with the steps to what broke")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these runs")
    options = parser.parse_args()
    names = options.names + ([options.show] if options.show else [])
    unknown = set(names) - {run.name for run in RIGHT + WRONG}
    if unknown:
        print(f"spec: there is no run '{min(unknown)}': {', '.join(run.name for run in RIGHT + WRONG)}", file=sys.stderr)
        return 2
    chosen = [run for run in RIGHT + WRONG if (run.name in names if names else not (options.quick and run.name in LONG))]

    def carry_out(run: Run) -> tuple[str, bool]:
        folder = options.build / run.name
        try:
            found = verify(run, folder)
        except Failed as failure:
            return f"FAILED    {run.name}: {run.about}\n          {failure}", False
        told = tell(run, found, folder)
        if options.show == run.name:
            told += "\n" + steps_of(run, folder)
        return told, not judge(run, found)

    failures = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for told, good in pool.map(carry_out, chosen):
            print(told, flush=True)
            failures += not good
    print(f"spec: {'all as it must be' if failures == 0 else f'{failures} not as it must be'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
