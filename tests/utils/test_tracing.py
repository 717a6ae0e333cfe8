"""Traces: which spans there are, how they hang together, and that they hold no texts."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service_doubles import POISONED, Asking, Broken, Marked, body
from unpoison import TrustRag
from unpoison.errors import ModelError
from unpoison.models import ScriptedGenerator
from unpoison.serve import create_app
from unpoison.utils import tracing

pytestmark = pytest.mark.needs("opentelemetry.sdk")


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """What was recorded, by name."""
    import opentelemetry.trace  # noqa: F401  what a program that uses it has done
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_tracer", lambda: provider.get_tracer("test"))
    yield lambda: {span.name: span for span in exporter.get_finished_spans()}
    provider.shutdown()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_model_calls_hang_below_the_answer(spans: Any, asynchronous: bool) -> None:
    defense = TrustRag(encoder="lexical", generator=ScriptedGenerator("Stockholm"))
    if asynchronous:
        asyncio.run(defense.aanswer("a secret question", POISONED))
    else:
        defense.answer("a secret question", POISONED)
    spans_found = spans()
    answer = spans_found["unpoison answer"]
    assert dict(answer.attributes) == {
        "unpoison.defense": "trustrag",
        "unpoison.passages": 4,
        "unpoison.dropped": 0,
    }
    assert set(spans_found) == {"unpoison answer", "embeddings lexical", "chat scripted"}
    for name in ("embeddings lexical", "chat scripted"):
        assert spans_found[name].parent.span_id == answer.context.span_id
    assert spans_found["chat scripted"].attributes["unpoison.purpose"] == "final answer"
    assert "secret" not in str([span.to_json() for span in spans_found.values()])


def test_a_failed_call_is_marked_by_its_kind_and_not_by_its_words(spans: Any) -> None:
    defense = Asking(generator=ScriptedGenerator(ModelError("quotes a secret")))
    with pytest.raises(ModelError):
        defense.screen("q", ["a secret"])
    call, screening = spans()["chat scripted"], spans()["unpoison screen"]
    assert not call.status.is_ok
    assert call.attributes["error.type"] == screening.attributes["error.type"] == "ModelError"
    assert "secret" not in call.to_json() + screening.to_json()


def test_a_request_goes_on_in_the_trace_that_it_names(spans: Any) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with TestClient(create_app({"asking": Asking(generator=ScriptedGenerator("x"))})) as client:
        client.post("/v1/screen", json=body(), headers={"traceparent": parent, "baggage": "a=b"})
    spans_found = spans()
    request, screening = spans_found["POST /v1/screen"], spans_found["unpoison screen"]
    assert f"{request.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert f"{request.parent.span_id:016x}" == "b7ad6b7169203331"
    assert dict(request.attributes) == {
        "http.request.method": "POST", "http.route": "/v1/screen", "http.response.status_code": 200,
    }  # fmt: skip
    assert screening.parent.span_id == request.context.span_id
    assert spans_found["chat scripted"].parent.span_id == screening.context.span_id


@pytest.mark.parametrize("parent", ["", "x", "00-" + "0" * 32 + "-b7ad6b7169203331-01", "00-" + "z" * 4000])
def test_a_header_that_names_no_trace_begins_a_new_one(spans: Any, parent: str) -> None:
    with TestClient(create_app({"broken": Broken()})) as client:
        assert client.post("/v1/screen", json=body(), headers={"traceparent": parent}).status_code == 500
    assert spans()["POST /v1/screen"].parent is None
    assert spans()["POST /v1/screen"].context.is_valid


def test_the_log_names_the_trace(spans: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "unpoison.service")
    with TestClient(create_app({"marked": Marked()})) as client:
        client.post("/v1/screen", json=body())
    (line,) = [record.fields for record in caplog.records if hasattr(record, "fields")]
    assert line["trace"] == f"{spans()['POST /v1/screen'].context.trace_id:032x}"


def test_without_opentelemetry_nothing_is_imported() -> None:
    code = (
        "import sys; from unpoison import Guard; Guard().screen('q', ['a', 'b', 'c']);"
        "assert not any(name.startswith('opentelemetry') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_is_recorded_where_it_was_imported_and_not_set_up() -> None:
    code = (
        "import opentelemetry.trace as trace; from unpoison.utils import tracing; assert tracing._tracer() is None;"
        "from opentelemetry.sdk.trace import TracerProvider; trace.set_tracer_provider(TracerProvider());"
        "assert tracing._tracer().start_span('x').is_recording()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class Collector(BaseHTTPRequestHandler):
    received = threading.Event()
    path_of = ""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        Collector.path_of = self.path
        Collector.received.set()

    def log_message(self, *_: Any) -> None: ...


def test_spans_are_sent_to_a_collector() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    code = (
        "from unpoison import Guard; from unpoison.utils import tracing; tracing.export_spans(); "
        "Guard().screen('q', ['a', 'b', 'c'])\n"
        "from opentelemetry import trace; trace.get_tracer_provider().force_flush()"
    )
    own = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "OTEL_METRICS_EXPORTER": "none"}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300, env={**os.environ, **own})
    assert Collector.received.wait(30)
    assert Collector.path_of == "/v1/traces"
    server.shutdown()
    server.server_close()
    thread.join(60)
