"""The lint of the house finds what it is there for, and lets the rest be."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "lint"))
import house  # noqa: E402


def faults_of(files: dict[str, str]) -> list[house.Fault]:
    """What the lint says about a repository of these files (and the layers core, runtime and store)."""
    base = {
        "src/core/CMakeLists.txt": "holdfast_layer(core)\n",
        "src/runtime/CMakeLists.txt": "holdfast_layer(runtime DEPENDS core LIBRARIES holdfast_asio)\n",
        "src/store/CMakeLists.txt": "holdfast_layer(store DEPENDS runtime core DIRS memory sqlite LIBRARIES Boost::json)\n",
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {**base, **files}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return house.check(root)


def rules_of(files: dict[str, str]) -> list[str]:
    return [fault.rule for fault in faults_of(files)]


class Nondeterminism(unittest.TestCase):
    BAD = [
        "auto a = std::chrono::steady_clock::now();",
        "auto a = system_clock::now();",
        "auto a = std::time(nullptr);",
        "auto a = time(0);",
        "auto a = ::time(NULL);",
        "timespec t; clock_gettime(CLOCK_MONOTONIC, &t);",
        "timeval t; gettimeofday(&t, nullptr);",
        "localtime_r(&t, &parts);",
        "std::random_device device;",
        "int a = rand();",
        "int a = std::rand();",
        "srand(1);",
        "RAND_bytes(key, 4);",
        "getrandom(&a, 8, 0);",
        "std::thread worker([] {});",
        "std::jthread worker([] {});",
        "auto a = std::async([] {});",
        "std::condition_variable wake;",
        "std::this_thread::sleep_for(1s);",
        "usleep(10);",
        "::sleep(1);",
        'auto a = std::getenv("HOME");',
        "if (fork() == 0) return;",
        "::execvp(a, b);",
        'std::system("ls");',
        'FILE* f = popen("ls", "r");',
        "posix_spawnp(&pid, a, b, c, d, e);",
        "std::set<Session*> sessions;",
        "std::map<const Row*, int> rows;",
        "std::unordered_map<int, int> a; void f() { for (const auto& [k, v] : a) use(k); }",
        "std::unordered_map<std::string, std::vector<int>> seen_; void f() { for (auto& entry : this->seen_) use(entry); }",
        "std::unordered_set<int> a; void f() { auto first = a.begin(); }",
        "std::unordered_map<int, int>& rows(); void f() { for (auto& row : rows()) use(row); }",
        "std::random_device device;  // nondeterminism-ok:",
    ]
    GOOD = [
        "// std::random_device is forbidden",
        'const char* text = "std::random_device";',
        'const char* text = R"(time(0))";',
        "std::unordered_map<int, int> a; bool f() { return a.contains(1); }",
        "std::map<int, int> a; void f() { for (auto& entry : a) use(entry); }",
        "std::unordered_map<int, int> a; void f() { for (int i = 0; i < 3; ++i) use(a[i]); }",
        "std::mutex guard; std::atomic<int> count;",
        "Now now = loop.now();",
        "auto at = reply.time(3);",
        "const auto deadline_time = f(time);",
        "std::map<std::string, Row*> rows;",
        "int operand(int); int a = operand(3); int b = fork_count(1);",
        "std::random_device device;  // nondeterminism-ok: a sample",
        "// nondeterminism-ok: a sample\nstd::random_device device;",
        "std::size_t a = 1'000'000; std::size_t b = 2'000;",
    ]

    def test_every_bad_sample_is_found(self):
        for sample in self.BAD:
            for place in ("src/core/a.cpp", "src/store/sqlite/a.cpp", "include/holdfast/a.hpp"):
                with self.subTest(sample=sample, place=place):
                    text = "#pragma once\n" + sample if place.endswith(".hpp") else sample
                    self.assertIn("nondeterminism", rules_of({place: text + "\n"}))

    def test_every_good_sample_is_left_alone(self):
        for sample in self.GOOD:
            with self.subTest(sample=sample):
                self.assertEqual([], faults_of({"src/core/a.cpp": sample + "\n"}))

    def test_the_runtime_may_do_what_nobody_else_may(self):
        for sample in self.BAD:
            with self.subTest(sample=sample):
                self.assertEqual([], faults_of({"src/runtime/a.cpp": sample + "\n"}))

    def test_a_member_declared_in_the_header_is_known_in_the_source(self):
        files = {
            "src/core/a.hpp": "#pragma once\nstruct A { std::unordered_map<int, int> rows_; };\n",
            "src/core/a.cpp": '#include "core/a.hpp"\nvoid A::f() {\n  for (auto& row : rows_) use(row);\n}\n',
        }
        found = faults_of(files)
        self.assertEqual([("src/core/a.cpp", 3)], [(fault.path.as_posix(), fault.line) for fault in found])


class Layers(unittest.TestCase):
    def test_core_takes_only_the_standard_library_and_expected_from_outside(self):
        for include in ("<boost/asio.hpp>", "<unistd.h>", "<sys/types.h>", "<spdlog/spdlog.h>"):
            with self.subTest(include=include):
                self.assertEqual(["layers"], rules_of({"src/core/a.cpp": f"#include {include}\n"}))
        good = '#include <vector>\n#include <tl/expected.hpp>\n#include "core/b.hpp"\n#include "holdfast/types.hpp"\n'
        self.assertEqual([], faults_of({"src/core/a.cpp": good}))

    def test_public_headers_take_no_layer_in(self):
        bad = '#pragma once\n#include "core/keeper.hpp"\n'
        self.assertEqual(["layers"], rules_of({"include/holdfast/a.hpp": bad}))

    def test_an_include_against_the_arrows_is_found(self):
        self.assertEqual(["layers"], rules_of({"src/runtime/a.cpp": '#include "store/a.hpp"\n'}))
        self.assertEqual([], faults_of({"src/store/memory/a.cpp": '#include "runtime/a.hpp"\n'}))

    def test_an_include_without_its_folder_is_found(self):
        self.assertEqual(["layers"], rules_of({"src/store/a.cpp": '#include "other.hpp"\n'}))

    def test_an_arrow_up_or_sideways_is_found(self):
        self.assertEqual(["layers"], rules_of({"src/core/CMakeLists.txt": "holdfast_layer(core DEPENDS runtime)\n"}))
        self.assertEqual(["layers"], rules_of({"src/ws/CMakeLists.txt": "holdfast_layer(ws DEPENDS store core)\n"}))

    def test_a_folder_without_a_floor_is_found(self):
        self.assertEqual(["layers"], rules_of({"src/attic/CMakeLists.txt": "holdfast_layer(attic)\n"}))


class Form(unittest.TestCase):
    def test_a_header_without_pragma_once_is_found(self):
        self.assertEqual(["pragma-once"], rules_of({"src/core/a.hpp": "// A header.\nint f();\n"}))
        self.assertEqual([], faults_of({"src/core/a.hpp": "// A header.\n#pragma once\nint f();\n"}))

    def test_a_long_file_needs_a_reason(self):
        body = "int a;\n" * 600
        self.assertEqual(["long-file"], rules_of({"src/core/a.cpp": body + "int b;\n"}))
        self.assertEqual([], faults_of({"src/core/a.cpp": body}))
        self.assertEqual([], faults_of({"src/core/a.cpp": "// long-file: one table, read as a whole\n" + body}))

    def function(self, head: str, lines: int, before: str = "") -> str:
        return f"{before}{head} {{\n" + "  work();\n" * (lines - 2) + "}\n"

    def test_a_long_function_is_found_wherever_it_stands(self):
        heads = [
            "void f()",
            "Result<int> Keeper::poll(Now now) const noexcept",
            "Keeper::Keeper(Terms terms)\n    : terms_(terms), count_(0)",
            "template <class T>\nvoid f(T value)",
            "TEST_P(A, b)",
            "auto f() -> int",
        ]
        for head in heads:
            for before in ("", "namespace a {\nnamespace {\n", "class A {\n public:\n", "#define X(a) {\n"):
                with self.subTest(head=head, before=before):
                    self.assertEqual(["long-function"], rules_of({"src/core/a.cpp": self.function(head, 80, before)}))

    def test_a_function_of_just_the_limit_is_left_alone(self):
        self.assertEqual([], faults_of({"src/core/a.cpp": self.function("void f()", 70)}))
        self.assertEqual(["long-function"], rules_of({"src/core/a.cpp": self.function("void f()", 71)}))

    def test_a_long_class_table_or_namespace_is_no_function(self):
        for head in ("class A : public B<int (int)>", "namespace a", "const int table[] =", "enum class A : int", "struct A"):
            with self.subTest(head=head):
                self.assertEqual([], faults_of({"src/core/a.cpp": self.function(head, 100)}))

    def test_a_long_function_may_say_why(self):
        text = self.function("void f()", 80, "// long-function: one switch over all opcodes\n")
        self.assertEqual([], faults_of({"src/core/a.cpp": text}))


class Tests(unittest.TestCase):
    CMAKE = "holdfast_tests(unit TIMEOUT 120)\nadd_subdirectory(fuzz)\n"

    def test_a_test_in_a_folder_that_is_not_built_is_found(self):
        files = {"tests/CMakeLists.txt": self.CMAKE, "tests/attic/a.cpp": "int a;\n"}
        self.assertEqual(["tests"], rules_of(files))

    def test_a_test_below_the_folder_that_is_built_is_found(self):
        files = {"tests/CMakeLists.txt": self.CMAKE, "tests/unit/deep/a.cpp": "int a;\n"}
        self.assertEqual(["tests"], rules_of(files))

    def test_a_disabled_test_is_found(self):
        for text in ("TEST(A, DISABLED_b) {}\n", "#if 0\nTEST(A, b) {}\n#endif\n"):
            with self.subTest(text=text):
                self.assertEqual(["tests"], rules_of({"tests/CMakeLists.txt": self.CMAKE, "tests/unit/a.cpp": text}))

    def test_a_python_test_that_is_not_registered_is_found(self):
        files = {"tests/CMakeLists.txt": self.CMAKE, "tests/lint/test_a.py": ""}
        self.assertEqual(["tests"], rules_of(files))

    def test_what_is_registered_and_runs_is_left_alone(self):
        files = {"tests/CMakeLists.txt": self.CMAKE, "tests/unit/a.cpp": "TEST(A, b) {}\n", "tests/fuzz/a.cpp": "int a;\n"}
        self.assertEqual([], faults_of(files))


if __name__ == "__main__":
    unittest.main()
