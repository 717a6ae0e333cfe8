"""A RAG system over HTTP for tests: FastAPI, a store that outlives the process, answers from what is retrieved.

Modes make it a bad neighbour.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, Response

from unpoison.core.passages import Passage
from unpoison.models import ExtractiveReader
from unpoison.models.prompts import answer_prompt
from unpoison.retrieval import BM25Retriever


class MemoryStore:
    """Documents in a dictionary and in a file that is written anew with every change."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "index.json"
        self.documents: dict[str, dict[str, Any]] = json.loads(self.path.read_text())
        self.retriever = BM25Retriever([self._passage(name) for name in self.documents])
        self.number = 0

    def _passage(self, name: str) -> Passage:
        return Passage(self.documents[name]["text"], id=name)

    def add(self, text: str, metadata: dict[str, Any], name: str | None = None) -> str:
        self.number += 1
        name = name or f"added-{self.number}-{time.monotonic_ns()}"
        self.documents[name] = {"text": text, "metadata": metadata}
        self.retriever.add([self._passage(name)])
        self.save()
        return name

    def remove(self, name: str) -> bool:
        index_found = self.documents.pop(name, None)
        self.retriever.remove([name])
        self.save()
        return index_found is not None

    def search(self, question: str) -> list[Passage]:
        return list(self.retriever.retrieve(question, 5))

    def dump(self) -> bytes:
        return json.dumps(self.documents, sort_keys=True).encode()

    def save(self) -> None:
        self.path.write_bytes(self.dump())


def streamed(reply: dict[str, Any]) -> str:
    """A reply as events: what was read, then the answer by its words."""
    pieces = [word + " " for word in reply["answer"].split(" ")]
    deltas = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    events = [{"sources": reply["passages"]}, *deltas]
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def application(store: MemoryStore, mode: str) -> FastAPI:  # noqa: C901  one route after the other
    app, lock, reader = FastAPI(), threading.Lock(), ExtractiveReader()
    state = {"calls": 0, "planted": 0, "busy": 0, "most": 0, "hidden": {}}

    def visible(passages: list[Passage]) -> list[Passage]:
        """In the mode slow-index a document is not found the first two times that it would be."""
        hidden, shown = state["hidden"], []
        for passage in passages:
            if hidden.get(passage.id):
                hidden[passage.id] -= 1
            else:
                shown.append(passage)
        return shown

    def answered(question: str) -> dict[str, Any]:
        with lock:
            state["busy"] += 1
            state["most"] = max(state["most"], state["busy"])
            passages = visible(store.search(question))
        try:
            time.sleep(0.02)  # so that questions meet
            texts = [p.text for p in passages]
            text = reader.generate(answer_prompt(question, texts)).text if texts else "I don't know"
        finally:
            with lock:
                state["busy"] -= 1
        return {"answer": text, "passages": [{"text": p.text, "id": p.id} for p in passages]}

    @app.post("/ask")
    async def ask(request: Request) -> Any:
        body = await request.json()
        if mode == "typed" and "question" not in body:
            raise HTTPException(422, "question is missing")
        state["calls"] += 1
        if mode == "busy" and state["calls"] % 3 == 0:
            return JSONResponse({"detail": "slow down"}, 429)
        if mode == "indiscreet":
            raise HTTPException(400, f"no {request.headers.get('authorization')} {json.dumps(dict(request.headers))}")
        reply = await asyncio.to_thread(answered, body["question"])
        if mode == "stream-chat":
            return Response(streamed(reply), media_type="text/event-stream")
        return reply

    @app.post("/documents")
    async def plant(request: Request) -> Any:
        body = await request.json()
        state["planted"] += 1
        with lock:
            name = store.add(body["text"], body.get("metadata") or {}, body.get("id"))
            if mode == "slow-index":
                state["hidden"][name] = 2
        if mode == "half" and state["planted"] % 3 == 0:
            raise HTTPException(500, "half done")  # it was planted all the same
        return {"id": "always-the-same" if mode == "same-id" else name}

    @app.delete("/documents/{name}")
    async def remove(name: str) -> Any:
        if mode == "sticky":
            raise HTTPException(404, "what?")
        with lock:
            if not store.remove(name):
                raise HTTPException(404, "no such document")
        return {"removed": name}

    @app.get("/dump")
    async def dump() -> Any:
        with lock:
            return {"dump": store.dump().decode(), "most": state["most"], "calls": state["calls"]}

    return app
