"""Stands before a DynamoDB server and does harm to the requests that it is told to harm.

  dynamodb_proxy.py --upstream PORT [--seed N]

Prints `PORT CONTROL`: where clients connect, and where orders are taken: one JSON object a line, answered by one.

  {"do": "plan", "rules": [RULE...]}   appends rules; a request is harmed by the first that wants it
  {"do": "clear"}                      forgets all rules; what is held or delayed stays so
  {"do": "release"}                    lets go what is held
  {"do": "refuse", "on": true}         nobody listens any more, and every connection is reset
  {"do": "cut"}                        resets every connection
  {"do": "counts"}                     {"seen": {OPERATION: N}, "forwarded": {OPERATION: N}, "answered": {OPERATION: N},
                                        "faults": {FAULT: N}, "held": N}

RULE is {"fault": FAULT, "operation": "UpdateItem"|"*", "contains": TEXT of the body, "skip": N, "times": N, "share": 0..1,
"seconds": S, "status": N, "type": NAME, "message": TEXT}: of the requests of that operation whose body contains the text
(any by default), it lets `skip` go by and harms `times` (1; 0: without end), or that share of them, drawn.

  fault                what happens                                                           the request reaches the server
  pass                 nothing                                                                yes
  drop_request         no answer ever; the connection stays                                   no
  drop_reply           no answer ever; the connection stays                                   yes
  delay_request        it goes on after `seconds`, even if the client has left meanwhile      yes, late
  delay_reply          the answer comes `seconds` late                                        yes
  hold_request         it goes on at the order `release`, even if the client has left         yes, late
  hold_reply           the answer comes at the order `release`                                yes
  cut_before_request   the connection is reset when the request has been read                 no
  cut_after_request    the connection is reset when the request has been passed on            yes
  cut_after_reply      the connection is reset when the server has answered                   yes
  status_500, _503     an error of the server (InternalServerError, a text that is no JSON)   no
  status_500_after     the same 500, but the server has done it                               yes
  throttle             ProvisionedThroughputExceededException, status 400                     no
  error                `status` (400) with `type` and `message`                               no
  garbage              status 200 and a body that is no JSON                                  yes
  no_http              bytes that are no HTTP, then the end                                   yes
  half_body            the answer's head and half its body, then the end                      yes
  wrong_crc            the answer with another X-Amz-Crc32                                    yes
  unprocessed          BatchGetItem: some keys of the request, drawn, come back unprocessed   the others

The class of the same name does it inside another Python program.
"""
import argparse
import asyncio
import ctypes
import json
import random
import signal
import sys
import zlib
from collections import Counter
from typing import NamedTuple

from loop_thread import LoopThread, reset

BODY_BYTES_MAX = 32 << 20
NOT_FORWARDED = {"drop_request", "cut_before_request", "status_500", "status_503", "throttle", "error"}
FAULTS = NOT_FORWARDED | {"pass", "drop_reply", "delay_request", "delay_reply", "hold_request", "hold_reply",
                          "cut_after_request", "cut_after_reply", "status_500_after", "garbage", "no_http", "half_body",
                          "wrong_crc", "unprocessed"}
TYPES = "com.amazonaws.dynamodb.v20120810#"


class Rule:
    """One rule of the plan, and how often it has been asked."""

    def __init__(self, told: dict) -> None:
        unknown = set(told) - {"fault", "operation", "contains", "skip", "times", "share", "seconds", "status", "type",
                               "message"}
        if unknown or told.get("fault") not in FAULTS:
            raise ValueError(f"there is no such fault or setting in {told}")
        self.fault: str = told["fault"]
        self.seconds: float = told.get("seconds", 0.0)
        self.status: int = told.get("status", 400)
        self.type: str = told.get("type", "")
        self.message: str = told.get("message", "made by a test")
        self._operation: str = told.get("operation", "*")
        self._contains: bytes = told.get("contains", "").encode()
        self._skip: int = told.get("skip", 0)
        self._times: int = told.get("times", 1)
        self._share: float = told.get("share", 1.0)

    def wants(self, operation: str, body: bytes, drawn: random.Random) -> bool:
        if self._operation not in ("*", operation) or self._contains not in body or self._times < 0:
            return False
        if self._skip > 0:
            self._skip -= 1
            return False
        if self._share < 1 and drawn.random() >= self._share:
            return False
        if self._times > 0:
            self._times -= 1
            if self._times == 0:
                self._times = -1  # done
        return True


class Message(NamedTuple):
    first: bytes  # the request line or the status line
    headers: "list[tuple[bytes, bytes]]"
    body: bytes

    def header(self, name: bytes) -> bytes:
        return next((value for key, value in self.headers if key.lower() == name), b"")

    def bytes(self) -> bytes:
        kept = [(key, value) for key, value in self.headers
                if key.lower() not in (b"content-length", b"transfer-encoding", b"expect")]
        kept.append((b"Content-Length", str(len(self.body)).encode()))
        return b"\r\n".join([self.first, *(key + b": " + value for key, value in kept), b"", b""]) + self.body


async def read_message(reader: asyncio.StreamReader, writer: "asyncio.StreamWriter | None") -> "Message | None":
    """The next one; nothing at the end of the connection. `writer` is where a client waits for `100 Continue`."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
        headers = []
        for line in head[1:]:
            key, _, value = line.partition(b":")
            headers.append((key, value.strip()))
        message = Message(head[0], headers, b"")
        if writer is not None and message.header(b"expect"):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if message.header(b"transfer-encoding").lower() == b"chunked":
            return message._replace(body=await read_chunks(reader))
        size = int(message.header(b"content-length") or 0)
        if size > BODY_BYTES_MAX:
            return None
        return message._replace(body=await reader.readexactly(size))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, ValueError):
        return None


async def read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        body += (await reader.readexactly(size + 2))[:-2]
        if size == 0:
            return body


def made_up(status: int, body: bytes) -> Message:
    return Message(b"HTTP/1.1 %d Made up" % status,
                   [(b"Content-Type", b"application/x-amz-json-1.0"), (b"x-amzn-RequestId", b"MADE-UP"),
                    (b"x-amz-crc32", str(zlib.crc32(body)).encode())], body)


def keep_unprocessed(request: Message, draw: random.Random) -> "tuple[Message, dict]":
    """The request without those keys that the server is to have no capacity for, and these, as an answer has them."""
    body = json.loads(request.body)
    left_out: dict = {}
    for table, asked in list(body["RequestItems"].items()):
        keys = asked["Keys"]
        kept = [key for key in keys if draw.random() < 0.5]
        missed = [key for key in keys if key not in kept]
        if missed:
            left_out[table] = {**asked, "Keys": missed}
        if kept:
            asked["Keys"] = kept
        else:
            del body["RequestItems"][table]
    return request._replace(body=json.dumps(body).encode()), left_out


def with_unprocessed(reply: Message, left_out: dict) -> Message:
    body = json.loads(reply.body)
    body["UnprocessedKeys"] = {**body.get("UnprocessedKeys", {}), **left_out}
    return made_up(200, json.dumps(body).encode())


def error(status: int, name: str, message: str) -> Message:
    return made_up(status, json.dumps({"__type": TYPES + name, "message": message}).encode())


class _Client:
    """One connection of a client, and the one to the server that belongs to it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.upstream: "tuple[asyncio.StreamReader, asyncio.StreamWriter] | None" = None


class DynamoDbProxy:
    """Runs in a thread of its own. Every public method may be called from any thread."""

    def __init__(self, upstream_port: int, seed: int = 1) -> None:
        self._upstream_port = upstream_port
        self._drawn = random.Random(seed)
        self._rules: list[Rule] = []
        self._counts: dict[str, Counter] = {"seen": Counter(), "forwarded": Counter(), "answered": Counter(),
                                              "faults": Counter()}
        self._held = 0
        self._clients: set[_Client] = set()
        self._listener: "asyncio.Server | None" = None
        self.port = 0
        self._loop = LoopThread("dynamodb proxy")
        self._loop.call(self._open())

    def plan(self, *rules: dict) -> None:
        self._order({"do": "plan", "rules": list(rules)})

    def clear(self) -> None:
        self._order({"do": "clear"})

    def release(self) -> None:
        self._order({"do": "release"})

    def refuse(self, on: bool) -> None:
        self._order({"do": "refuse", "on": on})

    def cut(self) -> None:
        self._order({"do": "cut"})

    def counts(self) -> dict:
        return self._order({"do": "counts"})

    def close(self) -> None:
        self._order({"do": "refuse", "on": True})
        self._loop.close()

    def serve_orders(self) -> int:
        """Takes orders from a port as well; gives the port."""
        async def open_port() -> int:
            server = await asyncio.start_server(self._take_orders, "127.0.0.1", 0)
            return server.sockets[0].getsockname()[1]
        return self._loop.call(open_port())

    def _order(self, order: dict) -> dict:
        return self._loop.call(self._obey(order))

    # On the loop.

    async def _open(self) -> None:
        self._released = asyncio.Event()
        await self._listen()

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port, reuse_address=True,
                                                    limit=1 << 20, backlog=1024)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _obey(self, order: dict) -> dict:
        what = order.get("do")
        if what == "plan":
            self._rules += [Rule(rule) for rule in order["rules"]]
        elif what == "clear":
            self._rules = []
        elif what == "release":
            self._released.set()
            self._released = asyncio.Event()
        elif what == "cut":
            self._cut_all()
        elif what == "refuse":
            if order["on"] and self._listener is not None:
                self._listener.close()
                self._listener = None
                self._cut_all()
            elif not order["on"] and self._listener is None:
                await self._listen()
        elif what != "counts":
            raise ValueError(f"there is no order {what!r}")
        return {**self._counts, "held": self._held}

    def _cut_all(self) -> None:
        for client in list(self._clients):
            reset(client.writer)

    async def _take_orders(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            try:
                answer = await self._obey(json.loads(line))
            except (ValueError, KeyError) as fault:
                answer = {"error": f"{type(fault).__name__}: {fault}"}
            writer.write(json.dumps(answer).encode() + b"\n")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Client(writer)
        self._clients.add(client)
        try:
            while (request := await read_message(reader, writer)) is not None:
                if not await self._one(client, request):
                    break
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._clients.discard(client)
            writer.close()
            if client.upstream is not None:
                client.upstream[1].close()

    async def _one(self, client: _Client, request: Message) -> bool:
        """Whether the connection goes on."""
        operation = request.header(b"x-amz-target").decode("latin-1").rpartition(".")[2] or "(other)"
        self._counts["seen"][operation] += 1
        rule = next((one for one in self._rules if one.wants(operation, request.body, self._drawn)), None)
        fault = rule.fault if rule is not None else "pass"
        if rule is not None:
            self._counts["faults"][fault] += 1
        if fault in NOT_FORWARDED:
            return await self._without_server(client, rule)
        if fault == "delay_request":
            await asyncio.sleep(rule.seconds)
        elif fault == "hold_request":
            await self._hold()
        elif fault == "unprocessed" and operation == "BatchGetItem":
            request, left_out = keep_unprocessed(request, self._drawn)
            if not json.loads(request.body)["RequestItems"]:
                client.writer.write(made_up(200, json.dumps({"Responses": {}, "UnprocessedKeys": left_out}).encode()).bytes())
                await client.writer.drain()
                self._counts["answered"][operation] += 1
                return True
        await self._forward(client, request)
        self._counts["forwarded"][operation] += 1
        if fault == "cut_after_request":
            reset(client.writer)
        reply = await read_message(client.upstream[0], None)
        self._counts["answered"][operation] += 1
        if reply is None:  # the server has gone
            reset(client.writer)
        if reply is None or fault == "cut_after_request":
            return False
        if fault == "unprocessed" and operation == "BatchGetItem" and reply.first.split()[1:2] == [b"200"]:
            reply = with_unprocessed(reply, left_out)
        return await self._hand_on(client, rule, reply)

    async def _without_server(self, client: _Client, rule: Rule) -> bool:
        if rule.fault == "drop_request":
            return True
        if rule.fault == "cut_before_request":
            reset(client.writer)
            return False
        answers = {
            "status_500": error(500, "InternalServerError", rule.message),
            "status_503": made_up(503, b"Service Unavailable"),
            "throttle": error(400, "ProvisionedThroughputExceededException", rule.message),
            "error": error(rule.status, rule.type, rule.message),
        }
        client.writer.write(answers[rule.fault].bytes())
        await client.writer.drain()
        return True

    async def _hand_on(self, client: _Client, rule: "Rule | None", reply: Message) -> bool:
        fault = rule.fault if rule is not None else "pass"
        if fault == "drop_reply":
            return True
        if fault == "cut_after_reply":
            reset(client.writer)
            return False
        if fault == "delay_reply":
            await asyncio.sleep(rule.seconds)
        elif fault == "hold_reply":
            await self._hold()
        elif fault == "status_500_after":
            reply = error(500, "InternalServerError", rule.message)
        elif fault == "garbage":
            reply = made_up(200, b"\xff\xfe{not json")
        elif fault == "wrong_crc":
            kept = [(key, value) for key, value in reply.headers if key.lower() != b"x-amz-crc32"]
            reply = reply._replace(headers=[*kept, (b"x-amz-crc32", str(zlib.crc32(reply.body) ^ 1).encode())])
        text = b"\x16\x03\x01 no HTTP at all\r\n" if fault == "no_http" else reply.bytes()
        if fault == "half_body":
            text = text[:len(text) - (len(reply.body) + 1) // 2]
        client.writer.write(text)
        await client.writer.drain()
        return fault not in ("no_http", "half_body")

    async def _hold(self) -> None:
        self._held += 1
        try:
            await self._released.wait()
        finally:
            self._held -= 1

    async def _forward(self, client: _Client, request: Message) -> None:
        if client.upstream is None or client.upstream[1].is_closing() or client.upstream[0].at_eof():
            client.upstream = await asyncio.open_connection("127.0.0.1", self._upstream_port, limit=1 << 20)
        client.upstream[1].write(request.bytes())
        await client.upstream[1].drain()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upstream", type=int, required=True, metavar="PORT")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="draws for rules with a share (1)")
    arguments = parser.parse_args()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: ends with whoever started it
    proxy = DynamoDbProxy(arguments.upstream, arguments.seed)
    print(proxy.port, proxy.serve_orders(), flush=True)
    signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
