"""Bodies are counted before they are parsed, checked up to the first error, and read beside the loop."""

from __future__ import annotations

import json
import threading
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from fastapi.exceptions import RequestValidationError
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

from service_doubles import Serving, body, problem, stop_clock
from unpoison.errors import InputError
from unpoison.io.file_rows import count_values
from unpoison.serve import Bounds, reading
from unpoison.serve.reading import read_body
from unpoison.serve.schemas import ScreenRequest

JSON = {"Content-Type": "application/json"}


def many(path: str, field: str, item: bytes, count: int, last: bytes = b"]}") -> tuple[str, bytes]:
    other = b"" if field in ("passages", "documents", "texts") else b'"passages":["a"],'
    return path, b'{"query":"x",' + other + b'"%s":[' % field.encode() + b",".join([item] * count) + last


@pytest.mark.parametrize(
    ("path", "content"),
    [
        many("/v1/screen", "passages", b"1", 4_000_000),
        many("/v1/screen", "passages", b"1", 900_000),
        many("/v1/screen", "passages", b"{}", 50_000),
        many("/v1/screen", "passages", b"{}", 2_700_000),
        many("/v2/rerank", "documents", b"1", 900_000),
        many("/rerank", "texts", b"1", 900_000),
        many("/v1/screen", "embedding", b'"1"', 900_000),
        many("/v1/rerank", "rank_fields", b"1", 900_000),
        many("/v1/screen", "x", b"1", 1, b'],"trust":{' + b",".join(b'"%d":1' % i for i in range(90_000)) + b"}}"),
        ("/v1/screen", b'{"query":"x","passages":["a"],"defense":"' + b"a" * 8_000_000 + b'"}'),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{len(value)} bytes",
)
def test_a_body_of_many_values_is_refused_in_little_memory(client: TestClient, path: str, content: bytes) -> None:
    """The message of pydantic for each of a million values took 59 s and 5 GB."""
    tracemalloc.start()
    message = problem(client.post(path, content=content, headers=JSON), 422)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(message) < 300
    assert peak < 2**26


def test_only_the_first_error_of_a_list_is_looked_for(client: TestClient) -> None:
    passages = [{"text": "a", "embedding": ["x"] * 99}] * 99
    message = problem(client.post("/v1/screen", json=body(passages=passages)), 422)
    assert message == "passages[0].embedding[0] should be a valid number, got 'x'"


def test_a_long_body_is_read_beside_the_loop_and_in_time(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go, original = threading.Event(), threading.Event(), reading.read_body

    def held(*arguments: Any, **options: Any) -> Any:
        begun.set()
        assert go.wait(30)
        return original(*arguments, **options)

    monkeypatch.setattr(reading, "read_body", held)
    client = serving(bounds=Bounds(timeout=40))
    move = stop_clock(client)
    with ThreadPoolExecutor(1) as pool:
        posted = pool.submit(client.post, "/v1/screen", json=body(passages=["clean " * 3000]))
        assert begun.wait(30)
        assert client.get("/healthz").status_code == 200
        move(41)
        assert "no result within 40 s" in problem(posted.result(), 504)
        go.set()


def test_numbers_are_bounded_too(serving: Serving) -> None:
    client = serving(bounds=Bounds(values=100))
    vectors = body(embedding=[0.5] * 60, passages=[{"text": "a", "embedding": [0.5] * 60}])
    assert "values and at most 100 are taken" in problem(client.post("/v1/screen", json=vectors), 422)


def read_fields(fields: dict[str, Any], **options: Any) -> Any:
    return read_body(json.dumps(fields).encode(), TypeAdapter(dict[str, Any]), Bounds(passages=3), **options)


@pytest.mark.parametrize(
    ("fields", "over"),
    [
        ({str(i): 0 for i in range(64)}, {"more": 0}),
        ({"rank_fields": ["x"] * 100}, {"rank_fields": ["x"] * 101}),
        ({"trust": {str(i): 1 for i in range(200)}}, {"trust": {str(i): 1 for i in range(201)}}),
        *(({name: ["x"] * 3}, {name: ["x"] * 4}) for name in ("passages", "documents", "texts")),
    ],
)
def test_of_each_field_there_may_be_as_many_as_the_page_tells(fields: dict[str, Any], over: dict[str, Any]) -> None:
    assert read_fields(fields) == fields
    with pytest.raises(InputError, match="at most"):
        read_fields({**fields, **over})


def test_a_service_that_watches_takes_ten_times_as_many_passages() -> None:
    assert read_fields({"texts": ["x"] * 39}, watched=True)
    with pytest.raises(InputError, match="at most"):
        read_fields({"texts": ["x"] * 40}, watched=True)


def test_the_number_of_values_itself_is_taken() -> None:
    content = b'{"a":[1,1]}'
    most = count_values(content)
    assert read_body(content, TypeAdapter(Any), Bounds(values=most)) == {"a": [1, 1]}
    with pytest.raises(InputError, match=f"about {most} values and at most {most - 1}"):
        read_body(content, TypeAdapter(Any), Bounds(values=most - 1))


@pytest.mark.parametrize("kind", ["text/plain", "", "application/jsonx", "multipart/form-data"])
def test_what_a_page_of_another_site_can_send_is_refused(client: TestClient, kind: str) -> None:
    reply = client.post("/v1/screen", content=json.dumps(body()), headers={"Content-Type": kind})
    assert "Content-Type: application/json" in problem(reply, 415)
    assert client.post("/v1/screen", content=b"{", headers=JSON).status_code == 400


def longest_wait(work: Callable[[], Any]) -> float:
    """The processor's time for which another thread waits at most while `work` runs on one."""
    longest, last = 0.0, time.process_time()
    running = threading.Thread(target=work)
    running.start()
    while running.is_alive():
        now = time.process_time()
        longest, last = max(longest, now - last), now
    return longest


VECTOR = b'{"query":"x","passages":["a"],"embedding":[%s]}'
FIELD = b'{"query":"x","passages":[{"text":"a","x":[%s]}]}'
VECTORS = b'{"query":"x","passages":[%s]}'


@pytest.mark.parametrize(
    ("form", "items"),
    [
        pytest.param(VECTOR, [b"1"] * 489_900, id="whole numbers"),
        pytest.param(VECTOR, [b"0.0123456"] * 489_900, id="fractions"),
        pytest.param(VECTOR, [b"1"] * 489_800 + [b"null"], id="one number is none"),
        pytest.param(VECTORS, [b'{"text":"a","embedding":[' + b",".join([b"1"] * 16_000) + b"]}"] * 30, id="vectors"),
        pytest.param(FIELD, [b'"a%08d"' % i for i in range(489_900)], id="distinct texts"),
        pytest.param(FIELD, [b'"\\u00e9\\u00e8"'] * 489_900, id="escapes"),
        pytest.param(FIELD, [b"9" * 4_000] * 2_080, id="long numbers"),
        pytest.param(FIELD, [b"9" * 30] * 260_000, id="numbers of thirty digits"),
    ],
)
def test_no_step_of_reading_keeps_other_threads_waiting(form: bytes, items: list[bytes]) -> None:
    """A parser lets no other thread run, so that /healthz waits for it."""
    content, adapter = form % b",".join(items), TypeAdapter(ScreenRequest)

    def read() -> None:
        with suppress(RequestValidationError, InputError):
            read_body(content, adapter, Bounds())

    waits = [longest_wait(read) for _ in range(3)]
    assert min(waits) < 0.04, waits


def test_a_vector_is_read_as_numbers_only() -> None:
    """Also where it is long, and a way that is faster than the schema's reads it."""
    adapter = TypeAdapter(ScreenRequest)

    def read(vector: str) -> Any:
        return read_body(VECTOR % vector.encode(), adapter, Bounds()).embedding

    assert read("[1, 0.5, -2e3]"[1:-1]).tolist() == [1.0, 0.5, -2000.0]
    assert read(str(2**70)).tolist() == [float(2**70)]
    for vector, place in (("1,true", 1), ('"1"', 0), ("1,[2]", 1), ("9" * 400, 0), ("null,1", 0)):
        with pytest.raises(RequestValidationError) as caught:
            read(vector)
        assert caught.value.errors()[0]["loc"] == ("body", "embedding", place)
    with pytest.raises(RequestValidationError, match="at most 16384 items"):
        read("1," * 16_384 + "1")
