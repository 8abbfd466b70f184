#!/usr/bin/env python3
"""clang-tidy over this repository's sources, remembering what it has already seen.

Usage: tools/lint/tidy.py --build FOLDER [--jobs N] [--all] [FILE...]

Takes the files of src/, bench/ and examples/ (or those named) and the compile commands of a build folder that
clang was configured for. A file is looked at again only when it, a header of ours that it includes, .clang-tidy
or its compile command has changed: results that found nothing are kept in FOLDER/tidy. Exits 1 where it found
something.
"""
import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("src", "bench", "examples")
# Only Boost's own code in it: minutes of analysis of what is not ours.
LEFT_OUT = {"src/runtime/asio.cpp"}
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)


def resolve(name: str) -> pathlib.Path | None:
    for folder in (ROOT / "src", ROOT / "include", ROOT / "bench", ROOT / "tests"):
        if (folder / name).is_file():
            return folder / name
    return None


class Seen:
    """What the result for a file depends on, as one digest."""

    def __init__(self, common: bytes):
        self.common = common
        self.contents: dict[pathlib.Path, bytes] = {}

    def read(self, path: pathlib.Path) -> bytes:
        if path not in self.contents:
            self.contents[path] = path.read_bytes()
        return self.contents[path]

    def digest(self, path: pathlib.Path, command: str) -> str:
        files, waiting = set(), [path]
        while waiting:
            current = waiting.pop()
            if current in files:
                continue
            files.add(current)
            for name in INCLUDE.findall(self.read(current)):
                found = resolve(name.decode())
                if found:
                    waiting.append(found)
        total = hashlib.sha256(self.common + command.encode())
        for file in sorted(files):
            total.update(str(file.relative_to(ROOT)).encode() + b"\0" + self.read(file) + b"\0")
        return total.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="look at every file again")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    options = parser.parse_args()

    commands = {pathlib.Path(entry["file"]).resolve(): entry["command"]
                for entry in json.loads((options.build / "compile_commands.json").read_text())}
    if options.files:
        files = [path.resolve() for path in options.files]
    else:
        files = [path for path in sorted(commands)
                 if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in FOLDERS
                 and str(path.relative_to(ROOT)) not in LEFT_OUT]

    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    seen = Seen(version + (ROOT / ".clang-tidy").read_bytes())
    kept = options.build / "tidy"
    kept.mkdir(parents=True, exist_ok=True)
    printing = threading.Lock()

    def look(path: pathlib.Path) -> bool:
        mark = kept / seen.digest(path, commands.get(path, ""))
        if mark.exists() and not options.all:
            return True
        started = time.monotonic()
        done = subprocess.run(["clang-tidy", "-p", str(options.build), "--quiet", str(path)],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        good = done.returncode == 0 and "warning:" not in done.stdout
        with printing:
            if good:
                print(f"{time.monotonic() - started:5.1f} s  {path.relative_to(ROOT)}", flush=True)
            else:
                # Its "N warnings generated" lines on standard error are of system headers.
                errors = [line for line in done.stderr.splitlines() if not re.match(r"\d+ (warnings?|errors?)\b", line)]
                print(done.stdout.replace(f"{ROOT}/", ""), "\n".join(errors), sep="", flush=True)
        if good:
            mark.touch()
        return good

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(look, files))
    bad = results.count(False)
    print(f"clang-tidy: {len(results)} files, {bad} with faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
