"""Stands in for the OpenAI service: says the line of its prompt that shares most words with the question."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer


class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts, _, question = body["messages"][-1]["content"].partition("\nQuestion: ")
        lines = texts.splitlines()[1:]
        said = max(lines, key=lambda line: len(set(question.split()) & set(line.split())))
        message = {"role": "assistant", "content": said}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        reply = {"id": "1", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice]}
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(reply).encode())

    def log_message(self, *words):
        pass


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ |= {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1", "OPENAI_API_KEY": "none"}

    import openai_guard

    openai_guard.main()
