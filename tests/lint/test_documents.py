"""The lint of the documents finds dead links, faults without a test, and tests that do not exist."""
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "lint"))
import documents  # noqa: E402


class Repository(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")


class Links(Repository):
    def test_a_link_that_leads_nowhere_is_found(self):
        self.write("README.md", "See\n[the map](docs/map.md).\n")
        found = documents.check_links(self.root)
        self.assertEqual([("README.md", 2)], [(fault.path, fault.line) for fault in found])

    def test_an_anchor_that_is_not_there_is_found(self):
        self.write("README.md", "[a](docs/map.md#the-flow) [b](docs/map.md#no-such) [c](#here) [d](#gone)\n\n# Here\n")
        self.write("docs/map.md", "## The flow\n")
        self.assertEqual(2, len(documents.check_links(self.root)))

    def test_links_in_code_to_elsewhere_and_to_folders_are_left_alone(self):
        self.write("README.md", "`[a](b)` [c](https://example.org/x) [d](docs/)\n```\n[e](f)\n```\n")
        self.write("docs/map.md", "")
        self.assertEqual([], documents.check_links(self.root))


class Faults(Repository):
    def faults(self) -> list[str]:
        with mock.patch.object(documents, "MUST_BE_GUARDED", [4, 5]):
            return [fault.text for fault in documents.check_faults(self.root)]

    def given(self, guards_of_4: str, guards_of_5: str = "`Faults.f05_b`"):
        self.write("tests/unit/a.cpp", "TEST(Faults, f04_a) {}\n  TEST_F(Faults, f05_b) {}\nTEST(Other, c) {}\n")
        self.write("docs/faults.md", f"# Faults\n\n### F4 A\n\nText.\n\nTests: {guards_of_4}\n\n### F5 B\n\nTests: {guards_of_5}\n")

    def test_what_agrees_is_left_alone(self):
        self.given("`Faults.f04_a`,\n`Other.c`")
        self.assertEqual([], self.faults())

    def test_a_fault_without_a_test_is_found(self):
        self.given("`Faults.f04_a`", "none yet.")
        self.assertIn("F5 names no test", self.faults())

    def test_a_test_that_does_not_exist_is_found(self):
        self.given("`Faults.f04_a`, `Faults.f04_gone`")
        self.assertEqual(["F4: there is no test Faults.f04_gone"], self.faults())

    def test_a_numbered_test_that_is_not_named_is_found(self):
        self.given("`Other.c`")
        self.assertEqual(1, len(self.faults()))
        self.assertIn("Faults.f04_a is not named", self.faults()[0])

    def test_a_missing_number_is_found(self):
        self.given("`Faults.f04_a`")
        self.write("docs/faults.md", "### F4 A\n\nTests: `Faults.f04_a`\n")
        self.assertEqual(["F5 is missing"], self.faults())

    def test_write_brings_the_lists_up_to_date_and_keeps_tests_without_a_number(self):
        self.given("`Other.c`, `Faults.f04_gone`", "none yet.")
        documents.write_faults(self.root)
        self.assertEqual([], self.faults())
        self.assertIn("Tests: `Other.c`,\n`Faults.f04_a`\n\n### F5 B", self.read("docs/faults.md"))

    def test_a_test_may_guard_several_faults(self):
        self.assertEqual([4, 5], documents.numbers_of("Faults.f04_f05_both"))
        self.assertEqual([], documents.numbers_of("Faults.of04_none"))


class Tests(Repository):
    def test_one_that_does_not_exist_is_found_on_every_page_and_a_file_is_none(self):
        self.write("tests/unit/a.cpp", "TEST_P(Keeper, holds) {\n}\n")
        self.write("docs/deep/page.md", "`Keeper.holds` `CMakeLists.txt` `README.md`\nand `Keeper.lets_go`\n")
        found = [(fault.path, fault.line, fault.text) for fault in documents.check_tests(self.root)]
        self.assertEqual([("docs/deep/page.md", 2, "there is no test Keeper.lets_go")], found)


class Rules(Repository):
    def test_a_number_that_no_document_explains_is_found(self):
        self.write("docs/architecture.md", "- **S1 One.** Text.\n")
        self.write("docs/faults.md", "### F4 A\n")
        self.write("src/core/a.cpp", "// S1 and F4 are known.\nint S9;\nint a;  // upholds S2\n")
        found = documents.check_rules(self.root)
        self.assertEqual([("src/core/a.cpp", 3)], [(fault.path, fault.line) for fault in found])


class Model(Repository):
    def test_a_function_that_does_not_exist_is_found(self):
        self.write("src/core/a.cpp", "void Keeper::won(int a) {\n}\nUpdate render(const Write& write) {\n}\n")
        self.write("include/holdfast/b.hpp", "class Guard {\n  bool holds(int now) const { return true; }\n};\n")
        self.write("spec/a.pml", "/* Implemented by: Keeper::won,\n * render, Guard::holds. */\n/* Implemented by: nothing; so it is. */\n")
        self.assertEqual([], documents.check_model(self.root))
        self.write("spec/a.pml", "/* Text. Implemented by: Keeper::won, Keeper::gone (why), lost, Guard::won. */\n")
        found = [fault.text for fault in documents.check_model(self.root)]
        self.assertEqual(["there is no function 'Keeper::gone' in src/"], found)
        self.write("spec/a.pml", "\n/* Implemented by: Keeper::won, lost. */ /* Implemented by: Guard::won. */\n")
        self.assertEqual([2, 2], [fault.line for fault in documents.check_model(self.root)])

    def test_a_model_that_names_no_function_is_found(self):
        self.write("spec/a.pml", "byte x;\n")
        self.assertEqual(1, len(documents.check_model(self.root)))


class Decisions(Repository):
    def test_the_list_is_checked_and_written(self):
        self.write("docs/adr/README.md", "# Decisions\n\nText.\n")
        self.write("docs/adr/0001-a.md", "# 1. This\n")
        self.write("docs/adr/0002-b.md", "# That, rather than this\n")
        self.assertEqual(1, len(documents.check_decisions(self.root)))
        documents.write_decisions(self.root)
        self.assertEqual([], documents.check_decisions(self.root))
        self.assertIn("- [0001](0001-a.md) This\n- [0002](0002-b.md) That, rather than this\n", self.read("docs/adr/README.md"))

    def test_a_number_given_twice_is_found(self):
        self.write("docs/adr/README.md", "# Decisions\n")
        self.write("docs/adr/0001-a.md", "# 1. This\n")
        self.write("docs/adr/0001-b.md", "# 1. That\n")
        documents.write_decisions(self.root)
        self.assertEqual(["0001-a.md has this number too"], [fault.text for fault in documents.check_decisions(self.root)])


class Invariants(Repository):
    def invariants(self, page: str) -> list[str]:
        self.write("docs/architecture.md", "- **S1 One.** x\n- **S10 Ten.** y\n")
        self.write("tests/mutants/mutants.toml", '''
[[mutant]]
name = "no skew"
rule = "S1, S10"
[[mutant]]
name = "no bound"
rule = "S10, F3"
[[mutant]]
name = "no lease"
rule = "S1"
''')
        self.write("docs/invariants.md", page)
        return [fault.text for fault in documents.check_invariants(self.root)]

    def test_a_rule_without_a_section_is_found(self):
        page = '## S1 One\n\n**Mutants**: "no skew", "no\nlease".\n'
        self.assertEqual("S10 has no section", self.invariants(page)[0])

    def test_mutants_that_are_missing_under_their_rule_are_found_and_written(self):
        page = '## S1 One\n\nx\n**Mutants**: "no skew".\n\n**Not promised**: y\n\n## S10 Ten\n\n**Mutants**: none.\n\nz\n'
        found = self.invariants(page)
        self.assertEqual(["the mutants of S1 are", "the mutants of S10 are"], [text.split(" not")[0] for text in found])
        documents.write_invariants(self.root)
        self.assertEqual([], [fault.text for fault in documents.check_invariants(self.root)])
        written = (self.root / "docs/invariants.md").read_text()
        self.assertEqual('## S1 One\n\nx\n**Mutants**: "no skew", "no lease".\n\n**Not promised**: y\n\n'
                         '## S10 Ten\n\n**Mutants**: "no skew", "no bound".\n\nz\n', written)

    def test_a_run_of_the_model_that_does_not_exist_is_found(self):
        self.write("spec/verify.py", 'RIGHT = [\n    Run("wild-clocks", "WILD", "", "x"),\n]\n')
        text = "## S1 One\n\n**Simulation**: `fleet`. **Model**: S1 in `wild-clocks`\nand `calm`. **Real faults**: `none`.\n"
        found = [(fault.line, fault.text) for fault in documents.check_runs(self.root, text)]
        self.assertEqual([(3, "there is no run 'calm' in spec/verify.py")], found)

    def test_a_scenario_that_does_not_exist_is_found(self):
        self.write("src/sim/plan.hpp", "enum class Scenario : int {\n  steady,  ///< quiet\n  outage,\n};\n")
        text = "**Simulation**: S6 and `outage`, `outrage`. **Model**: `calm`.\n"
        self.assertEqual(["the simulation has no scenario 'outrage'"],
                         [fault.text for fault in documents.check_scenarios(self.root, text)])

    def test_a_place_that_does_not_exist_is_found(self):
        self.write("src/core/a.cpp", "class Guard {\n  struct Inner {};\n  int limit_;\n};\nbool Guard::holds(int now) {\n}\n")
        text = "**Where**: `Guard::holds`, `Guard`, `Guard::Inner`, `limit_` in `core/a.cpp`.\n\n`gone`\n"
        self.assertEqual([], documents.check_places(self.root, text))
        text = "**Where**: `Guard::held`, `Guards`, `core/b.cpp`.\n"
        self.assertEqual(3, len(documents.check_places(self.root, text)))


if __name__ == "__main__":
    unittest.main()
