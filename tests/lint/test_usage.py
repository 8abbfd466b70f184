"""What the tools in Python say to wrong usage: one line that says what is wrong, and exit code 2."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command: str, path: str | None = None) -> tuple[int, str]:
    environment = {**os.environ, **({"PATH": path} if path is not None else {})}
    done = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


class Usage(unittest.TestCase):
    def test_wrong_usage_is_told_in_one_line(self):
        for name, *command in (("spec", "spec/verify.py", "--jobs", "0"), ("spec", "spec/verify.py", "--nonsense"),
                               ("spec", "spec/verify.py", "nothing"), ("mutants", "tools/mutants.py", "--copies", "0"),
                               ("chaos", "tests/chaos/chaos.py", "--program", "none", "--minutes", "few"),
                               ("chaos", "tests/chaos/chaos.py", "--program", "none", "--minutes", "0"),
                               ("chaos", "tests/chaos/chaos.py", "--program", "none", "--keep", "tests/chaos")):
            code, words = run(*command)
            self.assertEqual(2, code, words)
            self.assertRegex(words, rf"\A{name}: [^\n]+\n\Z", command)

    def test_the_model_says_that_spin_is_missing_and_how_to_get_it(self):
        with tempfile.TemporaryDirectory() as empty:
            code, words = run("spec/verify.py", "promised-clocks", path=empty)
        self.assertEqual(1, code, words)
        self.assertRegex(words, r"\Aspec: spin and gcc cannot be found: \./dev setup spec [^\n]+\n\Z")


if __name__ == "__main__":
    unittest.main()
