"""What the Python peers share: their arguments, the request's query and the patterns of README.md."""
import argparse
import ssl
from urllib.parse import parse_qs, urlsplit

KNOWN = ["v2.example", "v1.example"]
TEXT_UNIT = "aé€😀".encode()
BINARY_UNIT = bytes(range(246, 256))


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--cert")
    parser.add_argument("--key")
    return parser.parse_args()


def tls(options):
    """The server's TLS context, or None for a plain one."""
    if not options.cert:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.cert, options.key)
    return context


class Query:
    """The path of a request and its parameters."""

    def __init__(self, target):
        parts = urlsplit(target)
        self.path = parts.path
        self._values = parse_qs(parts.query)

    def text(self, name, default=""):
        return self._values.get(name, [default])[0]

    def number(self, name, default=0):
        return int(self.text(name, str(default)))

    def pattern(self):
        """(binary, payload) as `units` and `binary` ask for."""
        binary = self.number("binary") == 1
        return binary, (BINARY_UNIT if binary else TEXT_UNIT) * self.number("units", 1)

    def pieces(self):
        """The pattern's payload cut every `step` bytes: [(piece, is_last)]."""
        payload = self.pattern()[1]
        step = self.number("step", 7)
        cut = [payload[at : at + step] for at in range(0, len(payload), step)]
        return [(piece, at == len(cut) - 1) for at, piece in enumerate(cut)]

    def many(self):
        size = self.number("size")
        return (f"{i} ".ljust(size, "x") for i in range(self.number("count")))
