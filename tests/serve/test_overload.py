"""More load than can be carried: waiting in line, and a log that is not flooded."""

from __future__ import annotations

import asyncio
from typing import Any

from service_doubles import Marked, Serving
from unpoison.serve import Bounds
from unpoison.serve.middleware import Slots


def test_a_request_that_waits_too_long_is_refused_and_leaves_no_trace() -> None:
    async def tried() -> None:
        slots = Slots(1, 0.01)
        assert await slots.acquire()
        assert not any(await asyncio.gather(*(slots.acquire() for _ in range(5))))
        slots.release()
        assert await slots.acquire()

    asyncio.run(tried())


def test_a_body_that_is_not_sent_takes_no_place(serving: Serving) -> None:
    client = serving({"marked": Marked()}, bounds=Bounds(max_concurrency=1, wait=0.05))
    app = client.app

    async def stalled() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def tried() -> list[dict[str, Any]]:
        scope = {
            "type": "http", "method": "POST", "path": "/v1/screen", "raw_path": b"/v1/screen", "query_string": b"",
            "headers": [(b"host", b"x"), (b"content-type", b"application/json"), (b"content-length", b"100")],
        }  # fmt: skip
        replies: list[dict[str, Any]] = []

        async def send(message: dict[str, Any]) -> None:
            replies.append(message)

        slow = [asyncio.create_task(app({**scope}, stalled, send)) for _ in range(3)]
        await asyncio.sleep(0)
        empty = {**scope, "headers": scope["headers"][:2]}

        async def nothing() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        await app(empty, nothing, send)
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        return replies

    replies = asyncio.run(tried())
    assert replies[0]["status"] in (400, 422), "it got a slot, and was read"
