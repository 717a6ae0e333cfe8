"""OpenTelemetry spans: one per screening or answer, and one per model call.

Nothing is imported or recorded unless the program, or `unpoison serve`, has set OpenTelemetry up. Spans hold names,
numbers and types of errors, never texts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from unpoison.utils.extras import require

__all__ = ["Mark", "export_spans", "model_call_span", "request_span", "span"]

Attribute = str | int | float | bool
Mark = Callable[[str, Attribute], None]
"""Sets an attribute of the span that is open."""

TRACEPARENT = ("traceparent", "tracestate")
"""The headers of W3C Trace Context, level 1; other headers are ignored."""


@contextmanager
def span(name: str, **attributes: Attribute) -> Iterator[Mark]:
    """A span around a piece of work; an exception marks it by its type only.

    Args:
        name: Such as "screen"; it is written as "unpoison screen".
        attributes: Names in the namespace `unpoison.`.
    """
    own_attributes = {f"unpoison.{key}": value for key, value in attributes.items()}
    with _start_span(f"unpoison {name}", own_attributes) as own:
        yield (lambda key, value: own.set_attribute(f"unpoison.{key}", value)) if own else _ignore_attribute


@contextmanager
def model_call_span(kind: str, model: str, purpose: str, items: int) -> Iterator[Mark]:
    """A span around one model call, retries included, with the names that OpenTelemetry has for generative AI."""
    operation = {"generate": "chat", "encode": "embeddings"}.get(kind, kind)
    attributes: dict[str, Attribute] = {
        "gen_ai.operation.name": operation,
        "gen_ai.request.model": model,
        "unpoison.purpose": purpose,
        "unpoison.items": items,
    }
    with _start_span(f"{operation} {model}", attributes, kind="CLIENT") as own:
        yield own.set_attribute if own else _ignore_attribute


@contextmanager
def request_span(method: str, headers: Mapping[str, str]) -> Iterator[Any]:
    """A span around one HTTP request, in the trace that its headers name; None where nothing is recorded."""
    parent = None
    if _tracer() is not None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        given = {name: headers[name] for name in TRACEPARENT if name in headers}
        parent = TraceContextTextMapPropagator().extract(given)
    with _start_span(method, {"http.request.method": method}, kind="SERVER", context=parent) as own:
        yield own if own and own.is_recording() else None


def export_spans() -> None:
    """Export spans by OTLP over HTTP, configured by the variables `OTEL_...`.

    Raises:
        MissingExtraError: The extra `otel` is not installed.
    """
    sdk = require("opentelemetry.sdk.trace", "sending traces")
    export = require("opentelemetry.sdk.trace.export", "sending traces")
    otlp = require("opentelemetry.exporter.otlp.proto.http.trace_exporter", "sending traces")
    resources = require("opentelemetry.sdk.resources", "sending traces")
    trace = require("opentelemetry.trace", "sending traces")

    named = resources.Resource.create({"service.name": "unpoison"})  # OTEL_SERVICE_NAME takes precedence
    provider = sdk.TracerProvider(resource=named.merge(resources.OTELResourceDetector().detect()))
    provider.add_span_processor(export.BatchSpanProcessor(otlp.OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


@contextmanager
def _start_span(
    name: str, attributes: Mapping[str, Attribute], *, kind: str = "INTERNAL", context: Any = None
) -> Iterator[Any]:
    """A span; None if nothing is recorded."""
    tracer = _tracer()
    if tracer is None:
        yield None
        return
    trace = sys.modules["opentelemetry.trace"]
    with tracer.start_as_current_span(
        name,
        context=context,
        kind=trace.SpanKind[kind],
        attributes=attributes,
        record_exception=False,  # the message may quote a passage
        set_status_on_exception=False,
    ) as own:
        try:
            yield own
        except BaseException as error:
            own.set_attribute("error.type", type(error).__name__)
            own.set_status(trace.StatusCode.ERROR)
            raise


def _tracer() -> Any:
    """The program's tracer; None if OpenTelemetry was not set up, even if it was imported."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    provider = trace.get_tracer_provider()
    return None if isinstance(provider, trace.ProxyTracerProvider) else provider.get_tracer("unpoison")


def _ignore_attribute(key: str, value: Attribute) -> None:
    """Ignore the attribute."""
