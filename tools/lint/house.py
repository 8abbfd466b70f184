#!/usr/bin/env python3
"""The rules of the house that no compiler knows.

Usage: tools/lint/house.py [--root FOLDER]

Prints one line for each fault, `file:line: [rule] what, and what to do`, and exits 1 where there is one.

Rules, and how a line says that it means it (on that line or the one above, with the reason):
  nondeterminism  clocks, random devices, threads, environment, processes and walks over unordered containers
                  live in src/runtime only            // nondeterminism-ok: WHY
  layers          includes run one way, as the CMakeLists.txt of each layer says
  pragma-once     a header begins with it
  long-file       over 600 lines                      // long-file: WHY, within the first 10 lines
  long-function   over 70 lines (not in tests)        // long-function: WHY, on its first line or the one above
  tests           every file in tests/ is built, none is disabled
"""
import argparse
import pathlib
import re
import sys
from typing import NamedTuple

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70

# From the top of the house to its foundation: a layer may depend on those of later lines only, or, where it
# stands beside others, not on its neighbours.
LAYERS = [{"cli"}, {"serve"}, {"worker", "coord", "admin"}, {"sink", "ws", "store"}, {"runtime"}, {"core"}]
# The simulator stands beside the house: it may look into all of it, nothing in the house looks back.
OUTSIDE_THE_ORDER = {"sim"}

CPP = {".cpp", ".hpp"}


class Fault(NamedTuple):
    path: pathlib.Path
    line: int
    rule: str
    text: str


class Source:
    """One C++ file: its lines as written, and the same without comments and string contents."""

    def __init__(self, path: pathlib.Path, root: pathlib.Path):
        self.path = path.relative_to(root)
        self.text = path.read_text(encoding="utf-8")
        self.lines = self.text.splitlines()
        self.code = strip(self.text)
        self.code_lines = self.code.splitlines()

    def line_of(self, offset: int) -> int:
        return self.code.count("\n", 0, offset) + 1

    def says(self, line: int, mark: str) -> bool:
        """Whether the line, or the one above, has the mark with a reason behind it."""
        for number in (line, line - 1):
            if 1 <= number <= len(self.lines) and re.search(rf"//\s*{mark}:\s*\S", self.lines[number - 1]):
                return True
        return False


def strip(text: str) -> str:
    """Blanks comments and the contents of strings, character by character: offsets and lines stay."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^()\\ \n]{0,16})\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
        re.S,
    )

    def blank(match: re.Match) -> str:
        found = match.group(0)
        if found.startswith('"') and is_include(text, match.start()):
            return found
        keep = found[0] if found[0] in "\"'" else " "
        inner = re.sub(r"[^\n]", " ", found[1:-1])
        return keep + inner + (keep if len(found) > 1 else "")

    return pattern.sub(blank, text)


def is_include(text: str, offset: int) -> bool:
    start = text.rfind("\n", 0, offset) + 1
    return re.match(r"\s*#\s*include\s*$", text[start:offset]) is not None


# ---- nondeterminism ----

FORBIDDEN = [
    (r"\b\w*_clock\s*::\s*now\b", "reads a clock: take Instant or WallTime as a value, or ask the Loop"),
    (r"\bclock_gettime\b|\bgettimeofday\b|\btimespec_get\b|\bstd\s*::\s*clock\s*\(", "reads a clock: ask the Loop"),
    (r"(?<![\w.>:])(?:std\s*::\s*|::\s*)?time\s*\(\s*(?:nullptr|NULL|0|&)", "reads a clock: ask the Loop"),
    (r"\blocaltime(?:_r)?\b|\bmktime\b|\bcurrent_zone\b", "depends on the machine's time zone: use UTC"),
    (r"\brandom_device\b|\bgetrandom\b|\bgetentropy\b|\barc4random\w*|\bRAND_(?:priv_)?bytes\b",
     "draws from the machine: take a Random"),
    (r"(?<![\w.>])(?:std\s*::\s*|::\s*)?s?rand\s*\(|(?<![\w.>:])[dlm]rand48\b", "draws from a hidden generator: take a Random"),
    (r"\bstd\s*::\s*j?thread\b(?!\s*::\s*id)|\bstd\s*::\s*async\b|\bpthread_create\b|\bthread_pool\b|\bstd\s*::\s*condition_variable\w*",
     "starts or waits for threads: use runtime/thread.hpp"),
    (r"\bsleep_(?:for|until)\b|(?<![\w.>:])(?:::\s*)?(?:u|nano|clock_nano)?sleep\s*\(", "sleeps: set a timer on the Loop"),
    (r"\b(?:secure_)?getenv\b|\b(?:set|unset|put)env\s*\(|\benviron\b", "reads the environment: use runtime/environment.hpp"),
    (r"(?<![\w.>:])(?:::\s*)?v?fork\s*\(|(?<![\w.>:])(?:::\s*)?exec[lv]p?e?\s*\(|\bposix_spawnp?\b|(?<![\w.>:])(?:std\s*::\s*|::\s*)?system\s*\(|(?<![\w.>:])(?:::\s*)?popen\s*\(",
     "starts a process: use runtime/spawn.hpp"),
    (r"\bstd\s*::\s*(?:multi)?(?:map|set)\s*<\s*(?:const\s+)?[\w:]+(?:\s+const)?\s*\*", "is ordered by address: order by an id"),
]
UNORDERED = re.compile(r"\bunordered_(?:multi)?(?:map|set)\s*<")
RANGE_FOR = re.compile(r"\bfor\s*\(")


def nondeterminism(source: Source, unordered: set[str]) -> list[Fault]:
    faults = []

    def add(offset: int, text: str) -> None:
        line = source.line_of(offset)
        if not source.says(line, "nondeterminism-ok"):
            faults.append(Fault(source.path, line, "nondeterminism", text))

    for pattern, text in FORBIDDEN:
        for match in re.finditer(pattern, source.code):
            add(match.start(), f"'{' '.join(match.group(0).split())}' {text}")
    for name, offset in walks(source.code):
        if name in unordered:
            add(offset, f"walks over '{name}', which is unordered: if the order can reach an output, sort first or use std::map")
    return faults


def unordered_names(code: str) -> set[str]:
    """Names of variables, members and functions whose type is an unordered container."""
    names = set()
    for match in UNORDERED.finditer(code):
        end = after_template(code, match.end())
        name = re.match(r"\s*(?:const\b)?\s*[&*]?\s*(\w+)", code[end:])
        if name:
            names.add(name.group(1))
    return names


def after_template(code: str, offset: int) -> int:
    """The offset behind the '>' that ends the template arguments that begin at the offset."""
    depth = 1
    while offset < len(code) and depth > 0:
        depth += {"<": 1, ">": -1}.get(code[offset], 0)
        offset += 1
    return offset


def walks(code: str):
    """(container's last name, offset) of each range-for and each X.begin()."""
    for match in RANGE_FOR.finditer(code):
        head = parenthesised(code, match.end() - 1)
        parts = re.split(r"(?<!:):(?!:)", head)
        if len(parts) == 2 and ";" not in parts[1]:
            names = re.findall(r"\w+", parts[1])
            if names:
                yield names[-1], match.start()
    for match in re.finditer(r"(\w+)\s*(?:\(\s*\))?\s*(?:\.|->)\s*c?begin\s*\(", code):
        yield match.group(1), match.start()


def parenthesised(code: str, offset: int) -> str:
    """What is between the parenthesis at the offset and its partner."""
    depth = 0
    for end in range(offset, len(code)):
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        if depth == 0:
            return code[offset + 1 : end]
    return code[offset + 1 :]


# ---- layers ----

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
# What core and the public headers may take from outside: the standard library has no slash and no ".h" in C++.
STANDARD = re.compile(r"^[a-z_]+$")


def includes(source: Source):
    for match in INCLUDE.finditer(source.code):
        yield match.group(1) == '"', match.group(2), source.line_of(match.start())


def declared_depends(cmake: str) -> list[str]:
    match = re.search(r"holdfast_layer\(([^)]*)\)", cmake)
    if not match:
        return []
    words = match.group(1).split()
    found, inside = [], False
    for word in words[1:]:
        if word in ("DEPENDS", "LIBRARIES", "DIRS"):
            inside = word == "DEPENDS"
        elif inside:
            found.append(word)
    return found


def floor_of(layer: str) -> int | None:
    for floor, names in enumerate(LAYERS):
        if layer in names:
            return floor
    return None


def check_depends(layer: str, depends: list[str], cmake: pathlib.Path) -> list[Fault]:
    faults = []
    if layer in OUTSIDE_THE_ORDER:
        return faults
    own = floor_of(layer)
    if own is None:
        return [Fault(cmake, 1, "layers", f"'{layer}' has no floor in the house: add it to LAYERS in tools/lint/house.py")]
    for other in depends:
        floor = floor_of(other)
        if floor is None or floor <= own:
            faults.append(Fault(cmake, 1, "layers", f"'{layer}' may not depend on '{other}': arrows run down only"))
    return faults


def check_includes(source: Source, layer: str | None, depends: list[str]) -> list[Fault]:
    """`layer` is None for the public headers."""
    faults = []
    strict = layer in (None, "core")
    allowed = {"holdfast", *depends} | ({layer} if layer else set())
    for quoted, name, line in includes(source):
        first = name.split("/")[0]
        if not quoted:
            if strict and not STANDARD.match(name) and name != "tl/expected.hpp":
                faults.append(Fault(source.path, line, "layers",
                                    f"<{name}>: here only the standard library and <tl/expected.hpp> come from outside"))
        elif "/" not in name or name.startswith("."):
            faults.append(Fault(source.path, line, "layers", f'"{name}": write the folder too, "layer/file.hpp"'))
        elif first not in allowed:
            home = "the public headers" if layer is None else f"'{layer}'"
            faults.append(Fault(source.path, line, "layers",
                                f'"{name}": {home} may not include from \'{first}\' (see DEPENDS in its CMakeLists.txt)'))
    return faults


# ---- form ----

def pragma_once(source: Source) -> list[Fault]:
    if source.path.suffix != ".hpp":
        return []
    for number, line in enumerate(source.code_lines, 1):
        if line.strip():
            if line.strip() == "#pragma once":
                return []
            return [Fault(source.path, number, "pragma-once", "a header begins with #pragma once")]
    return [Fault(source.path, 1, "pragma-once", "a header begins with #pragma once")]


def long_file(source: Source) -> list[Fault]:
    if len(source.lines) <= FILE_LINES_MAX or any(re.search(r"//\s*long-file:\s*\S", line) for line in source.lines[:10]):
        return []
    return [Fault(source.path, 1, "long-file",
                  f"{len(source.lines)} lines, over {FILE_LINES_MAX}: split it, or say why at the top (// long-file: WHY)")]


def functions(code: str):
    """(first line, last line) of each function body, found by its braces."""
    stack = []  # for each open brace: (opens a function, offset of its statement)
    start = 0   # of the current statement
    for match in re.finditer(r"[{};]|^[ \t]*#[^\n]*(?:\\\n[^\n]*)*", code, re.M):
        sign = match.group(0)
        if sign == "{":
            inside = any(is_function for is_function, _ in stack)
            statement = code[start : match.start()]
            stack.append((not inside and opens_function(statement), start + len(statement) - len(statement.lstrip())))
        elif sign == "}" and stack:
            is_function, begin = stack.pop()
            if is_function:
                yield code.count("\n", 0, begin) + 1, code.count("\n", 0, match.start()) + 1
        start = match.end()


def opens_function(statement: str) -> bool:
    text = re.sub(r"\[\[[^\]]*\]\]", " ", statement)
    text = re.sub(r"^\s*(?:public|private|protected)\s*:(?!:)", " ", text)
    text = re.sub(r"^\s*template\s*<[^{;]*?>\s*(?=[\w:\[~])", " ", text)
    if re.match(r"\s*(?:inline\s+)?(?:namespace|class|struct|union|enum|extern)\b", text):
        return False
    return "(" in text and not re.search(r"=\s*$", text)


def long_functions(source: Source) -> list[Fault]:
    faults = []
    for first, last in functions(source.code):
        length = last - first + 1
        if length > FUNCTION_LINES_MAX and not source.says(first, "long-function"):
            faults.append(Fault(source.path, first, "long-function",
                                f"{length} lines, over {FUNCTION_LINES_MAX}: split it, or say why (// long-function: WHY)"))
    return faults


# ---- tests ----

def test_registration(root: pathlib.Path) -> list[Fault]:
    tests = root / "tests"
    if not tests.is_dir():
        return []
    cmake = (tests / "CMakeLists.txt").read_text(encoding="utf-8") if (tests / "CMakeLists.txt").exists() else ""
    built = set(re.findall(r"^\s*holdfast_tests\((\w+)|\bSOURCES (\w+)/|add_subdirectory\((\w+)\)"
                           r"|-S \$\{CMAKE_CURRENT_SOURCE_DIR\}/(\w+)", cmake, re.M))
    built = {name for names in built for name in names}
    faults = []
    for path in sorted(tests.rglob("*.cpp")):
        below = path.relative_to(tests)
        if "node_modules" in below.parts or below.parts[0] in ("support", "lint"):
            continue
        if below.parts[0] not in built or (len(below.parts) > 2 and below.parts[0] != "fuzz"):
            faults.append(Fault(path.relative_to(root), 1, "tests", "no program is built from this file: see tests/CMakeLists.txt"))
        source = Source(path, root)
        for match in re.finditer(r"\bDISABLED_\w*|^[ \t]*#[ \t]*if[ \t]+0\b", source.code, re.M):
            faults.append(Fault(source.path, source.line_of(match.start()), "tests", "a test that does not run is no test"))
    chaos = re.search(r"foreach\(part ([\w ]+)\)\s+holdfast_lint\(chaos_", cmake)
    parts = {f"test_{part}.py" for part in chaos[1].split()} if chaos else set()
    for path in sorted([*tests.glob("lint/test_*.py"), *tests.glob("chaos/test_*.py"), *tests.glob("peers/test_*.py")]):
        registered = path.name in cmake or path.name in parts or f"holdfast_peer_test({path.stem[5:]} " in cmake
        if not registered:
            faults.append(Fault(path.relative_to(root), 1, "tests", "not registered in tests/CMakeLists.txt"))
    return faults


# ---- all of it ----

def cpp_below(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in CPP and "node_modules" not in path.parts)


def unordered_for(source: Source, by_include: dict[str, Source]) -> set[str]:
    names = unordered_names(source.code)
    for quoted, name, _ in includes(source):
        if quoted and name in by_include:
            names |= unordered_names(by_include[name].code)
    return names


def check(root: pathlib.Path) -> list[Fault]:
    faults: list[Fault] = []
    public = [Source(path, root) for path in cpp_below(root / "include")]
    layers = {path.parent.name: path for path in sorted((root / "src").glob("*/CMakeLists.txt"))}
    inside = {name: [Source(path, root) for path in cpp_below(root / "src" / name)] for name in layers}
    by_include = {source.path.relative_to("include").as_posix(): source for source in public}
    for sources in inside.values():
        by_include.update({source.path.relative_to("src").as_posix(): source for source in sources})

    for source in public:
        faults += check_includes(source, None, [])
        faults += nondeterminism(source, unordered_for(source, by_include))
    for name, cmake in layers.items():
        depends = declared_depends(cmake.read_text(encoding="utf-8"))
        faults += check_depends(name, depends, cmake.relative_to(root))
        for source in inside[name]:
            faults += check_includes(source, name, depends)
            if name != "runtime":
                faults += nondeterminism(source, unordered_for(source, by_include))

    others = [Source(path, root) for folder in ("bench", "examples") for path in cpp_below(root / folder)]
    tests = [Source(path, root) for path in cpp_below(root / "tests") if path.parts[-2] != "bad"]
    for source in [*public, *(source for sources in inside.values() for source in sources), *others, *tests]:
        faults += pragma_once(source) + long_file(source)
        if source not in tests:
            faults += long_functions(source)
    return faults + test_registration(root)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    faults = check(parser.parse_args().root.resolve())
    for fault in sorted(faults):
        print(f"{fault.path}:{fault.line}: [{fault.rule}] {fault.text}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
