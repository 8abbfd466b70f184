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
import shutil
import subprocess
import sys
import time
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
from arguments import Parser, at_least_one  # noqa: E402: it is found by the line above
MODEL = HERE / "lease.pml"
DEPTH_MAX = 400_000
MEMORY_MB_MAX = 4000
SECONDS_MAX = 600


class Run(NamedTuple):
    name: str
    defines: str
    breaks: str  # the property that must break; empty: none may
    about: str


RIGHT = [
    Run("promised-clocks", "EPOCHS=2 CRASHES", "", "clocks within the promise, workers crash"),
    Run("longer-lease", "EPOCHS=2 CRASHES LEASE=3", "", "the same with a lease of 3 ticks"),
    Run("wild-clocks", "EPOCHS=2 WILD", "", "wall clocks beyond the promise: S2, S3, S5, S6"),
    Run("edited-once-held", "EPOCHS=1 EDITS CRASHES", "", "rows are edited and shortened; one ownership"),
    Run("edited-rows", "EPOCHS=2 EDITS CRASHES", "", "rows are edited and shortened"),
    Run("three-requests", "EPOCHS=2 CRASHES NET=3", "", "three requests on their way at once"),
    Run("three-workers", "EPOCHS=2 WORKERS=3", "", "three workers"),
    Run("nothing-made-one", "EPOCHS=1 CRASHES NOTHING_IS_WITHOUT_EFFECT RENEWALS=2", "", "states as they are, nothing pruned; two tries of renewals"),
    Run("progress", "EPOCHS=1 CALM CRASHES", "", "a free row; faults stop: somebody believes in it, in bounded time"),
    Run("progress-after-a-crash", "EPOCHS=2 CALM ORPHANED_BY_A_CRASH", "", "its owner has crashed: the same"),
    Run("progress-after-edits", "EPOCHS=1 CALM EDITS", "", "it was edited: its holder puts it right, and goes on"),
    Run("progress-after-a-shortening", "EPOCHS=2 CALM EDITS ORPHANED_BY_A_CRASH", "", "its owner has crashed, its expiry is far ahead"),
]
LONG = ("longer-lease", "edited-rows", "three-requests", "three-workers", "nothing-made-one")
# What is without effect in the right model may well have one in a wrong one. Numbers are not limited then, nor are states.
PLAIN = "NOTHING_IS_WITHOUT_EFFECT EPOCHS=2"
WRONG = [
    Run("belief-from-the-reply", f"{PLAIN} S1_ONLY BELIEF_FROM_THE_REPLY", "S1", "belief is counted from the reply"),
    Run("takeover-without-skew", f"{PLAIN} S1_ONLY TAKEOVER_WITHOUT_SKEW", "S1", "others take over at the expiry"),
    Run("no-margin", f"{PLAIN} S1_ONLY NO_MARGIN", "S1", "no margin for slow monotonic clocks"),
    Run("timer-only", f"{PLAIN} S1_ONLY BELIEF_ENDS_ON_A_TIMER_ONLY", "S1", "a paused process acts before it looks at its clock"),
    Run("settled-by-the-latest", f"{PLAIN} S1_ONLY SETTLED_BY_THE_LATEST_TRY", "S1", "a lost success is counted from the latest try"),
    Run("renewal-settled-by-the-latest", f"{PLAIN} EDITS RENEWAL_SETTLED_BY_THE_LATEST_TRY", "S4", "so is a renewal's, after somebody edited its number"),
    Run("release-unconditional", f"{PLAIN} RELEASE_WITHOUT_CONDITION", "S4", "a late release frees the successor's lease"),
    Run("claim-after-an-unseen-release", f"{PLAIN} CLAIMS_AGAIN_WHAT_IT_GAVE_BACK_UNSEEN", "S4", "a claim of unknown fate is released, then made anew"),
    Run("renewal-without-number", f"{PLAIN} RENEWAL_WITHOUT_NUMBER", "S4", "a late duplicate of a renewal takes back what a newer one promised"),
    Run("one-number-for-all-tries", f"{PLAIN} ONE_NUMBER_FOR_ALL_TRIES EQUAL_NUMBERS_PASS", "S4", "a retry has the number of the first try, and is let through"),
    Run("claim-applied-again", f"{PLAIN} A_CLAIM_APPLIED_ONCE_MAY_BE_AGAIN", "S4", "a late duplicate of a claim begins the numbers anew"),
    Run("shortened-without-number", f"{PLAIN} EDITS SHORTENED_WITHOUT_THE_NUMBER", "S4", "conn release is conditional on owner and expiry only"),
    Run("shortened-unconditionally", f"{PLAIN} EDITS SHORTENED_WHATEVER_IS_THERE", "S4", "conn release is conditional on the owner only"),
    Run("shortened-to-nothing", f"{PLAIN} EDITS SHORTENED_TO_NOTHING", "S4", "conn release frees at once"),
    Run("shortened-too-much", f"{PLAIN} EDITS SHORTENED_TO_LESS_THAN_A_LEASE", "S4", "conn release leaves less than a lease"),
    Run("number-removed", f"{PLAIN} EDITS THE_NUMBER_IS_REMOVED", "S4", "not promised: somebody removes the number of what is held"),
    Run("no-fence", f"{PLAIN} NO_FENCE", "S2", "a checkpoint is accepted whoever owns the row"),
    Run("renewal-without-epoch", f"{PLAIN} RENEWAL_WITHOUT_EPOCH", "S2", "renewal is conditional on the owner only"),
    Run("release-resets-epoch", f"{PLAIN} RELEASE_RESETS_THE_EPOCH", "S3", "a release begins the epochs anew"),
    Run("claim-unpinned", f"{PLAIN} CLAIM_WITHOUT_WHAT_WAS_SEEN", "S3", "a claim is not conditional on what was seen"),
    Run("new-attempt-per-try", f"{PLAIN} A_NEW_ATTEMPT_PER_TRY", "S5", "unknown counts as failed: a new attempt id"),
    Run("unknown-is-loss", f"{PLAIN} UNKNOWN_IS_LOSS", "S6_only", "a renewal without an answer is a loss"),
    Run("claim-leaves-the-number", f"{PLAIN} A_CLAIM_LEAVES_THE_NUMBER", "S6_a_holder", "the next owner's renewals are refused by the number of the last one's"),
    Run("claim-only-free", f"{PLAIN} CALM ORPHANED_BY_A_CRASH CLAIM_ONLY_WHAT_IS_FREE", "progress_someone", "what a crashed worker held is never taken over"),
    Run("renewal-never-lowers", f"{PLAIN} CALM EDITS RENEWAL_NEVER_LOWERS", "progress_an_expiry", "an expiry far ahead stays"),
    Run("refused-is-settled", f"{PLAIN} CALM EDITS REFUSED_BY_ITS_NUMBER_IS_ALL", "progress_who", "a renewal that its number is too low for is not made again"),
    Run("due-after-the-latest-try", f"{PLAIN} CALM DUE_AFTER_THE_LATEST_TRY", "progress_who", "the next renewal is due an interval after a try that counts less"),
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
    # Wrong ones breadth first: then no counterexample is shorter. Most searches are shorter than what -O2 takes.
    search = ["-O0", "-DBFS"] if run.breaks else ["-O2"] if run.name in LONG else ["-O1"]
    run_tool(["gcc", *search, "-w", "-DSAFETY", "-DNOFAIR", f"-DMEMLIM={MEMORY_MB_MAX}", "-o", "pan", "pan.c"], folder)
    started = time.monotonic()
    table = "-w24" if run.name in LONG else "-w22"
    said = run_tool(["./pan", "-n", f"-m{DEPTH_MAX}", table], folder)
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
    steps = [line for line in told if re.match(r"worker|the table|the network|people|a tick|faults", line)]
    return "\n".join(f"    {number:2} {step}" for number, step in enumerate(steps, 1))


def tell(run: Run, found: Found, folder: pathlib.Path) -> str:
    fault = judge(run, found)
    if fault:
        return f"FAILED    {run.name}: {run.about}\n          {fault}"
    if run.breaks:
        steps = len(steps_of(run, folder).splitlines())
        return f"refuted   {run.name:30} {found.broken}, {steps} steps ({run.about})"
    return f"verified  {run.name:30} {found.states} states, depth {found.depth}, {found.seconds:.1f} s ({run.about})"


def main() -> int:
    parser = Parser(prog="spec", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build" / "spec", help="where pan is made")
    parser.add_argument("--jobs", type=at_least_one, default=os.cpu_count() or 1, help="so many at once; each takes up to 4 GB")
    parser.add_argument("--quick", action="store_true", help=f"without {', '.join(LONG)}")
    parser.add_argument("--show", metavar="NAME", help="this run, with the steps to what broke")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these runs")
    options = parser.parse_args()
    names = options.names + ([options.show] if options.show else [])
    unknown = set(names) - {run.name for run in RIGHT + WRONG}
    if unknown:
        print(f"spec: there is no run '{min(unknown)}': {', '.join(run.name for run in RIGHT + WRONG)}", file=sys.stderr)
        return 2
    missing = [tool for tool in ("spin", "gcc") if not shutil.which(tool)]
    if missing:
        print(f"spec: {' and '.join(missing)} cannot be found: ./dev setup spec installs what it takes", file=sys.stderr)
        return 1
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
