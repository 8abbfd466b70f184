"""A server on Autobahn that does what the path of a connection asks for: see README.md."""
import asyncio
import json

from autobahn.asyncio.websocket import WebSocketServerFactory, WebSocketServerProtocol

from scenario import KNOWN, Query, arguments, tls


class Peer(WebSocketServerProtocol):
    def onConnect(self, request):
        self.query = Query(request.path + "?" + "&".join(
            f"{name}={value}" for name, values in request.params.items() for value in values))
        self.request_headers = request.headers
        self.pinged = 0
        self.answered = 0
        self.all_sent = False
        return next((name for name in KNOWN if name in request.protocols), None)

    def onOpen(self):
        scenario = getattr(self, "do_" + self.query.path[1:], None)
        if scenario is None:
            self.sendCloseFrame(4004, b"no such path")
            return
        scenario()

    def onMessage(self, payload, isBinary):
        if self.query.path == "/echo":
            self.sendMessage(payload, isBinary)

    def onPong(self, payload):
        if self.query.path != "/pings":
            return
        # A client may leave pings out when a later one has come: RFC 6455, 5.5.3.
        number = int(payload.removeprefix(b"ping "))
        if not self.answered <= number < self.pinged:
            self.sendCloseFrame(4000, b"unexpected pong " + payload)
            return
        self.answered = number + 1
        self.tell_pongs()

    def onClose(self, wasClean, code, reason):
        if getattr(self, "query", None) and self.query.path == "/report":
            heard = self.remoteCloseCode or code  # `code` is the one that we answered with
            print(f"closed {heard} {self.remoteCloseReason or ''}", flush=True)

    def tell_pongs(self):
        if self.all_sent and self.answered == self.pinged:
            self.sendMessage(b"all answered")

    def do_echo(self):
        pass

    def do_report(self):
        pass

    def do_fragments(self):
        self.beginMessage(self.query.number("binary") == 1)
        for piece, _ in self.query.pieces():
            self.sendMessageFrame(piece)
        self.endMessage()  # with an empty last frame: that is Autobahn's way

    def do_pings(self):
        self.beginMessage()
        for piece, last in self.query.pieces():
            self.sendMessageFrame(piece)
            if not last:
                self.sendPing(f"ping {self.pinged}".encode())
                self.pinged += 1
        self.endMessage()
        self.all_sent = True
        self.tell_pongs()

    def do_many(self):
        asyncio.ensure_future(self.send_many())

    async def send_many(self):
        for i, message in enumerate(self.query.many()):
            self.sendMessage(message.encode())
            if i % 100 == 99:
                await asyncio.sleep(0)
        self.sendClose(1000)

    def do_large(self):
        binary, payload = self.query.pattern()
        self.sendMessage(payload, binary)

    def do_headers(self):
        self.sendMessage(json.dumps(self.request_headers).encode())

    def send_small(self):
        for i in range(self.query.number("count")):
            self.sendMessage(str(i).encode())

    def do_close(self):
        self.send_small()
        # sendClose() refuses the codes that only a server's operator should use; the frame is what we want.
        self.sendCloseFrame(self.query.number("code"), self.query.text("reason").encode())

    def do_abrupt(self):
        self.send_small()
        self.dropConnection(abort=True)


async def main():
    options = arguments()
    factory = WebSocketServerFactory()
    factory.protocol = Peer
    factory.setProtocolOptions(autoPingInterval=0)
    server = await asyncio.get_running_loop().create_server(factory, options.host, 0, ssl=tls(options))
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Future()


asyncio.run(main())
