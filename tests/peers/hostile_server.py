"""A server that does what no server should, on bare sockets. The path of a request says what: see `SCENARIOS`.

Prints its port, and then for each connection whose client sent a close frame `closed CODE`.
"""
import base64
import hashlib
import random
import socket
import struct
import sys
import threading
import time

from scenario import Query, arguments, tls

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def frame(opcode, payload=b"", fin=True, rsv=0, length=None, mask=None):
    """One frame; `length` is what its header says where that is not the truth."""
    length = len(payload) if length is None else length
    first = (0x80 if fin else 0) | rsv << 4 | opcode
    flag = 0x80 if mask is not None else 0
    if length < 126:
        head = struct.pack("!BB", first, flag | length)
    elif length < 1 << 16:
        head = struct.pack("!BBH", first, flag | 126, length)
    else:
        head = struct.pack("!BBQ", first, flag | 127, length)
    if mask is not None:
        head += mask
        payload = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
    return head + payload


def close_frame(code, reason=b""):
    return frame(CLOSE, struct.pack("!H", code) + reason)


class Client:
    """One connection, from the end of its request's headers on."""

    def __init__(self, connection, target, headers):
        self.connection = connection
        self.query = Query(target)
        self.headers = headers
        self.buffer = b""

    def send(self, data):
        self.connection.sendall(data)

    def answer(self, lines, body=b""):
        self.send("".join(line + "\r\n" for line in [*lines, ""]).encode() + body)

    def upgrade_lines(self):
        digest = hashlib.sha1((self.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode())
        return ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
                "Sec-WebSocket-Accept: " + base64.b64encode(digest.digest()).decode()]

    def upgrade(self, data=b""):
        """Switches protocols; `data` travels with the answer."""
        self.answer(self.upgrade_lines(), data)

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def take(self, count):
        while len(self.buffer) < count:
            block = self.connection.recv(65536)
            if not block:
                raise EOFError
            self.buffer += block
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def read_frame(self):
        first, second = self.take(2)
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack("!H", self.take(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", self.take(8))
        if not second & 0x80:
            print("unmasked", flush=True)
        mask = self.take(4) if second & 0x80 else b"\0\0\0\0"
        return first & 0x0F, bytes(byte ^ mask[i % 4] for i, byte in enumerate(self.take(length)))

    def until_close(self):
        """Reads to the client's close frame, says so, and answers nothing."""
        while True:
            opcode, payload = self.read_frame()
            if opcode == CLOSE:
                print("closed", struct.unpack("!H", payload[:2])[0] if payload else 1005, flush=True)
                return


def forever():
    threading.Event().wait()


# Before the upgrade is answered.

def silent(client):
    forever()


def status(client):
    """?code=503&retry=7&body=N&redirect=URL"""
    lines = [f"HTTP/1.1 {client.query.number('code')} No"]
    if client.query.text("retry"):
        lines.append("Retry-After: " + client.query.text("retry"))
    if client.query.text("redirect"):
        lines.append("Location: " + client.query.text("redirect"))
    body = (b"no\x00\x1b[31m" * client.query.number("body"))[: client.query.number("body")]
    client.answer([*lines, f"Content-Length: {len(body)}"], body)


def status_without_length(client):
    """The body ends with the connection, which never ends."""
    client.answer(["HTTP/1.1 503 No"], b"busy")
    forever()


def wrong_accept(client):
    client.answer([*client.upgrade_lines()[:3], "Sec-WebSocket-Accept: " + "A" * 27 + "="])
    forever()


def without(client):
    """?line=N: the upgrade without one of its lines."""
    lines = client.upgrade_lines()
    del lines[client.query.number("line")]
    client.answer(lines)
    forever()


def extra(client):
    """?line=TEXT: an upgrade that says more than was asked."""
    client.answer([*client.upgrade_lines(), client.query.text("line")])
    forever()


def old_http(client):
    client.answer(["HTTP/1.0 101 Switching Protocols", *client.upgrade_lines()[1:]])
    forever()


def endless_headers(client):
    client.send("".join(line + "\r\n" for line in client.upgrade_lines()).encode())
    while True:
        client.send(b"X-More: and more\r\n" * 64)


def endless_header_line(client):
    client.send(b"HTTP/1.1 101 ")
    while True:
        client.send(b"a" * KIB)


def slow_headers(client):
    while True:
        client.send(b"H")
        time.sleep(0.02)


def not_http(client):
    client.send(random.Random(client.query.number("seed")).randbytes(KIB))
    forever()


def end_before_answer(client):
    pass


def reset_before_answer(client):
    client.reset()


def end_in_answer(client):
    client.send(b"HTTP/1.1 101 Switching Proto")


# After it.

def close_at_once(client):
    """?code=1008: in the same segment as the upgrade."""
    client.upgrade(close_frame(client.query.number("code"), b"go away"))
    client.until_close()


def glued(client):
    """Messages and a close frame in the same segment as the upgrade."""
    client.upgrade(frame(TEXT, b"one") + frame(TEXT, b"two") + close_frame(1000))
    client.until_close()


def after_close(client):
    """Messages after the close frame."""
    client.upgrade(frame(TEXT, b"before") + close_frame(1000) + frame(TEXT, b"after") * 100)
    client.until_close()


def two_closes(client):
    client.upgrade(close_frame(1012) + close_frame(1000))
    client.until_close()


def flood(client, first, block):
    """Sends without end and reads beside it: a client that closes must be heard."""
    client.upgrade(first)
    reader = threading.Thread(target=quietly, args=(client.until_close,), daemon=True)
    reader.start()
    while reader.is_alive():
        client.send(block)
    reader.join()


def announce_gib(client):
    flood(client, frame(BINARY, length=GIB), bytes(64 * KIB))


def announce_most(client):
    """The largest length that the format has: 2^63 - 1."""
    flood(client, frame(BINARY, length=(1 << 63) - 1), bytes(64 * KIB))


def endless_fragments(client):
    flood(client, frame(BINARY, b"start", fin=False), frame(0, bytes(64 * KIB), fin=False))


def many_small_fragments(client):
    flood(client, frame(BINARY, b"start", fin=False), frame(0, b"x", fin=False) * 4096)


def ping_flood(client):
    """?mib=N of pings, and not one pong is read until all are sent; then a message."""
    client.upgrade()
    block = frame(PING, bytes(125)) * 512
    for _ in range(client.query.number("mib") * MIB // len(block)):
        client.send(block)
    client.send(frame(TEXT, b"enough"))
    client.until_close()


# Frames that break RFC 6455: each after a good message, which must arrive.
BROKEN = {
    "masked": frame(TEXT, b"hello", mask=b"\x01\x02\x03\x04"),
    "masked_with_zeros": frame(TEXT, b"hello", mask=bytes(4)),
    "rsv1": frame(TEXT, b"hello", rsv=4),
    "rsv2": frame(TEXT, b"hello", rsv=2),
    "rsv3": frame(TEXT, b"hello", rsv=1),
    "rsv1_on_ping": frame(PING, b"hello", rsv=4),
    **{f"opcode_{opcode}": frame(opcode, b"hello") for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)},
    "ping_in_fragments": frame(PING, b"hello", fin=False),
    "close_in_fragments": frame(CLOSE, b"\x03\xe8", fin=False),
    "long_ping": frame(PING, bytes(126)),
    "long_pong": frame(PONG, bytes(126)),
    "long_close": frame(CLOSE, b"\x03\xe8" + b"x" * 124),
    "continuation_of_nothing": frame(0, b"hello"),
    "continuation_of_nothing_open": frame(0, b"hello", fin=False),
    "text_inside_message": frame(TEXT, b"hel", fin=False) + frame(TEXT, b"lo"),
    "binary_inside_message": frame(TEXT, b"hel", fin=False) + frame(BINARY, b"lo"),
    "close_of_one_byte": frame(CLOSE, b"\x03"),
    **{f"close_{code}": close_frame(code) for code in (0, 1, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535)},
    "length_16_too_long_for_7": b"\x81\x7e\x00\x05hello",
    "length_64_too_long_for_16": b"\x81\x7f" + struct.pack("!Q", 200) + b"x" * 200,
    "length_of_64_bits": b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff",
    "bad_utf8": frame(TEXT, b"\xce\xba\xe1\xbd\xb9\xcf\x83\xed\xa0\x80"),
    "bad_utf8_overlong": frame(TEXT, b"\xc0\xaf"),
    "bad_utf8_too_high": frame(TEXT, b"\xf4\x90\x80\x80"),
    "bad_utf8_cut_at_end": frame(TEXT, "€".encode()[:2]),
    "bad_utf8_across_fragments": frame(TEXT, b"\xf4", fin=False) + frame(0, b"\x90\x80\x80"),
    "bad_utf8_cut_at_end_of_last_fragment": frame(TEXT, b"good", fin=False) + frame(0, "€".encode()[:2]),
    "bad_utf8_in_close_reason": close_frame(1000, b"\xff\xfe"),
}


def broken(client):
    """?what=NAME of BROKEN"""
    client.upgrade(frame(TEXT, b"good"))
    client.send(BROKEN[client.query.text("what")])
    client.until_close()


def list_broken(client):
    client.upgrade(b"".join(frame(TEXT, name.encode()) for name in BROKEN))
    client.send(close_frame(1000))
    client.until_close()


def fail_fast_utf8(client):
    """The first fragment is bad already, and no other one comes."""
    client.upgrade(frame(TEXT, b"good") + frame(TEXT, b"\xff", fin=False))
    client.until_close()


def garbage(client):
    """?seed=N: random bytes after a correct upgrade, then the end."""
    client.upgrade()
    client.send(random.Random(client.query.number("seed")).randbytes(64 * KIB))


def drip(client):
    """Valid frames, byte by byte."""
    client.upgrade()
    client.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in frame(TEXT, "aé€😀".encode(), fin=False) + frame(PING, b"p") + frame(0, b"x" * 130) + close_frame(1000):
        client.send(bytes([byte]))
        time.sleep(0.001)
    client.until_close()


def reset_in_message(client):
    client.upgrade(frame(TEXT, b"good") + frame(TEXT, b"half", length=100))
    time.sleep(0.05)
    client.reset()


def end_in_message(client):
    client.upgrade(frame(TEXT, b"good") + frame(TEXT, b"half", length=100))


def half_close(client):
    """Says no more, but would go on reading."""
    client.upgrade(frame(TEXT, b"good"))
    client.connection.shutdown(socket.SHUT_WR)
    client.until_close()


def ignore_close(client):
    """Goes on sending and never answers a close frame."""
    client.upgrade()
    while True:
        client.send(frame(TEXT, b"la la la"))
        time.sleep(0.01)


def mute(client):
    """Reads everything, says nothing, not even pong."""
    client.upgrade()
    while client.connection.recv(65536):
        pass


def pongs_only(client):
    client.upgrade()
    while True:
        opcode, payload = client.read_frame()
        if opcode == PING:
            client.send(frame(PONG, payload))
        if opcode == CLOSE:
            return


def unsolicited_pongs(client):
    client.upgrade(frame(PONG, b"nobody asked") + frame(PONG) + frame(TEXT, b"good"))
    client.until_close()


def deaf(client):
    """Never reads again."""
    client.upgrade(frame(TEXT, b"good"))
    forever()


def end_after_close(client):
    """The right way: the close frame is answered, then the connection ends."""
    client.upgrade(frame(TEXT, b"good"))
    client.until_close()
    client.send(close_frame(1000))


SCENARIOS = {f"/{scenario.__name__}": scenario for scenario in (
    silent, status, status_without_length, wrong_accept, without, extra, old_http, endless_headers,
    endless_header_line, slow_headers, not_http, end_before_answer, reset_before_answer, end_in_answer,
    close_at_once, glued, after_close, two_closes, announce_gib, announce_most, endless_fragments,
    many_small_fragments, ping_flood, broken, list_broken, fail_fast_utf8, garbage, drip, reset_in_message,
    end_in_message, half_close, ignore_close, mute, pongs_only, unsolicited_pongs, deaf, end_after_close)}


def quietly(action, *values):
    """The client may go at any time: that is what it is expected to do."""
    try:
        action(*values)
    except (OSError, EOFError):
        pass


def serve(connection, context):
    if context is not None:
        connection = context.wrap_socket(connection, server_side=True)
    with connection:
        request = b""
        while b"\r\n\r\n" not in request:
            block = connection.recv(65536)
            if not block:
                return
            request += block
        lines = request.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        client = Client(connection, lines[0].split(" ")[1], headers)
        SCENARIOS[client.query.path](client)


def main():
    options = arguments()
    context = tls(options)
    listener = socket.create_server((options.host, 0), backlog=128)
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=quietly, args=(serve, connection, context), daemon=True).start()


sys.exit(main())
