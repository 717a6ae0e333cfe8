"""The middleware without a server: what it reads of a body, holds and counts, to the byte and the second."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from unpoison.serve import Bounds, middleware
from unpoison.serve.admission import Admission
from unpoison.serve.middleware import RequestMiddleware, Slots
from unpoison.serve.telemetry import Metrics

MOST = 100
App = Callable[[Any, Any, Any], Awaitable[None]]


async def echoing(scope: Any, receive: Any, send: Any) -> None:
    """Replies with the number of bytes that it was sent."""
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(len(message["body"])).encode()})


def guarded(app: App = echoing, **options: Any) -> RequestMiddleware:
    bounds = Bounds(body=MOST, max_concurrency=1, wait=0.01, timeout=30)
    admission = Admission(body=MOST, hosts=(), keys=None)
    return RequestMiddleware(app, **{"bounds": bounds, "metrics": Metrics(), "admission": admission, **options})


class Sender:
    """One request, whose body comes in parts; counts how many of them were asked for."""

    def __init__(self, parts: Iterable[bytes], *, ends: bool = True, **scope: Any) -> None:
        self.parts, self.ends, self.asked = list(parts), ends, 0
        headers = [(b"content-type", b"application/json"), *scope.pop("headers", [])]
        self.scope = {"type": "http", "method": "POST", "path": "/v1/screen", **scope, "headers": headers}
        self.sent: list[dict[str, Any]] = []

    async def receive(self) -> dict[str, Any]:
        if self.asked == len(self.parts):
            await asyncio.Event().wait()  # says nothing more
        self.asked += 1
        more = not self.ends or self.asked < len(self.parts)
        return {"type": "http.request", "body": self.parts[self.asked - 1], "more_body": more}

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    def through(self, guard: RequestMiddleware) -> tuple[int, dict[str, str], bytes]:
        asyncio.run(guard(self.scope, self.receive, self.send))
        start = self.sent[0]
        headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        return start["status"], headers, b"".join(message.get("body", b"") for message in self.sent[1:])


def kind(content: bytes) -> str:
    return str(json.loads(content)["error"]["type"])


@pytest.mark.parametrize(("size", "status"), [(MOST, 200), (MOST + 1, 413)])
def test_a_body_may_have_as_many_bytes_as_are_allowed_and_not_one_more(size: int, status: int) -> None:
    found, _, content = Sender([b"x" * 60, b"x" * (size - 60)]).through(guarded())
    assert found == status
    assert content == b"100" if status == 200 else kind(content) == "TooLarge"


@pytest.mark.parametrize(("held", "status"), [(0, 200), (32 * MOST - 50, 200), (32 * MOST - 49, 503)])
def test_all_bodies_together_are_bounded(held: int, status: int) -> None:
    guard = guarded()
    guard.held = held
    found, headers, content = Sender([b"x" * 50]).through(guard)
    assert found == status
    assert guard.held == held, "what was held for this request is given back"
    if status == 503:
        assert (kind(content), headers["retry-after"]) == ("Overloaded", "1")


def test_a_body_that_does_not_arrive_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "ARRIVAL", 0.01)
    status, headers, content = Sender([b"x"], ends=False).through(guarded())
    assert (status, headers["connection"], kind(content)) == (408, "close", "SlowBody")


def test_who_hangs_up_is_told_so() -> None:
    sender = Sender([b"x"])
    original = sender.receive

    async def cut() -> dict[str, Any]:
        return {"type": "http.disconnect"} if sender.asked else {**await original(), "more_body": True}

    sender.receive = cut  # type: ignore[method-assign]
    status, _, content = sender.through(guarded())
    assert (status, kind(content)) == (400, "Disconnected")


def test_work_is_cancelled_when_its_client_is_gone() -> None:
    ended: list[str] = []

    async def working(scope: Any, receive: Any, send: Any) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def leave() -> None:
        sender, guard = Sender([b"x"]), guarded(working)
        received = sender.receive

        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"} if sender.asked else await received()

        async with asyncio.timeout(30):
            await guard(sender.scope, receive, sender.send)
        assert guard.slots._free == 1
        assert sender.scope["state"]["record"].status == 499
        assert not sender.sent

    asyncio.run(leave())
    assert ended == ["cancelled"]


def test_slots_go_round_the_clients() -> None:
    async def ask() -> list[str]:
        slots, served = Slots(1, 30), list[str]()
        await slots.acquire("first")

        async def wait(client: str) -> None:
            assert await slots.acquire(client)
            served.append(client)
            slots.release()

        waiting = [asyncio.create_task(wait(client)) for client in ["greedy"] * 5 + ["polite"]]
        await asyncio.sleep(0)
        slots.release()
        await asyncio.gather(*waiting)
        assert slots._free == 1
        return served

    assert asyncio.run(ask()).index("polite") == 1


def test_one_client_cannot_take_the_whole_line() -> None:
    async def ask() -> None:
        slots = Slots(1, 30)
        await slots.acquire("x")
        waiting = [asyncio.create_task(slots.acquire("greedy")) for _ in range(20)]
        await asyncio.sleep(0)
        assert sum(one.done() and not one.result() for one in waiting) == 20 - middleware.QUEUE // 2
        polite = asyncio.create_task(slots.acquire("polite"))
        await asyncio.sleep(0)
        assert not polite.done()
        slots.release()
        slots.release()
        assert await polite
        for one in waiting:
            one.cancel()

    asyncio.run(ask())


def test_a_place_is_given_back_after_a_fault_and_after_a_timeout() -> None:
    """There is one slot: whoever kept it would shut out the next request."""

    async def failing(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("quoted text")

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.Event().wait()

    for app, status, seconds in ((failing, 500, 60), (endless, 504, 0.01)):
        guard = guarded(app, bounds=Bounds(body=MOST, max_concurrency=1, wait=0.01, timeout=seconds))
        for _ in range(2):
            found, _, content = Sender([b"x"]).through(guard)
            assert found == status
            assert b"quoted" not in content
        assert guard.metrics.in_flight._value.get() == 0


def test_where_the_service_only_watches_a_full_house_is_passed_through_unscreened() -> None:
    seen: list[str | None] = []

    async def watching(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["state"]["record"].unscreened)
        await echoing(scope, receive, send)

    async def crowded(path: str) -> int:
        guard = guarded(watching, watched=["/v1/rerank"])
        assert await guard.slots.acquire()
        sender = Sender([b"x"], path=path)
        await guard(sender.scope, sender.receive, sender.send)
        return int(sender.sent[0]["status"])

    assert asyncio.run(crowded("/v1/rerank")) == 200
    assert seen == ["Overloaded"]
    assert asyncio.run(crowded("/v1/screen")) == 503
    assert seen == ["Overloaded"]


def test_a_fault_in_the_middle_of_a_reply_is_not_replied_to_twice() -> None:
    async def breaking(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("late")

    sender = Sender([b"x"])
    with pytest.raises(RuntimeError, match="late"):
        asyncio.run(guarded(breaking)(sender.scope, sender.receive, sender.send))
    assert [message["type"] for message in sender.sent] == ["http.response.start"]
