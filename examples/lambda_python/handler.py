"""A function of AWS Lambda that charges a card once for each order, however often the event comes.

Beside it runs Holdfast's extension (docs/serverless.md): this asks it over HTTP, standard library only.
"""
import json
import os
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request

HOLDFAST = os.environ.get("HOLDFAST_URL", "http://127.0.0.1:7420")


class Refused(Exception):
    """Holdfast said no: `code` is the word to decide by, `detail` is for people."""

    def __init__(self, problem: dict):
        super().__init__(f"{problem['code']}: {problem['detail']}")
        self.code = problem["code"]


class Holdfast:
    """Holdfast, as one invocation asks it."""

    def __init__(self, context):
        self.context = context

    def waits(self, seconds: float) -> bool:
        """False: there is no time for that before this invocation's deadline, with a second to spare."""
        if seconds > self.context.get_remaining_time_in_millis() / 1000 - 1:
            return False
        time.sleep(seconds)
        return True

    def post(self, path: str, **body) -> dict:
        request = urllib.request.Request(
            HOLDFAST + path, json.dumps(body).encode(),
            # So that what this invocation holds is given back when it is over, and never what the next one holds.
            {"Content-Type": "application/json", "Lambda-Runtime-Aws-Request-Id": self.context.aws_request_id})
        # Where the answer was lost, or the store is away (503): asked for twice, each of these is done once.
        while True:
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                again_after = error.headers.get("Retry-After")
                if again_after is None or not self.waits(float(again_after)):
                    raise Refused(json.load(error)) from None
            except OSError:
                if not self.waits(1):
                    raise

    def once(self, key: str, what, run, retention: str, **options) -> str:
        """What `run(epoch)` gave back, now or when it was run. `what`: the same key with something else is refused."""
        path = "/v1/once/" + urllib.parse.quote(key, safe="")
        turn = self.post(path, input=what, guard=secrets.token_hex(16), **options)
        if turn["turn"] == "replay":
            return turn["result"]["content"]
        content = run(turn["epoch"])  # where this raises, or never ends, `abandoned` says what becomes of it
        self.post(path + "/finish", guard=turn["guard"], content=content, retention=retention)
        return content


def charge(order: dict, epoch: int) -> str:
    """Stands for a call of a payment provider: a line in a file."""
    with open(os.environ["LEDGER"], "a", encoding="utf-8") as ledger:
        ledger.write(f"{order['id']} {order['amount']} epoch {epoch}\n")
    return json.dumps({"order": order["id"], "charged": order["amount"]})


def handler(event, context):
    order = event["order"]
    # Money: who died in the middle has somebody look, instead of charging again; and whoever asks within a year is told.
    result = Holdfast(context).once(f"charge/{order['id']}", order, lambda epoch: charge(order, epoch),
                                    retention="365d", wait="20s", abandoned="hold")
    return json.loads(result)
