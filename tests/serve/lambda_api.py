"""A small fake of the two APIs that AWS Lambda has inside a function's environment, the Runtime API (2018-06-01) and the
Extensions API (2020-01-01), at one address as there. The test says what happens next; faults on demand."""
import http.server
import json
import queue
import threading
import time
import uuid
from typing import NamedTuple, Optional

from server import PATIENCE_SECONDS, OnSqlite

RESPONSE_MOST = 6 * 1024 * 1024 + 100
RUNTIME = "/2018-06-01/runtime"
EXTENSION = "/2020-01-01/extension"


class Told(NamedTuple):
    """What a runtime or an extension has said."""
    path: str
    headers: dict
    body: bytes

    def json(self):
        return json.loads(self.body)

    @property
    def error_type(self) -> Optional[str]:
        return self.headers.get("Lambda-Runtime-Function-Error-Type") or \
            self.headers.get("Lambda-Extension-Function-Error-Type")


class Gone(Exception):
    pass


class LambdaApi:
    """Use with `with`."""

    def __init__(self):
        self.registered = []             # (name, body) of extensions
        self.asked = threading.Semaphore(0)  # grows whenever the extension asks for an event: it is done with the last
        self.told = []                   # everything that was said, in order
        self.faults = {}                 # path -> [(status, body)] to be answered instead, each once
        self.invocations, self.events = queue.Queue(), queue.Queue()
        self.closed = False
        self.changed = threading.Condition()
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.serve(b"")

            def do_POST(self):
                self.serve(self.rfile.read(int(self.headers["Content-Length"])))

            def serve(self, body: bytes):
                try:
                    status, headers, data = api.answer(self, body)
                except Gone:
                    self.close_connection = True
                    return
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # who asked is gone

        self.server = Server(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """From now on nobody answers here."""
        self.closed = True
        self.server.shutdown()
        self.server.server_close()

    # ---- What is asked ----

    def answer(self, request, body: bytes):
        path = request.path
        if self.faults.get(path):
            status, data = self.faults[path].pop(0)
            return status, {}, data
        if path == f"{RUNTIME}/invocation/next":
            return self.next_invocation()
        if path == f"{EXTENSION}/event/next":
            if request.headers["Lambda-Extension-Identifier"] != "extension-1":
                return 403, {}, b'{"errorType":"Extension.UnknownExtensionIdentifier"}'
            return self.next_event()
        if path == f"{EXTENSION}/register":
            self.registered.append((request.headers["Lambda-Extension-Name"], json.loads(body)))
            return 200, {"Lambda-Extension-Identifier": "extension-1"}, b'{"functionName":"f"}'
        if len(body) > RESPONSE_MOST:
            return 413, {}, b'{"errorType":"RequestEntityTooLarge"}'
        with self.changed:
            self.told.append(Told(path, dict(request.headers), body))
            self.changed.notify_all()
        return 202, {}, b'{"status":"OK"}'

    def get(self, among: queue.Queue):
        while not self.closed:
            try:
                return among.get(timeout=0.1)
            except queue.Empty:
                pass
        raise Gone

    def next_invocation(self):
        headers, event = self.get(self.invocations)
        return 200, headers, event

    def next_event(self):
        self.asked.release()
        return 200, {}, json.dumps(self.get(self.events)).encode()

    # ---- What the test says ----

    def fail_next(self, path: str, status: int, body: bytes = b"{}", times: int = 1) -> None:
        self.faults.setdefault(path, []).extend([(status, body)] * times)

    def send_invocation(self, event, seconds: float = 60, request_id: str = "", **headers: str) -> str:
        """To the runtime; what the event is called. `event`: bytes, or what becomes JSON."""
        request_id = request_id or str(uuid.uuid4())
        data = event if isinstance(event, bytes) else json.dumps(event).encode()
        every = {"Lambda-Runtime-Aws-Request-Id": request_id,
                 "Lambda-Runtime-Deadline-Ms": str(int((time.time() + seconds) * 1000)),
                 "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:eu-west-1:1:function:f",
                 "Lambda-Runtime-Trace-Id": "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=1"}
        self.invocations.put(({**every, **headers}, data))
        return request_id

    def send_event(self, kind: str, seconds: float = 60, **more) -> None:
        """To the extension."""
        self.events.put({"eventType": kind, "deadlineMs": int((time.time() + seconds) * 1000), **more})

    def wait_until_asked(self) -> bool:
        return self.asked.acquire(timeout=PATIENCE_SECONDS)

    def wait_told(self, path_end: str, count: int = 1) -> Told:
        """The last of so many that were said there."""
        def those():
            return [told for told in self.told if told.path.endswith(path_end)]
        with self.changed:
            if not self.changed.wait_for(lambda: len(those()) >= count, PATIENCE_SECONDS):
                raise TimeoutError(f"nothing was said to {path_end}: {self.told}")
            return those()[count - 1]

    def result(self, request_id: str) -> Told:
        """Of an invocation: a response or an error."""
        def those():
            return [told for told in self.told if told.path.startswith(f"{RUNTIME}/invocation/{request_id}/")]
        with self.changed:
            if not self.changed.wait_for(those, PATIENCE_SECONDS):
                raise TimeoutError(f"{request_id} has no end: {self.told}")
            return those()[0]

    def invoke(self, event, **options) -> Told:
        return self.result(self.send_invocation(event, **options))


class InLambda(OnSqlite):
    """Each test has a Lambda of its own."""

    def setUp(self):
        super().setUp()
        self.api = self.another_api()

    def another_api(self) -> LambdaApi:
        api = LambdaApi()
        self.addCleanup(api.close)
        return api
