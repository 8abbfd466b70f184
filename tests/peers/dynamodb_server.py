"""A DynamoDB server of others on this machine, and its end.

  dynamodb_server.py local|dynalite                prints its endpoint, serves until SIGTERM, Ctrl-C or its parent's end
  dynamodb_server.py local|dynalite --shared NAME  one server for everybody who asks for NAME (below); returns at once

  local     Amazon's DynamoDB Local, in memory (package amplify-dynamodb-simulator, needs Java)
  dynalite  an independent one, in Node (package dynalite)

Both come with `npm ci` in this folder. HOLDFAST_JAVA and HOLDFAST_NODE name other programs than `java` and `node`.

Shared: a keeper, in the background, owns the server and listens on the abstract Unix socket NAME. Who connects gets one
line, `endpoint URL` or `failed WHY`, and keeps the connection for as long as the server is needed. The kernel closes it
when a process ends, however it ends. A keeper ends, and its server with it, when nobody has been connected for
--linger seconds and every ctest among whose children somebody was has ended: so one server serves all the processes of
one run of ctest. The server ends with its keeper, even if that is killed. The name can be taken once only: of two
keepers that start at once, the second leaves it to the first.
"""
import argparse
import ctypes
import json
import os
import pathlib
import random
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

FOLDER = pathlib.Path(__file__).resolve().parent
START_SECONDS = 90.0  # of waiting for an answer: generous, since a full machine may start Java slowly
PORTS = (20000, 32000)  # below those that the system hands to outgoing connections
PR_SET_PDEATHSIG = 1


class CannotStart(Exception):
    """Says what is missing or went wrong, and what to do."""


def dies_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def listens(pid: int, port: int) -> bool:
    """Whether it is this very process that listens on the port, and not one that took it before."""
    inodes = set()
    try:
        for table in ("tcp", "tcp6"):
            with open(f"/proc/{pid}/net/{table}", encoding="ascii") as lines:
                for line in list(lines)[1:]:
                    words = line.split()
                    if words[3] == "0A" and int(words[1].rsplit(":", 1)[1], 16) == port:
                        inodes.add(f"socket:[{words[9]}]")
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False  # it has ended
    for name in names:
        try:
            if os.readlink(f"/proc/{pid}/fd/{name}") in inodes:
                return True
        except OSError:
            continue  # closed meanwhile
    return False


class Server:
    """One server in a process of its own that ends with this one. `kind`: local or dynalite. Not thread-safe: it must
    be started by a thread that outlives it."""

    def __init__(self, kind: str) -> None:
        self.port = 0
        self.process: "subprocess.Popen | None" = None
        self._log = tempfile.TemporaryFile()  # pylint: disable=consider-using-with
        if kind == "local":
            self._start_local()
        else:
            self._start_dynalite()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()  # it has nothing to save
            self.process.wait()
        self._log.close()

    def _start_local(self) -> None:
        emulator = FOLDER / "node_modules" / "amplify-dynamodb-simulator" / "emulator"
        if not (emulator / "DynamoDBLocal.jar").exists():
            raise CannotStart("DynamoDB Local is not installed: run ./dev setup test, or `npm ci` in tests/peers")
        for _ in range(20):
            self.port = self._free_port()
            self._spawn([os.environ.get("HOLDFAST_JAVA") or "java",
                         # Small, and quick to start: it serves tests, one after the other.
                         "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData",
                         f"-Djava.library.path={emulator / 'DynamoDBLocal_lib'}", "-jar", "DynamoDBLocal.jar",
                         "-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(self.port)],
                        "Java is not installed: run ./dev setup test (Debian: default-jre-headless)", emulator)
            if self._wait_for_answer():
                return
            if "Address already in use" not in self._said():
                raise CannotStart(f"DynamoDB Local ended before it answered. It said: {self._said()}")
        raise CannotStart(f"no free port was found between {PORTS[0]} and {PORTS[1]}")

    def _start_dynalite(self) -> None:
        self._spawn([os.environ.get("HOLDFAST_NODE") or "node", str(FOLDER / "dynalite_server.mjs")],
                    "Node is not installed: run ./dev setup test (Debian: nodejs)", FOLDER, subprocess.PIPE)
        assert self.process and self.process.stdout
        ready, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)
        line = self.process.stdout.readline().strip() if ready else b""
        if not line:
            raise CannotStart(f"dynalite did not start. It said: {self._said()}")
        self.port = int(line)
        if not self._wait_for_answer():
            raise CannotStart(f"dynalite ended before it answered. It said: {self._said()}")

    def _spawn(self, command: list[str], missing: str, folder: pathlib.Path, output: "int | None" = None) -> None:
        self._log.seek(0)
        self._log.truncate()
        try:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
                command, stdin=subprocess.DEVNULL, stdout=output or self._log, stderr=self._log, cwd=folder,
                preexec_fn=dies_with_parent)
        except FileNotFoundError as error:
            raise CannotStart(missing) from error

    def _said(self) -> str:
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return " | ".join(lines[-5:]) or "nothing"

    @staticmethod
    def _free_port() -> int:
        while True:
            port = random.SystemRandom().randrange(*PORTS)
            with socket.socket() as probe:
                try:
                    probe.bind(("", port))
                except OSError:
                    continue
            return port

    def _wait_for_answer(self) -> bool:
        """False when it ended by itself first."""
        assert self.process
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                return False
            if listens(self.process.pid, self.port) and self._answers():
                return True
            time.sleep(0.02)
        self.process.kill()
        self.process.wait()
        raise CannotStart(f"it did not answer within {START_SECONDS:.0f} s. It said: {self._said()}")

    def _answers(self) -> bool:
        request = urllib.request.Request(self.endpoint, b"{}", {
            "X-Amz-Target": "DynamoDB_20120810.ListTables", "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Date": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
            "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, "
                             "SignedHeaders=host, Signature=0"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # whatever http_proxy says
        try:
            with opener.open(request, timeout=10) as answer:
                return "TableNames" in json.load(answer)
        except (OSError, ValueError):
            return False


class Shared:
    """Somebody who needs a server that others may use, too, until close() or the end of this process. Without a name:
    the one that is shared by all tests of this copy of the sources, as tests/support/dynamodb_servers.cpp names it.
    `endpoint` is empty and `failure` says why where there is none."""

    def __init__(self, kind: str, name: str = "", runner: str = "ctest", linger: str = "3") -> None:
        folder = os.stat(FOLDER)
        name = name or f"holdfast-test-{os.getuid()}-{kind}-{folder.st_dev}-{folder.st_ino}"
        line = ""
        while not line:
            try:
                self.socket = socket.socket(socket.AF_UNIX)
                self.socket.settimeout(START_SECONDS + 30)
                self.socket.connect("\0" + name)
                with self.socket.makefile() as lines:
                    line = lines.readline().strip()
            except ConnectionError:
                pass  # none there, or it was just going
            if not line:
                self.socket.close()
                subprocess.run([sys.executable, __file__, kind, "--shared", name, "--runner", runner,
                                "--linger", linger], check=True, timeout=START_SECONDS)
        self.endpoint = line.removeprefix("endpoint ") if line.startswith("endpoint ") else ""
        self.failure = line.removeprefix("failed ") if line.startswith("failed ") else ""

    @property
    def port(self) -> int:
        return int(self.endpoint.rpartition(":")[2])

    @property
    def keeper(self) -> int:
        """Its process id."""
        return struct.unpack("3i", self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]

    def close(self) -> None:
        self.socket.close()


def parent_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def run_above(pid: int, name: str) -> int:
    """The process of this name (ctest) that a process is a child of; 0: none."""
    try:
        while pid > 1:
            pid = parent_of(pid)
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
                if file.read().strip() == name:
                    return pid
    except (OSError, ValueError, IndexError):
        pass  # it has ended meanwhile
    return 0


class Keeper:
    """Owns the server of one name: see the top. `listener` is bound already."""

    def __init__(self, listener: socket.socket, kind: str, linger_seconds: float, runner: str) -> None:
        self._listener = listener
        self._kind = kind
        self._linger_seconds = linger_seconds
        self._runner = runner
        self._users: set[socket.socket] = set()
        self._runs: dict[int, int] = {}  # process id of a ctest → descriptor that tells its end
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        try:
            server = Server(self._kind)
        except CannotStart as error:
            self._serve_once(f"failed {error}\n")
            return
        with_end = os.pidfd_open(server.process.pid)
        self._selector.register(self._listener, selectors.EVENT_READ, "listener")
        self._selector.register(with_end, selectors.EVENT_READ, "server")
        line = f"endpoint {server.endpoint}\n".encode()
        while True:
            idle = not self._users and not self._runs
            events = self._selector.select(self._linger_seconds if idle else None)
            if idle and not events:
                break
            if any(key.data == "server" for key, _ in events):
                break  # whoever needs it next starts another
            for key, _ in events:
                self._handle(key, line)
        self._listener.close()  # who waits in its queue is told so, and starts another
        server.stop()

    def _handle(self, key: selectors.SelectorKey, line: bytes) -> None:
        if key.data == "listener":
            user, _ = self._listener.accept()
            user.setblocking(False)
            try:
                user.send(line)
            except OSError:
                user.close()
                return
            self._users.add(user)
            self._selector.register(user, selectors.EVENT_READ, "user")
            self._remember_run(user)
        elif key.data == "user":
            try:
                if key.fileobj.recv(100):
                    return  # nobody has to say anything
            except OSError:
                pass
            self._selector.unregister(key.fileobj)
            self._users.discard(key.fileobj)
            key.fileobj.close()
        else:  # a run of ctest has ended
            self._selector.unregister(key.fileobj)
            os.close(self._runs.pop(key.data))

    def _remember_run(self, user: socket.socket) -> None:
        pid, _, _ = struct.unpack("3i", user.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        run = run_above(pid, self._runner)
        if run and run not in self._runs:
            try:
                self._runs[run] = os.pidfd_open(run)
            except OSError:
                return
            self._selector.register(self._runs[run], selectors.EVENT_READ, run)

    def _serve_once(self, line: str) -> None:
        """Tells all who wait now; the next may find that it works."""
        self._listener.settimeout(0.5)
        try:
            while True:
                user, _ = self._listener.accept()
                user.sendall(line.encode())
                user.close()
        except OSError:
            pass


def keep(kind: str, name: str, linger_seconds: float, runner: str) -> None:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind("\0" + name)
    except OSError:
        return  # another was first
    listener.listen(256)  # before the fork: who comes now waits
    if os.fork() != 0:
        os._exit(0)
    os.setsid()
    listener.listen(256)  # once more, so that it is this process whose id users are told by the kernel
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.chdir("/")
    Keeper(listener, kind, linger_seconds, runner).run()


def serve(kind: str) -> None:
    dies_with_parent()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server = Server(kind)
    try:
        print(server.endpoint, flush=True)
        sys.exit(server.process.wait())
    except KeyboardInterrupt:
        pass
    finally:
        server.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["local", "dynalite"])
    parser.add_argument("--shared", metavar="NAME", help="start a keeper for NAME, unless there is one")
    parser.add_argument("--linger", metavar="SECONDS", type=float, default=3.0, help="stay unused so long (3)")
    parser.add_argument("--runner", metavar="NAME", default="ctest", help="whose end is waited for (ctest)")
    arguments = parser.parse_args()
    try:
        if arguments.shared:
            keep(arguments.kind, arguments.shared, arguments.linger, arguments.runner)
        else:
            serve(arguments.kind)
    except CannotStart as error:
        print(f"dynamodb_server.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
