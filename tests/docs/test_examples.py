#!/usr/bin/env python3
"""The examples of the coordinators' pages and of their --help, run as they stand there. A block that calls one of their
commands and has no test here is a fault.

  test_examples.py PROGRAM [TEST…]
"""
import contextlib
import functools
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/serve"))
import server as serve  # noqa: E402  pylint: disable=wrong-import-position
from lambda_api import LambdaApi  # noqa: E402  pylint: disable=wrong-import-position
from server import PATIENCE_SECONDS, OnDynalite, OnSqlite  # noqa: E402  pylint: disable=wrong-import-position

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
CALLS = re.compile(r"\bholdfast (run|once|decide|counter|stock|queue|task|journal|serve|lambda) |\bcurl ")
EXAMPLES = []  # (page, words) of each block that has a test


def pages():
    # The blocks of cli.md are what --help prints: see Help.
    return [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name != "cli.md")]


def blocks(page: pathlib.Path):
    return [text for language, text in FENCED.findall(page.read_text(encoding="utf-8")) if language in ("", "sh")]


def example(page: str, words: str):
    """The test is given the one block of that page that has these words."""
    EXAMPLES.append((page, words))

    def decorate(test):
        @functools.wraps(test)
        def run(self):
            found = [text for text in blocks(ROOT / page) if words in text]
            self.assertEqual(len(found), 1, f"{page}: {words}")
            test(self, found[0])
        return run
    return decorate


class Reader(OnSqlite):
    """Somebody who copies what a page shows into a shell, in a folder of his own. What the pages say is his own (report.sh,
    charge.sh, …) notes in `ran` how it was called."""

    def setUp(self):
        super().setUp()
        self.variables = {key: value for key, value in os.environ.items() if not key.startswith("HOLDFAST_")}
        self.variables["PATH"] = f"{self.folder}/bin:{os.environ['PATH']}"
        (self.folder / "bin").mkdir()
        # As on /usr/bin; its id is noted, so that what serves can be told to end.
        self.script("bin/holdfast", f'echo $$ >"{self.folder}/pid-$1"; exec {serve.PROGRAM} "$@"')
        self.variables["HOME"] = str(self.folder)
        for name in ("report.sh", "compact.sh", "charge.sh", "ship.sh", "tell-the-customer.sh", "bin/pay", "bin/refund", "handler", "handler.sh"):
            self.script(name, f'echo "{pathlib.Path(name).name} $*" >>"{self.folder}/ran"; echo done')
        for name in ("invoice.json", "order.json"):
            (self.folder / name).write_text('{"amount": 30}')

    def script(self, name: str, text: str) -> None:
        (self.folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.folder / name).chmod(0o755)

    def here(self, text: str) -> str:
        """Places that are not ours to write to, ports that somebody else may have."""
        return text.replace("/var/lib/jobs", str(self.folder)).replace("127.0.0.1:7420", "127.0.0.1:0")

    def start(self, text: str, **variables) -> subprocess.Popen:
        process = subprocess.Popen(["bash", "-c", self.here(text)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                   env={**self.variables, **variables}, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(self.kill, process)
        return process

    @staticmethod
    def kill(process: subprocess.Popen) -> None:
        """With what it left in the background."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def shell(self, text: str, code: int = 0, errors: str = "", **variables) -> str:
        """Runs it to its end; what it printed."""
        process = self.start(text, **variables)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        self.assertEqual((process.returncode, err), (code, errors), text)
        return out

    def ran(self):
        path = self.folder / "ran"
        return path.read_text().splitlines() if path.exists() else []

    def end(self, command: str) -> None:
        """Of holdfast, which is running."""
        os.kill(int((self.folder / f"pid-{command}").read_text()), signal.SIGTERM)

    def away(self):
        """The store does not answer until the test is over."""
        other = sqlite3.connect(self.folder / "holdfast.db", isolation_level=None, timeout=60)
        self.addCleanup(other.close)
        other.execute("BEGIN EXCLUSIVE")

    def as_shown(self, shown: str, told: str) -> None:
        """`…` in a page stands for anything, a long number for any."""
        pattern = re.sub(r"\d{9,}", r"\\d+", re.escape(shown).replace("5f0c…", ".*").replace("…", ".*"))
        self.assertRegex(told.strip(), re.compile(f"^{pattern}$"))


class Pages(Reader):
    def test_each_example_has_a_test(self):
        for page in pages():
            name = page.relative_to(ROOT).as_posix()
            for text in filter(CALLS.search, blocks(page)):
                tests = [words for other, words in EXAMPLES if other == name and words in text]
                self.assertEqual(len(tests), 1, f"{name} has an example without a test of its own:\n{text}")

    @example("README.md", "holdfast queue send letters customer-7")
    def test_the_first_look(self, block):
        api = LambdaApi()
        self.addCleanup(api.close)
        process = self.start(block, AWS_LAMBDA_RUNTIME_API=api.address)
        lines = [process.stdout.readline().strip() for _ in range(6)]
        self.assertEqual(lines[:5], ["done", "done", "order-17", "10", "order-17 held"])
        self.assertEqual(lines[5], "1", "the letter's number")
        self.assertTrue(process.stdout.readline().startswith("listening on http://127.0.0.1:"))
        self.end("serve")
        self.assertEqual(api.invoke({"detail": {"id": "order-18"}}).body, b"done\n")
        self.end("lambda")
        self.assertEqual(process.wait(PATIENCE_SECONDS), 0)
        self.assertEqual(self.ran(), ["report.sh ", "charge.sh invoice.json", "handler "])

    @example("docs/coordinators.md", "export HOLDFAST_STORE=sqlite:/var/lib/jobs/holdfast.db")
    def test_which_table(self, block):
        (self.folder / "elsewhere").mkdir()
        self.shell(f"{block}\nholdfast decide k a; cd elsewhere; holdfast decide k b")
        self.assertEqual(self.shell(f"{block}\nholdfast decide k c"), "a\n")

    @example("docs/coordinators.md", "--abandoned hold --record-failures")
    def test_a_payment(self, block):
        for _ in range(2):
            self.assertEqual(self.shell(block, id="17"), "done\n")
        self.assertEqual(self.ran(), ["charge.sh invoice.json"])

    @example("docs/coordinators.md", "--reconcile ./was-it-charged.sh")
    def test_a_payment_that_one_can_ask_about(self, block):
        self.script("was-it-charged.sh", f'echo "asked $*" >>"{self.folder}/ran"; echo charged before')
        self.shell("holdfast once invoice-17 -- sh -c 'kill -9 $$'", code=137)
        for _ in range(2):
            self.assertEqual(self.shell(block, id="17"), "charged before\n")
        self.assertEqual(self.ran(), ["asked ./charge.sh invoice.json"])

    @example("docs/coordinators.md", "--reconcile true")
    def test_both_ways_on_for_a_payment_that_is_held(self, block):
        was_done, was_not = block.splitlines()
        for key in ("invoice-17", "invoice-18"):
            self.shell(f"holdfast once {key} -- sh -c 'kill -9 $$'", code=137)
        self.assertEqual(self.shell(was_done, id="17"), "")
        self.assertEqual(self.shell(was_not, id="18", epoch="1"), "released invoice-18, epoch 1\n")
        for key, printed in (("invoice-17", ""), ("invoice-18", "done\n")):
            self.assertEqual(self.shell(f"holdfast once {key} --abandoned hold -- ./charge.sh {key}"), printed)
        self.assertEqual(self.ran(), ["charge.sh invoice-18"])

    @example("docs/coordinators.md", "holdfast decide last-seat")
    def test_who_was_first(self, block):
        self.shell(block, order="order-17")
        self.shell(block, code=1, order="order-18")
        self.assertEqual(self.ran(), ["ship.sh "])

    @example("docs/coordinators.md", "holdfast stock confirm")
    def test_goods(self, block):
        out = self.shell(block, order="order-17").split("\n")
        self.assertEqual(out, ["100", "20", "order-17 held", "done", "order-17 confirmed", ""])
        self.assertEqual(self.ran(), ["pay order-17"])
        self.assertEqual(self.shell("holdfast stock show shirt; holdfast stock show hat"), "98\n19\n")
        out = self.shell(block, order="order-17").split("\n")
        self.assertEqual(out[2:], ["order-17 confirmed", "done", "order-17 confirmed", ""], "run again")
        self.assertEqual(self.ran(), ["pay order-17"])

    def test_goods_that_are_paid_for_too_late(self):
        block = next(text for text in blocks(ROOT / "docs/coordinators.md") if "holdfast stock confirm" in text)
        self.script("bin/pay", f'echo "pay $*" >>"{self.folder}/ran"; sleep 4')
        for _ in range(2):
            process = self.start(block.replace("--ttl 15m", "--ttl 2s"), order="order-17")
            process.communicate(timeout=PATIENCE_SECONDS)
            self.assertEqual(process.returncode, 1)
        self.assertEqual(self.ran(), ["pay order-17", "refund order-17"])

    @example("docs/coordinators.md", "holdfast queue receive letters")
    def test_a_consumer(self, block):
        self.script("bin/deliver", f'cat >"{self.folder}/letter"; cat "{self.folder}/letter" >>"{self.folder}/ran"; '
                                   f'! grep -q refused "{self.folder}/letter"')
        self.shell("for letter in one two; do holdfast queue send letters ann $letter; done\n"
                   "holdfast queue send letters bob refused")
        self.start(block)
        self.eventually(lambda: sorted(self.ran()) == ["one", "refused", "two"], "what was delivered")
        self.assertLess(self.ran().index("one"), self.ran().index("two"))
        self.eventually(lambda: [(each["group"], each["messages"], each["state"]) for each in
                                 json.loads(self.shell("holdfast queue stats letters --json"))] ==
                        [("bob", 1, "delayed")], "ann's are acknowledged, bob's is given back")

    @example("docs/modes.md", "holdfast journal set-aside")
    def test_goods_that_are_sold_while_the_store_is_away(self, block):
        lines = self.shell(block).splitlines()
        self.assertEqual(lines[:2], ["40", "10"], "what there is after each delivery")
        told = "\n".join(lines)
        for words in ("till-3", "sale-17"):
            self.assertIn(words, told)
        self.assertEqual(self.shell("holdfast journal reconcile; holdfast stock show shirt").splitlines()[-1], "39")
        self.assertEqual(self.ran(), [], "nothing was rejected")

    @example("docs/modes.md", "$ holdfast decide paid-first order-17 --mode available")
    def test_the_store_is_away(self, block):
        self.shell("holdfast init >init")
        self.away()
        command, _, shown = block.partition("\n")
        self.as_shown(shown.strip(), self.shell(f"({command.removeprefix('$ ')}) 2>&1"))

    @example("docs/serverless.md", "holdfast lambda --key /detail/id --fingerprint /detail")
    def test_the_runtime(self, block):
        api = LambdaApi()
        self.addCleanup(api.close)
        process = self.start(block, AWS_LAMBDA_RUNTIME_API=api.address)
        for _ in range(2):
            self.assertEqual(api.invoke({"detail": {"id": "order-18"}}).body, b"done\n")
        self.assertEqual(self.ran(), ["handler "])
        self.end("lambda")
        self.assertEqual(process.wait(PATIENCE_SECONDS), 0)

    # ---- Over HTTP ----

    def serve(self, command: str, shown: str) -> None:
        self.process = self.start(command)
        line = self.process.stdout.readline()
        self.port = line.strip().rpartition(":")[2]
        self.assertEqual(line.replace(self.port, "7420"), shown)

    def ask(self, command: str, shown: str, **words: str) -> dict:
        for word, meant in {"127.0.0.1:7420": f"127.0.0.1:{self.port}", **words}.items():
            command = command.replace(word, meant)
        told = self.shell(command)
        self.as_shown(shown.strip(), told)
        return json.loads(told)

    @example("docs/http.md", "$ holdfast serve --store sqlite:holdfast.db &")
    def test_a_right_over_http(self, block):
        served, acquired, released = [each.partition("\n") for each in block.split("$ ")[1:]]
        self.serve(served[0].replace("serve", "serve --listen 127.0.0.1:0"), served[2])
        guard = self.ask(acquired[0], acquired[2])["guard"]
        self.ask(released[0], released[2], **{"5f0c…": guard})

    @example("docs/http.md", '"mode":"available"}')
    def test_provisionally_over_http(self, block):
        self.serve("holdfast serve --listen 127.0.0.1:0 --journal journal --store-patience 300ms",
                   "listening on http://127.0.0.1:7420\n")
        self.away()
        command, _, shown = block.removeprefix("$ ").partition("\n")
        self.ask(command, shown)

    def test_a_refusal_over_http(self):
        shown = next(text for text in blocks(ROOT / "docs/http.md") if "about:blank" in text)
        self.serve("holdfast serve --listen 127.0.0.1:0", "listening on http://127.0.0.1:7420\n")
        command = "curl -s --json '{}' http://127.0.0.1:7420/v1/tasks/report/acquire"
        self.ask(command, "{…}")
        self.ask(command, shown.replace("9.3", "…"))  # seconds


class PagesOnDynalite(OnDynalite, Reader):
    def here(self, text):
        return super().here(text).replace("region=eu-west-1", f"region=eu-west-1&endpoint={self.server.endpoint}")

    def setUp(self):
        super().setUp()
        self.variables.update(serve.ANY_ACCOUNT)

    @example("docs/coordinators.md", "nightly-$(date +%F)")
    def test_a_job_on_three_machines(self, block):
        self.shell("holdfast init --store 'dynamodb://jobs?region=eu-west-1' >init")
        for _ in range(3):
            self.assertEqual(self.shell(block), "done\n")
        self.assertEqual(self.ran(), ["report.sh "])

    @example("docs/coordinators.md", "holdfast run compaction")
    def test_a_job_that_excludes_itself(self, block):
        self.shell("holdfast init --store 'dynamodb://jobs?region=eu-west-1' >init")
        holder = self.start("holdfast run compaction --store 'dynamodb://jobs?region=eu-west-1' -- sh -c "
                            "'touch held; while [ ! -e go ]; do sleep 0.05; done'")
        self.eventually((self.folder / "held").exists)
        self.start(block).communicate(timeout=PATIENCE_SECONDS)
        self.assertEqual(self.ran(), [])
        (self.folder / "go").touch()
        self.assertEqual(holder.wait(PATIENCE_SECONDS), 0)
        self.assertEqual(self.shell(block), "done\n")

    @example("docs/coordinators.md", "CoordenadoresEfemeros")
    def test_a_table_that_others_made(self, block):
        export, run = block.rstrip().rsplit("\n", 1)
        self.assertEqual(self.shell(f"{export}\nholdfast init >init\n{run}"), "done\n")


# What has to be there before the examples of a command, and what they end with where it is not 0. Those of serve and
# lambda, which do not end by themselves, are as those of the pages.
RECEIVED = "holdfast queue send mails user-7 a; receipt=$(holdfast queue receive mails --json | jq -r .receipt)"
RESERVED = "holdfast stock add shirt 9; holdfast stock add hat 9; holdfast stock reserve order-17 shirt=2 hat=1"
SET_ASIDE = "holdfast stock add shirt 40; holdfast stock add hat 10; holdfast journal set-aside q shirt=9 --journal "
HELP = {
    "run": "",
    "once": "",
    "decide": "",
    "counter add": "holdfast counter add seats 10",
    "counter show": "holdfast init",
    "stock add": "",
    "stock show": "holdfast init",
    "stock reserve": "holdfast stock add shirt 9; holdfast stock add hat 9",
    "stock confirm": RESERVED,
    "stock cancel": RESERVED,
    "stock reservation": RESERVED,
    "stock sweep": "holdfast init",
    "queue send": "echo dear >letter.txt",
    "queue receive": "holdfast queue send mails user-7 a; holdfast queue send mails user-8 b",
    "queue ack": RECEIVED,
    "queue nack": RECEIVED,
    "queue extend": RECEIVED,
    "queue park": RECEIVED,
    "queue redrive": f"{RECEIVED}; holdfast queue park \"$receipt\"",
    "queue peek": RECEIVED,
    "queue stats": RECEIVED,
    "task ls": "holdfast init",
    "task show": "holdfast run nightly-report -- true; holdfast once invoice-17 -- true",
    "task release": "holdfast once invoice-17 --abandoned hold -- sh -c 'kill -9 $$' 2>refused || true",
    "journal ls": f"{SET_ASIDE} shop.journal",
    "journal reconcile": f"{SET_ASIDE} shop.journal",
    "journal set-aside": "holdfast stock add shirt 40; holdfast stock add hat 10",
    "journal give-back": "holdfast stock add shirt 40; holdfast journal set-aside till-3 shirt=9",
    "journal sell": f"{SET_ASIDE} holdfast.journal",
}


class Help(Reader):
    def test_each_example_works(self):
        for path, before in HELP.items():
            with self.subTest(path):
                self.setUp()
                text = subprocess.run([serve.PROGRAM, *path.split(), "--help"], check=True, capture_output=True,
                                      text=True, timeout=PATIENCE_SECONDS).stdout
                examples = re.findall(r"^  \$ (.*)$", text.partition("Example:\n")[2], re.M)
                self.assertTrue(examples)
                self.script("was-it-charged.sh", "exit 10")
                self.shell("\n".join(["set -e", before, *examples]))

    def test_each_command_of_the_coordinators_is_among_them(self):
        pages_commands = set(re.findall(r"^\$ holdfast (.*) --help$", (ROOT / "docs/cli.md").read_text(), re.M))
        ours = {path for path in pages_commands if path.split()[0] in {each.split()[0] for each in HELP}}
        self.assertEqual(ours - {path.split()[0] for path in HELP if " " in path}, set(HELP))


if __name__ == "__main__":
    serve.main_program()
    unittest.main()
