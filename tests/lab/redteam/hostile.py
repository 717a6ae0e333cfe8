"""A server that answers whatever a random generator says, down to broken HTTP; it remembers what was asked of it."""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
from collections.abc import Callable

ODD = [
    None, True, 0, -1, 10**400, 1e308, "", " ", "x", "." * 3, "..", "*", "a/b", "a\r\nb", "\x00", "\ud800", "\u202e",
    "é" * 600, [], {}, [[]], {"a": []}, "town-0", ["town-0", "town-0"], "<b>", "a" * 5000,
]  # fmt: skip


class Hostile:
    """Attributes:
    url: Its address.
    answered: Replies so far.
    """

    def __init__(
        self, seed: int, on_request: Callable[[str, str, bytes], None] = lambda method, path, body: None
    ) -> None:
        self.numbers, self.on_request, self.answered = random.Random(seed), on_request, 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(60)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(60)
            try:
                if (request := self._read(connection)) is None:
                    return
                self.on_request(*request)
                with self._lock:
                    self.answered += 1
                    reply = self.reply()
                if reply is None:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    connection.sendall(reply)
            except OSError:
                return

    def _read(self, connection: socket.socket) -> tuple[str, str, bytes] | None:
        data = b""
        while b"\r\n\r\n" not in data:
            if not (chunk := connection.recv(65536)):
                return None
            data += chunk
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        length = next((int(line.partition(":")[2]) for line in lines if line.lower().startswith("content-length")), 0)
        while len(body) < length:
            body += connection.recv(65536)
        method, path, _ = lines[0].split(" ", 2)
        return method, path, body

    def reply(self) -> bytes | None:
        kind = self.numbers.randrange(20)
        if kind == 0:
            return None
        if kind == 1:
            return self.numbers.randbytes(self.numbers.randrange(2000))
        if kind == 2:
            return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc"
        if kind == 3:
            return b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nConnection: close\r\n\r\n{}"
        if kind == 4:
            return b"HTTP/1.1 100 Continue\r\n\r\n" * 50
        status, body, headers = 200, self.body(kind), {}
        if kind == 5:
            status = self.numbers.choice([301, 302, 307, 308])
            headers["Location"] = self.numbers.choice(["http://192.0.2.1/", "file:///etc/passwd", "//x", "\u00e9"])
        if kind in (6, 7):
            status = self.numbers.choice(
                [201, 202, 204, 400, 401, 403, 404, 405, 409, 410, 418, 422, 429, 500, 502, 503, 599]
            )
            headers["Retry-After"] = self.numbers.choice(
                ["-1", "1e9", "9" * 30, "soon", "Wed, 21 Oct 2015 07:28:00 GMT", ""]
            )
        if kind == 8:
            headers["Content-Encoding"] = self.numbers.choice(["gzip", "br", "x"])
        text = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} x\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{text}\r\n"
        return head.encode("utf-8") + body

    def body(self, kind: int) -> bytes:
        odd = self.numbers.choice
        if kind == 9:
            return b"<html><body>Welcome</body></html>"
        if kind == 10 and not self.numbers.randrange(10):
            return b'{"answer": "' + b"word " * 200_000 + b'"}'
        if kind == 11:
            return b"[" * 100_000
        if kind == 12:
            return b'{"answer": "\xff\xfe", "id": NaN}'
        if kind == 13:
            return b'{"answer": 1' + b"0" * 5000 + b"}"
        if kind == 14 and not self.numbers.randrange(20):
            return b" " * (9 << 20)
        response = {
            "answer": odd(["In 1600.", "I don't know", *ODD]),
            "passages": odd([[{"text": odd(ODD)}, {"text": "In which year"}], [{"text": "a"}], odd(ODD), [{"txt": 1}]]),
            "id": odd(["one", 7, *ODD]),
            "documents": odd([[{"id": odd(ODD), "metadata": {"canary": odd(ODD)}}], odd(ODD)]),
        }
        if not self.numbers.randrange(4):
            response = odd(
                [
                    response["answer"],
                    [response],
                    {name: response[name] for name in list(response)[: self.numbers.randrange(4)]},
                ]
            )
        return json.dumps(response).encode()
