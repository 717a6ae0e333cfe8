"""The middleware: sizes, slots, times, and what is logged and counted; without a server to the byte and the second."""

from __future__ import annotations

import asyncio
import json
import re
import tracemalloc
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service_doubles import POISONED, Asking, Broken, Held, Marked, Serving, body, problem
from unpoison.errors import OptionError
from unpoison.models import FunctionGenerator
from unpoison.serve import Bounds, create_app, middleware
from unpoison.serve.admission import Admission
from unpoison.serve.middleware import RequestMiddleware, Slots
from unpoison.serve.telemetry import Metrics

Log = Callable[[], list[dict[str, Any]]]

MOST = 100

App = Callable[[Any, Any, Any], Awaitable[None]]


@pytest.fixture
def held() -> Iterator[Held]:
    defense = Held()
    yield defense
    defense.go.set()


def test_large_body_is_refused_by_its_header_and_by_its_bytes(serving: Serving) -> None:
    client = serving(bounds=Bounds(body=1000))
    large = body(passages=["x" * 2000])
    assert "1,000 bytes" in problem(client.post("/v1/screen", json=large), 413)

    def pieces() -> Iterator[bytes]:
        for _ in range(30):
            yield b" " * 100

    headers = {"Content-Type": "application/json"}
    assert "1,000 bytes" in problem(client.post("/v1/screen", content=pieces(), headers=headers), 413)
    for length in ("-1", "x", "9" * 5000):
        response = client.post("/v1/screen", content=b"{}", headers={**headers, "Content-Length": length})
        assert "1,000 bytes" in problem(response, 413)
    assert client.post("/v1/screen", json=body()).status_code == 200
    told = client.get("/metrics").text
    assert 'unpoison_rejected_total{reason="TooLarge"} 5.0' in told


@pytest.mark.parametrize(
    ("request_body", "said"),
    [
        (body(passages=["a"] * 6), "6 passages were sent and at most 5"),
        (body(query="q" * 31), "query has 31 characters"),
        (body(passages=["a" * 26] * 4), "the passages have 104 characters together and at most 100"),
    ],
)
def test_sizes_within_a_body_are_bounded(serving: Serving, request_body: dict[str, Any], said: str) -> None:
    client = serving(bounds=Bounds(passages=5, characters=30, total=100))
    assert said in problem(client.post("/v1/screen", json=request_body), 422)
    documents = {"query": request_body["query"], "documents": request_body["passages"]}
    named = said.replace("passages", "documents")
    assert named in problem(client.post("/v1/rerank", json=documents), 422)


def test_full_service_says_so_and_recovers(serving: Serving, held: Held) -> None:
    client = serving({"held": held}, bounds=Bounds(max_concurrency=1, threads=1, wait=0.05))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.post, "/v1/screen", json=body())
        assert held.begun.wait(30)
        refused = client.post("/v1/screen", json=body())
        assert "1 requests are worked on already" in problem(refused, 503)
        assert refused.headers["retry-after"] == "1"
        assert client.get("/readyz").status_code == 200, "its share would go to the others, until all are out"
        assert client.get("/healthz").json() == {"status": "ok"}
        told = client.get("/metrics").text
        assert "unpoison_in_flight 1.0" in told
        assert 'unpoison_rejected_total{reason="Overloaded"} 1.0' in told
        held.go.set()
        assert first.result().status_code == 200
    assert client.get("/readyz").json() == {"status": "ready"}
    assert client.post("/v1/screen", json=body()).status_code == 200


def test_loop_is_free_while_a_defense_computes_between_model_calls(serving: Serving, held: Held) -> None:
    """Such a defense runs on the loop of the model calls, which is not the server's."""
    held.models = Asking(generator=FunctionGenerator(lambda messages: "x")).models
    held.needs = ("generator",)
    client = serving({"held": held})
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(client.post, "/v1/screen", json=body())
        assert held.begun.wait(30)
        assert client.get("/healthz").status_code == 200
        held.go.set()
        assert slow.result().status_code == 200


def test_bug_is_reported_without_the_text_that_it_quotes(serving: Serving, logged: Log, caplog: Any) -> None:
    client = serving({"broken": Broken()})
    message = problem(client.post("/v1/screen", json=body(), headers={"X-Request-Id": "me-1"}), 500)
    assert "its log says more under me-1" in message
    bug, access = logged()
    assert bug["error"] == "RuntimeError"
    assert any("service_doubles.py" in place for place in bug["where"])
    assert (access["status"], access["error"]) == (500, "InternalError")
    assert not any(text in str(vars(record)) for record in caplog.records for text in POISONED)


def test_log_has_facts_and_no_texts(serving: Serving, logged: Log) -> None:
    serving(keys="secret").post(
        "/v1/screen?q=private", json=body(query="my secret question"), headers={"Authorization": "Bearer secret"}
    )
    (line,) = logged()
    assert line.pop("ms") >= 0
    assert re.fullmatch("[0-9a-f]{32}", line.pop("id"))
    told = {"method": "POST", "route": "/v1/screen", "key": "default", "status": 200, "client": "testclient"}
    assert line == {**told, "defense": "marked", "k": 4, "dropped": 2}


def test_metrics_count_by_route_and_defense(client: TestClient) -> None:
    client.post("/v1/screen", json=body())
    client.post("/v1/screen", json=body(passages=["clean"]))
    client.get("/v1/nothing/here")
    client.get("/examples/3")
    told = client.get("/metrics")
    assert told.headers["content-type"].startswith("text/plain")
    for line in (
        'unpoison_requests_total{route="/v1/screen",status="200"} 2.0',
        'unpoison_requests_total{route="/examples/{number}",status="200"} 1.0',
        'unpoison_requests_total{route="other",status="404"} 1.0',
        'unpoison_request_seconds_count{route="/v1/screen"} 2.0',
        'unpoison_passages_total{defense="marked",verdict="kept"} 3.0',
        'unpoison_passages_total{defense="marked",verdict="dropped"} 2.0',
        'unpoison_screenings_total{defense="marked",dropped="yes"} 1.0',
        'unpoison_screenings_total{defense="marked",dropped="no"} 1.0',
        "unpoison_in_flight 0.0",
    ):
        assert line in told.text.splitlines()


def test_application_needs_a_defense_and_a_known_manner() -> None:
    with pytest.raises(OptionError, match="defenses must map names to defenses"):
        create_app({})
    with pytest.raises(OptionError, match="on_poison must be one of drop, demote, monitor"):
        create_app(on_poison="hide")  # type: ignore[arg-type]


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


@pytest.mark.parametrize(
    ("own", "others", "status"),
    [(0, 0, 200), (350, 0, 200), (351, 0, 503), (0, 700, 200), (0, 701, 503), (200, 300, 200), (200, 301, 503)],
)
def test_all_bodies_together_are_bounded_and_nobody_holds_more_than_is_left_for_others(
    own: int, others: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(middleware, "BODIES", 800)
    guard = guarded()
    guard.held += (before := Counter({"me": own, "you": others}))
    sender = Sender([b"x" * 49, b"x"], client=("me", 1))
    found, headers, content = sender.through(guard)
    assert found == status
    assert guard.held == before, "what was held for this request is given back"
    if status == 503:
        assert (kind(content), headers["retry-after"]) == ("Overloaded", "1")


def test_a_large_body_always_fits_and_who_has_none_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "BODIES", 1)
    guard = guarded()
    assert Sender([b"x" * MOST], client=("me", 1)).through(guard)[0] == 200
    assert not guard.held.keys()


def test_a_body_is_held_once() -> None:
    """A gigabyte was enough for 32 requests of 8 MiB, each of which was held three times."""
    size, found = 2**20, list[float]()

    async def reading(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        found.append(tracemalloc.get_traced_memory()[0] / size)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": str(len(message["body"])).encode()})

    guard = guarded(reading, bounds=Bounds(body=size), admission=Admission(body=size, hosts=(), keys=None))
    sender = Sender([b"x" * (size // 4)] * 4)
    tracemalloc.start()
    try:
        assert sender.through(guard)[2] == str(size).encode()
    finally:
        tracemalloc.stop()
    assert 1 <= found[0] < 1.2


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
