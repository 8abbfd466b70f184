"""What proxies are made of: an asyncio loop in a thread of its own, and a TCP connection that ends in a reset."""
import asyncio
import socket
import struct
import threading

PATIENCE_SECONDS = 20.0


class LoopThread:
    """Runs coroutines on a loop of its own. call() may be used from any other thread, and waits for the result."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE_SECONDS)

    def close(self) -> None:
        """Cancels what still runs there, and ends the thread."""
        async def end() -> None:
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0)
        self.call(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        if not self._thread.is_alive():
            self._loop.close()


def reset(writer: asyncio.StreamWriter) -> None:
    """Ends a connection at once, with RST instead of FIN, whatever is still on its way."""
    sock = writer.get_extra_info("socket")
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError:
        pass  # it has ended already
    writer.transport.abort()
