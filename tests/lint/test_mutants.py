"""tools/mutants.py tells what was noticed from what was not, and leaves everything as it found it."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "mutants.py"
LIMIT_S = 90  # for what takes a moment

FILES = {
    ".gitignore": "/build/\n",
    "CMakeLists.txt": """
cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
add_executable(sum_tests src/sum.cpp tests/sum.cpp)
add_executable(other_tests tests/other.cpp)
add_executable(holdfast_sim src/sum.cpp tests/sim.cpp)
""",
    "src/sum.cpp": """
int sum(int a, int b) {
  return a + b;
}
""",
    "tests/sum.cpp": """
#include <cstdio>
int sum(int, int);
int main() {
  if (sum(2, 3) == 5) return 0;
  std::puts("[  FAILED  ] Sum.adds (0 ms)");
  return 1;
}
""",
    "tests/other.cpp": "int main() { return 0; }\n",
    "tests/sim.cpp": """
#include <cstdio>
int sum(int, int);
int main() {
  if (sum(0, 0) == 0) return 0;
  std::puts("BROKEN: S1: nothing and nothing are something");
  return 1;
}
""",
    "tests/mutants/mutants.toml": """
[[mutant]]
name = "wrong sum"
rule = "S1"
file = "src/sum.cpp"
from = "a + b"
to = "a - b"
killers = ["other_tests", "sum_tests"]

[[mutant]]
name = "harmless"
rule = "S1"
file = "src/sum.cpp"
from = "a + b"
to = "b + a"
killers = ["sum_tests", "other_tests"]

[[mutant]]
name = "noticed by both"
rule = "S1"
file = "src/sum.cpp"
from = "a + b"
to = "a + b + 1"
killers = ["sum_tests"]
seeds = "1..2"

[[mutant]]
name = "noticed by the tests alone"
rule = "S1"
file = "src/sum.cpp"
from = "a + b"
to = "a - b"
killers = ["sum_tests"]
seeds = "1..2"

[[mutant]]
name = "no program"
rule = "S2"
file = "src/sum.cpp"
from = "a + b"
to = "a + c"
killers = ["sum_tests"]

[[mutant]]
name = "a crash"
rule = "S3"
file = "src/sum.cpp"
from = "return a + b;"
to = "__builtin_trap();"
killers = ["sum_tests"]

[[mutant]]
name = "an endless loop"
rule = "S3"
file = "src/sum.cpp"
from = "return a + b;"
to = "for (volatile int i = a + b;; i = i + 1) {}"
killers = ["sum_tests"]

[[mutant]]
name = "waits to be interrupted"
rule = "S4"
file = "src/sum.cpp"
from = '''
int sum(int a, int b) {
'''
to = '''
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>
int sum(int a, int b) {
  const std::string name = std::getenv("WAITS");
  std::FILE* const file = std::fopen((name + ".new").c_str(), "w");
  std::fprintf(file, "%d", getpid());
  std::fclose(file);
  std::rename((name + ".new").c_str(), name.c_str());
  for (;;) pause();
'''
killers = ["sum_tests"]
""",
}


class Project(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "project"
        self.waits = pathlib.Path(folder.name) / "waits"
        for name, text in FILES.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        subprocess.run(["git", "init", "-q", "."], cwd=self.root, check=True)
        self.before = self.sources()
        self.addCleanup(lambda: self.assertEqual(self.before, self.sources(), "the sources are never touched"))

    def sources(self) -> dict[str, tuple[bytes, int]]:
        return {name: ((self.root / name).read_bytes(), (self.root / name).stat().st_mtime_ns) for name in FILES}

    def start(self, *arguments: str) -> subprocess.Popen:
        environment = {**os.environ, "WAITS": str(self.waits)}
        return subprocess.Popen([sys.executable, str(TOOL), "--root", str(self.root), *arguments], env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run_tool(self, *arguments: str) -> tuple[int, str]:
        process = self.start(*arguments)
        words = process.communicate(timeout=2 * LIMIT_S)[0]
        return process.returncode, words

    def wait_until_it_waits(self) -> int:
        """The process of the mutant that waits to be interrupted."""
        end = time.monotonic() + LIMIT_S
        while not self.waits.exists():
            self.assertLess(time.monotonic(), end, "it never ran")
            time.sleep(0.02)
        return int(self.waits.read_text())

    def copies(self) -> list[bytes]:
        return [path.read_bytes() for path in (self.root / "build/mutants").glob("*/source/src/sum.cpp")]


class Verdicts(Project):
    def test_what_a_later_program_notices_is_killed_and_told_by_the_name_of_its_test(self):
        code, words = self.run_tool("wrong sum")
        self.assertEqual(0, code, words)
        self.assertRegex(words, r"killed .*wrong sum\n +Sum\.adds\n")

    def test_a_harmless_change_survives_and_fails_the_run(self):
        code, words = self.run_tool("wrong", "harmless")
        self.assertEqual(1, code, words)
        self.assertRegex(words, r"survived .*harmless\n +sum_tests, other_tests passed\n")
        self.assertIn("2 tried in ", words)
        self.assertIn("1 killed, 1 not\n  survived: harmless\n", words)

    def test_one_that_does_not_compile_is_broken_and_fails_the_run(self):
        code, words = self.run_tool("no program")
        self.assertEqual(1, code, words)
        self.assertRegex(words, r"broken .*no program\n +it does not compile: src/sum\.cpp:3:\d+: error: ")

    def test_a_crash_and_an_endless_loop_are_noticed(self):
        code, words = self.run_tool("--patience", "1", "crash", "endless")
        self.assertEqual(0, code, words)
        self.assertRegex(words, r"killed .*a crash\n +sum_tests: signal \d+")
        self.assertRegex(words, r"killed .*an endless loop\n +sum_tests: not done within 1 s")

    def test_other_programs_can_be_asked_what_they_notice(self):
        code, words = self.run_tool("--by", "other_tests", "wrong sum")
        self.assertEqual(1, code, words)
        self.assertRegex(words, r"survived .*wrong sum\n +other_tests passed")

    def test_what_the_simulation_is_to_notice_as_well_has_to_be_noticed_by_it(self):
        code, words = self.run_tool("noticed by")
        self.assertEqual(1, code, words)
        self.assertRegex(words, r"killed .*noticed by both\n +Sum\.adds\n +holdfast_sim --seeds 1\.\.2: BROKEN: S1: nothing")
        self.assertRegex(words, r"survived .*noticed by the tests alone\n +holdfast_sim --seeds 1\.\.2 passed\n")

    def test_one_mutant_leaves_nothing_to_the_next(self):
        for _ in range(2):
            code, words = self.run_tool("--copies", "1", "wrong", "harmless", "no program")
            self.assertEqual(1, code, words)
            self.assertRegex(words, r"killed .*wrong sum")
            self.assertRegex(words, r"survived .*harmless")
            self.assertEqual([FILES["src/sum.cpp"].encode()], self.copies())


class Refusals(Project):
    def test_where_the_code_as_it_is_fails_nothing_is_learned(self):
        (self.root / "tests/other.cpp").write_text("int main() { return 3; }\n")
        self.before = self.sources()
        code, words = self.run_tool("wrong")
        self.assertEqual(1, code, words)
        self.assertIn("fails: other_tests: exit 3", words)
        self.assertNotIn("tried", words)

    def test_one_that_no_longer_fits_is_told_before_anything_is_built(self):
        for text in ("int sum(int a, int b) { return b + a; }\n", FILES["src/sum.cpp"] + "// a + b\n"):
            (self.root / "src/sum.cpp").write_text(text)
            self.before = self.sources()
            for arguments in ([], ["--check"]):
                code, words = self.run_tool(*arguments)
                self.assertEqual(1, code, words)
                self.assertRegex(words, r"'wrong sum': its text is [02] times in src/sum.cpp, not once")
        self.assertFalse((self.root / "build").exists())

    def test_wrong_usage_is_told_in_one_line(self):
        for arguments in (["--copies", "0"], ["--jobs", "many"], ["--nonsense"]):
            code, words = self.run_tool(*arguments)
            self.assertEqual(2, code, words)
            self.assertRegex(words, r"\Amutants: [^\n]+; --help tells more\n\Z")

    def test_a_name_that_nobody_has_is_wrong_usage(self):
        self.assertEqual(2, self.run_tool("no such")[0])


class Interruptions(Project):
    def test_after_ctrl_c_nothing_runs_and_nothing_is_changed(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            self.waits.unlink(missing_ok=True)
            tool = self.start("waits")
            waiting = self.wait_until_it_waits()
            self.assertNotEqual([FILES["src/sum.cpp"].encode()], self.copies())
            tool.send_signal(number)
            words = tool.communicate(timeout=LIMIT_S)[0]
            self.assertEqual(128 + number, tool.returncode, words)
            self.assertFalse(pathlib.Path(f"/proc/{waiting}").exists())
            self.assertEqual([FILES["src/sum.cpp"].encode()], self.copies())
        code, words = self.run_tool("wrong")
        self.assertEqual(0, code, words)

    def test_what_a_killed_run_left_behind_is_waited_for_and_then_put_right(self):
        tool = self.start("waits")
        waiting = self.wait_until_it_waits()
        tool.kill()
        tool.communicate(timeout=LIMIT_S)
        code, words = self.run_tool("harmless")
        self.assertEqual(1, code, words)
        self.assertIn("is still at work", words)
        os.kill(waiting, signal.SIGKILL)
        end = time.monotonic() + LIMIT_S
        while "still at work" in words and time.monotonic() < end:
            code, words = self.run_tool("wrong")
        self.assertEqual(0, code, words)
        self.assertIn("passes", words)
        self.assertIn(FILES["src/sum.cpp"].encode(), self.copies())


if __name__ == "__main__":
    unittest.main()
