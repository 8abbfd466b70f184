#!/usr/bin/env python3
"""The documents agree with the repository.

Usage: tools/lint/documents.py [--root FOLDER] [--write]

  links   every relative link of every Markdown file leads somewhere, anchors included
  faults  docs/faults.md: every number that must be guarded names at least one test, every test that it names
          exists, and every test whose name begins with f04_ is named under F4. --write brings the lists of
          tests up to date from the sources.
  rules   every S and F number that a source or document speaks of is one that docs/ explains
  invariants  docs/invariants.md: every safety rule has a section, the tests and runs of the model that it names exist, and it
          names every mutant of that rule; --write brings the lists of mutants up to date
  model   every function that spec/*.pml says implements an action exists in src/ or include/
  adr     docs/adr/README.md lists every decision; --write brings it up to date

Prints one line for each fault and exits 1 where there is one.
"""
import argparse
import pathlib
import re
import sys
import textwrap
import tomllib
from typing import NamedTuple

# Faults of leases and fleets, and of connections, that have a test by number today. The others wait for their part.
MUST_BE_GUARDED = [*range(1, 10), 12, 14, 16, 17, *range(21, 32), *range(33, 39), *range(40, 45)]


class Fault(NamedTuple):
    path: str
    line: int
    rule: str
    text: str


def tracked(root: pathlib.Path, *folders: str) -> list[pathlib.Path]:
    """The files below these folders (or these files) that are the repository's own, not built or fetched."""
    found = []
    for folder in folders:
        start = root / folder
        paths = start.rglob("*") if start.is_dir() else [start]
        for path in paths:
            parts = path.relative_to(root).parts
            if path.is_file() and parts[0] != "build" and not {"node_modules", ".git"} & set(parts):
                found.append(path)
    return sorted(set(found))


# ---- links ----

LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)|!\[[^\]\n]*\]\(([^)\s]+)\)")


def without_code(text: str) -> str:
    """Blanks fenced and inline code; lines stay."""
    def blank(match: re.Match) -> str:
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r"`[^`\n]+`", blank, re.sub(r"^```.*?^```", blank, text, flags=re.S | re.M))


def anchors(text: str) -> set[str]:
    """The anchors of a Markdown file's headings, as GitHub makes them."""
    found: set[str] = set()
    for match in re.finditer(r"^#{1,6}\s+(.*?)\s*#*$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match.group(1)).lower()
        anchor = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
        number, unique = 1, anchor
        while unique in found:
            unique, number = f"{anchor}-{number}", number + 1
        found.add(unique)
    return found


def check_links(root: pathlib.Path) -> list[Fault]:
    faults = []
    for path in tracked(root, "."):
        if path.suffix != ".md":
            continue
        text = without_code(path.read_text(encoding="utf-8"))
        for match in LINK.finditer(text):
            target = match.group(1) or match.group(2)
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            name, _, anchor = target.partition("#")
            file = path if not name else (path.parent / name)
            line = text.count("\n", 0, match.start()) + 1
            where = path.relative_to(root).as_posix()
            if not file.exists():
                faults.append(Fault(where, line, "links", f"'{target}' leads nowhere"))
            elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
                faults.append(Fault(where, line, "links", f"'{target}': there is no such heading"))
    return faults


# ---- faults ----

TEST = re.compile(r"^\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\s*\(\s*(\w+)\s*,\s*(\w+)", re.M)
HEADING = re.compile(r"^### F(\d+)\b", re.M)
GUARDS = re.compile(r"^Tests: .*(?:\n(?!\n|#).*)*", re.M)
NUMBERED = re.compile(r"^f(\d{2})_")


def test_names(root: pathlib.Path) -> list[str]:
    found = []
    for path in tracked(root, "tests"):
        if path.suffix != ".cpp":
            continue
        found += [f"{suite}.{name}" for suite, name in TEST.findall(path.read_text(encoding="utf-8"))]
    return sorted(set(found))


def numbers_of(test: str) -> list[int]:
    """f04_... guards F4; f04_f05_... guards both."""
    name, found = test.split(".")[1], []
    while match := NUMBERED.match(name):
        found.append(int(match.group(1)))
        name = name[match.end():]
    return found


class Section(NamedTuple):
    number: int
    start: int
    end: int


def sections(text: str) -> list[Section]:
    starts = list(HEADING.finditer(text))
    ends = [match.start() for match in re.finditer(r"^#{1,3} ", text, re.M)] + [len(text)]
    return [Section(int(match.group(1)), match.start(), min(end for end in ends if end > match.start())) for match in starts]


def guards_line(tests: list[str]) -> str:
    return "Tests: " + (",\n".join(f"`{test}`" for test in tests) if tests else "none yet.")


def check_faults(root: pathlib.Path) -> list[Fault]:
    path = root / "docs" / "faults.md"
    text = path.read_text(encoding="utf-8")
    known = test_names(root)
    faults, seen = [], set()

    def add(offset: int, what: str) -> None:
        faults.append(Fault("docs/faults.md", text.count("\n", 0, offset) + 1, "faults", what))

    for section in sections(text):
        seen.add(section.number)
        guards = GUARDS.search(text, section.start, section.end)
        named = re.findall(r"`(\w+\.\w+)`", guards.group(0)) if guards else []
        if not named and section.number in MUST_BE_GUARDED:
            add(section.start, f"F{section.number} names no test")
        for test in named:
            if test not in known:
                add(section.start, f"F{section.number}: there is no test {test}")
        for test in known:
            if section.number in numbers_of(test) and test not in named:
                add(section.start, f"F{section.number}: {test} is not named (tools/lint/documents.py --write)")
    for number in MUST_BE_GUARDED:
        if number not in seen:
            add(0, f"F{number} is missing")
    return faults


def write_faults(root: pathlib.Path) -> None:
    """Adds the tests that are numbered in the sources; drops those that are gone."""
    path = root / "docs" / "faults.md"
    text = path.read_text(encoding="utf-8")
    known = test_names(root)
    for section in reversed(sections(text)):
        guards = GUARDS.search(text, section.start, section.end)
        if not guards:
            continue
        named = [test for test in re.findall(r"`(\w+\.\w+)`", guards.group(0)) if test in known]
        named += [test for test in known if section.number in numbers_of(test) and test not in named]
        text = text[: guards.start()] + guards_line(named) + text[guards.end():]
    path.write_text(text, encoding="utf-8")


# ---- tests ----

NAMED_TEST = re.compile(r"`([A-Z]\w*\.[a-z]\w*)`")
FILE_ENDINGS = (".txt", ".md", ".toml", ".json")


def check_tests(root: pathlib.Path) -> list[Fault]:
    """Whatever page names a test: it exists."""
    known, faults = set(test_names(root)), []
    for path in tracked(root, "."):
        if path.suffix != ".md":
            continue
        text = path.read_text(encoding="utf-8")
        for match in NAMED_TEST.finditer(text):
            if match.group(1) not in known and not match.group(1).endswith(FILE_ENDINGS):
                line = text.count("\n", 0, match.start()) + 1
                faults.append(Fault(path.relative_to(root).as_posix(), line, "tests", f"there is no test {match.group(1)}"))
    return faults


# ---- rules ----

def check_rules(root: pathlib.Path) -> list[Fault]:
    architecture = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = (root / "docs" / "faults.md").read_text(encoding="utf-8")
    explained = {f"S{number}" for number in re.findall(r"\*\*S(\d+)\b", architecture)}
    explained |= {f"F{number}" for number in HEADING.findall(listed)}
    faults = []
    for path in tracked(root, "src", "include", "tests", "bench", "examples", "docs", "README.md", "CONTRIBUTING.md"):
        if path.suffix not in {".cpp", ".hpp", ".md"}:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if path.suffix != ".md" and "//" not in line:
                continue
            remark = line if path.suffix == ".md" else line[line.index("//"):]
            for word in re.findall(r"(?<![\w/.-])([SF]\d{1,2})\b(?![\w-]*\.)", remark):
                if word not in explained:
                    faults.append(Fault(path.relative_to(root).as_posix(), number, "rules", f"{word} is explained nowhere in docs/"))
    return faults


# ---- invariants ----

def check_invariants(root: pathlib.Path) -> list[Fault]:
    """Each safety rule has its section, which names every mutant that breaks the rule, and nothing that is not there."""
    page = root / "docs" / "invariants.md"
    if not page.is_file():
        return []
    text = page.read_text(encoding="utf-8")
    rules = re.findall(r"\*\*S(\d+)\b", (root / "docs" / "architecture.md").read_text(encoding="utf-8"))
    faults = [Fault("docs/invariants.md", 1, "invariants", f"S{rule} has no section")
              for rule in rules if not re.search(rf"^## S{rule} ", text, re.M)]
    for rule, names in mutants_by_rule(root).items():
        found = mutants_of(rule).search(text)
        if found is None or re.findall(r'"([^"]+)"', found.group(2).replace("\n", " ")) != names:
            line = text.count("\n", 0, found.start(2)) + 1 if found else 1
            faults.append(Fault("docs/invariants.md", line, "invariants",
                                f"the mutants of {rule} are not those of tests/mutants/mutants.toml (tools/lint/documents.py --write)"))
    return faults + check_runs(root, text) + check_scenarios(root, text) + check_places(root, text)


def check_names(text: str, kind: str, exists, words: str) -> list[Fault]:
    """What the blocks of a kind name in code is there; `words` say what it is not, with {} for its name."""
    faults = []
    for block in re.finditer(rf"\*\*{kind}\*\*: (.*?)(?:\*\*|\n\n|\Z)", text, re.S):
        line = text.count("\n", 0, block.start()) + 1
        for name in re.findall(r"`([^`]+)`", block.group(1)):
            if not exists(name):
                faults.append(Fault("docs/invariants.md", line, "invariants", words.format(name)))
    return faults


def check_runs(root: pathlib.Path, text: str) -> list[Fault]:
    """The model's runs that a section names are runs of spec/verify.py."""
    verify = root / "spec" / "verify.py"
    runs = set(re.findall(r'\bRun\("([\w-]+)"', verify.read_text(encoding="utf-8"))) if verify.is_file() else set()
    return check_names(text, "Model", runs.__contains__, "there is no run '{}' in spec/verify.py")


def check_scenarios(root: pathlib.Path, text: str) -> list[Fault]:
    plan = root / "src" / "sim" / "plan.hpp"
    listed = re.search(r"^enum class Scenario\b.*?^\};", plan.read_text(encoding="utf-8"), re.S | re.M) if plan.is_file() else None
    scenarios = set(re.findall(r"^  (\w+),", listed.group(0), re.M)) if listed else set()
    return check_names(text, "Simulation", scenarios.__contains__, "the simulation has no scenario '{}'")


def check_places(root: pathlib.Path, text: str) -> list[Fault]:
    """Where a rule is kept: a file below src/, a function, a type, or at least a word of the code, such as a member."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path in tracked(root, "src", "include") if path.suffix in (".cpp", ".hpp"))

    def exists(name: str) -> bool:
        if "/" in name:
            return (root / "src" / name).is_file()
        if "::" in name:
            return is_defined(name, sources) or re.search(rf"\b(?:class|struct) {name.rpartition('::')[2]}\b", sources) is not None
        return re.search(rf"\b{re.escape(name)}\b", sources) is not None

    return check_names(text, "Where", exists, "there is no '{}' in src/")


def mutants_of(rule: str) -> re.Pattern:
    """In docs/invariants.md: the section up to its mutants, and they."""
    return re.compile(rf"(^## {rule} (?:(?!^## ).)*?)^\*\*Mutants\*\*: (.*?)(?=\n\n|\Z)", re.S | re.M)


def mutants_by_rule(root: pathlib.Path) -> dict[str, list[str]]:
    """The names of the mutants that break each safety rule, in the list's order."""
    listed = root / "tests" / "mutants" / "mutants.toml"
    entries = tomllib.loads(listed.read_text(encoding="utf-8"))["mutant"] if listed.is_file() else []
    rules = re.findall(r"\*\*(S\d+)\b", (root / "docs" / "architecture.md").read_text(encoding="utf-8"))
    return {rule: [entry["name"] for entry in entries if rule in re.split(r",\s*", entry["rule"])] for rule in rules}


def write_invariants(root: pathlib.Path) -> None:
    path = root / "docs" / "invariants.md"
    text = path.read_text(encoding="utf-8")
    for rule, names in mutants_by_rule(root).items():
        words = "**Mutants**: " + ", ".join(f'"{name}"' for name in names) + "."
        block = textwrap.fill(words, 120, break_long_words=False, break_on_hyphens=False)
        text = mutants_of(rule).sub(lambda match: match.group(1) + block, text, count=1)
    path.write_text(text, encoding="utf-8")


# ---- decisions ----

ENTRY = re.compile(r"^- \[.*\n", re.M)


def decisions(root: pathlib.Path) -> list[pathlib.Path]:
    return sorted((root / "docs" / "adr").glob("[0-9]*.md"))


def title(path: pathlib.Path) -> str:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    return re.sub(r"^#+\s*(?:ADR\s*)?\d*\s*[.:—–-]?\s*", "", first)


def list_of_decisions(root: pathlib.Path) -> str:
    return "".join(f"- [{path.name[:4]}]({path.name}) {title(path)}\n" for path in decisions(root))


def check_decisions(root: pathlib.Path) -> list[Fault]:
    faults = []
    numbers: dict[str, str] = {}
    for path in decisions(root):
        number = path.name[:4]
        if number in numbers:
            faults.append(Fault(f"docs/adr/{path.name}", 1, "adr", f"{numbers[number]} has this number too"))
        numbers[number] = path.name
    index = (root / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    if "".join(ENTRY.findall(index)) != list_of_decisions(root):
        faults.append(Fault("docs/adr/README.md", 1, "adr", "the list is not up to date (tools/lint/documents.py --write)"))
    return faults


def write_decisions(root: pathlib.Path) -> None:
    path = root / "docs" / "adr" / "README.md"
    text = ENTRY.sub("", path.read_text(encoding="utf-8")).rstrip("\n")
    path.write_text(text + "\n\n" + list_of_decisions(root), encoding="utf-8")


# ---- model ----

IMPLEMENTED_BY = re.compile(r"Implemented by:\s*(.*?)(?:\(|\.\s|\*/)", re.S)


def check_model(root: pathlib.Path) -> list[Fault]:
    """A name is known where a source defines it: `Keeper::won(` for a member, `name(` at a line's begin otherwise."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path in tracked(root, "src", "include") if path.suffix in (".cpp", ".hpp"))
    faults = []
    for path in tracked(root, "spec"):
        if path.suffix != ".pml":
            continue
        text = path.read_text(encoding="utf-8")
        found = list(IMPLEMENTED_BY.finditer(text))
        if not found:
            faults.append(Fault(path.relative_to(root).as_posix(), 1, "model", "names no function of the program"))
        for match in found:
            line = text.count("\n", 0, match.start()) + 1
            names = [name.strip(" \n*") for name in match.group(1).split(",")]
            for name in names:
                if name.startswith("nothing"):
                    continue
                if not is_defined(name, sources):
                    faults.append(Fault(path.relative_to(root).as_posix(), line, "model", f"there is no function '{name}' in src/"))
    return faults


def is_defined(name: str, sources: str) -> bool:
    if not re.fullmatch(r"\w+(?:::\w+)?", name):
        return False
    owner, _, member = name.rpartition("::")
    if not owner:
        return re.search(rf"^(?!\s*return\b)(?:[\w:<>\[\]]+[ *&]+)+{name}\([^;]*\)[^;]*\{{", sources, re.M) is not None
    if re.search(rf"\b{owner}::{member}\(", sources):
        return True
    # Defined in the class.
    body = re.search(rf"^(?:class|struct) {owner}\b.*?^\}};", sources, re.S | re.M)
    return body is not None and re.search(rf"[ *&]{member}\(", body.group(0)) is not None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--write", action="store_true", help="bring the lists in docs/faults.md, docs/invariants.md and docs/adr/README.md up to date")
    options = parser.parse_args()
    root = options.root.resolve()
    if options.write:
        write_faults(root)
        write_decisions(root)
        write_invariants(root)
    faults = check_links(root) + check_faults(root) + check_tests(root) + check_rules(root) + check_invariants(root) + check_model(root) + check_decisions(root)
    for fault in faults:
        print(f"{fault.path}:{fault.line}: [{fault.rule}] {fault.text}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
