#!/usr/bin/env python3
"""Brings the --help texts in docs/cli.md up to date.

Usage: tools/cli_reference.py [PROGRAM]      (default: build/holdfast)

A block that begins with `$ holdfast … --help` is replaced by what the program prints now; the words around it stay.
The test CliReference fails where the two differ.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```\n\$ holdfast ((?:[a-z-]+ )*)--help\n.*?^```$", re.S | re.M)


def main() -> int:
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build" / "holdfast")
    page = ROOT / "docs" / "cli.md"

    def current(match: re.Match) -> str:
        command = match.group(1)
        text = subprocess.run([program, *command.split(), "--help"], check=True, capture_output=True, text=True).stdout
        return f"```\n$ holdfast {command}--help\n{text}```"

    text = page.read_text(encoding="utf-8")
    page.write_text(BLOCK.sub(current, text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
