"""What a result file of ctest's (--output-junit) says: for ./dev check.

  test_results.py counts FILE    one line: passed failed skipped
  test_results.py failed FILE    each test that failed, and the end of what it printed
"""
import sys
import xml.etree.ElementTree as ElementTree

from arguments import Parser

LINES_MAX = 40  # of one test: enough for an assertion and what led to it
TESTS_MAX = 10


def cases(file: str) -> list[ElementTree.Element]:
    return list(ElementTree.parse(file).getroot().iter("testcase"))


def counts(tests: list[ElementTree.Element]) -> tuple[int, int, int]:
    states = [test.get("status") for test in tests]
    return states.count("run"), states.count("fail"), len(states) - states.count("run") - states.count("fail")


def failed(tests: list[ElementTree.Element]) -> list[str]:
    lines = []
    failures = [test for test in tests if test.get("status") == "fail"]
    for test in failures[:TESTS_MAX]:
        printed = (test.findtext("system-out") or "").rstrip().splitlines()
        lines.append(f"---- failed: {test.get('name')}")
        if len(printed) > LINES_MAX:
            lines.append(f"     ({len(printed) - LINES_MAX} earlier lines are left out)")
        lines.extend(printed[-LINES_MAX:])
    lines.extend(f"---- failed: {test.get('name')}" for test in failures[TESTS_MAX:])
    return lines


def main() -> None:
    parser = Parser(prog="test_results", description="What a result file of ctest's says.")
    parser.add_argument("what", choices=["counts", "failed"])
    parser.add_argument("file")
    arguments = parser.parse_args()
    tests = cases(arguments.file)
    if arguments.what == "counts":
        print(*counts(tests))
    else:
        print("\n".join(failed(tests)))


if __name__ == "__main__":
    main()
