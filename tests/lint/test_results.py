"""What ./dev check says at its end about the tests that failed, from a result file as ctest writes it."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = '''add_test(Good.one "true")
add_test("Bad.<quoted> & more" sh -c "seq 1 100; echo 'Expected: 1 < 2'; exit 1")
add_test(Skipped.one sh -c "exit 77")
set_tests_properties(Skipped.one PROPERTIES SKIP_RETURN_CODE 77)
'''


def results(what: str, tests: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "CTestTestfile.cmake").write_text(tests)
        subprocess.run([shutil.which("ctest"), "--output-junit", f"{folder}/results.xml"], cwd=folder, check=False,
                       capture_output=True)
        return subprocess.run([sys.executable, "tools/test_results.py", what, f"{folder}/results.xml"], cwd=ROOT,
                              capture_output=True, text=True, check=True).stdout


class Results(unittest.TestCase):
    def test_tests_are_counted_by_how_they_ended(self):
        self.assertEqual("1 1 1\n", results("counts", TESTS))

    def test_a_failed_test_is_shown_by_its_name_and_the_end_of_what_it_printed(self):
        shown = results("failed", TESTS)
        self.assertTrue(shown.startswith("---- failed: Bad.<quoted> & more\n     (61 earlier lines are left out)\n"), shown)
        self.assertTrue(shown.endswith("\n99\n100\nExpected: 1 < 2\n"), shown)
        self.assertNotIn("Good", shown)

    def test_the_names_of_all_are_shown_however_many_failed(self):
        shown = results("failed", "".join(f'add_test(bad{n} "false")\n' for n in range(30)))
        self.assertEqual(30, shown.count("---- failed: bad"))


if __name__ == "__main__":
    unittest.main()
