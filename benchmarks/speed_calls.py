"""Whole answers against a server on this machine that takes 200 ms for every reply.

Run as a program, this is the server: it speaks OpenAI's chat API and prints its port.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from inputs import Case
from timing import Results, measure
from unpoison import Limits, Radar, TrustRag

__all__ = ["LATENCY", "measure_answers"]

LATENCY = 0.2
"""Seconds that the server takes for one reply."""

IN_FLIGHT = 32


def measure_answers(results: Results, inputs: Mapping[int, Sequence[Case]], only: str, seconds: float) -> list[str]:
    """RADAR and TrustRAG from question to answer."""
    from unpoison.models import OpenAIGenerator

    rows = []
    with _server() as port:
        model = OpenAIGenerator("test", f"http://127.0.0.1:{port}/v1", "none")
        limits = Limits(in_flight=IN_FLIGHT)
        defenses: dict[str, Radar | TrustRag] = {
            "RADAR, answer": Radar(model, limits=limits),
            "TrustRAG, answer": TrustRag(model, limits=limits),
        }
        for name, defense in defenses.items():
            if only in name.lower():
                contenders = {"unpoison": lambda case, d=defense: d.answer(case.question, list(case.texts))}
                measure(results, name, contenders, inputs, seconds, growth=0)
                rows.append(name)
    return rows


@contextmanager
def _server() -> Iterator[int]:
    with subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True) as process:  # noqa: S603  this file
        try:
            yield int(process.stdout.readline() if process.stdout else "")
        finally:
            process.terminate()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else head and body of a reply wait for each other, 40 ms

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        self.rfile.read(size)
        time.sleep(LATENCY)
        message = {"role": "assistant", "content": f"It was in {1990 + size % 8}."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        reply = {"id": "1", "object": "chat.completion", "created": 0, "model": "test", "choices": [choice]}
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


if __name__ == "__main__":
    with _Server(("127.0.0.1", 0), _Handler) as server:
        print(server.server_port, flush=True)
        server.serve_forever()
