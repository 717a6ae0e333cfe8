"""Turns a request into model calls, validated and deduplicated by item.

Models are third-party code. A result of the wrong type, shape or range, and any foreign exception, becomes a
`ModelError` that names the model, so flows can rely on what the driver sends them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from unpoison.core.answers import Reply
from unpoison.core.passages import Query
from unpoison.errors import ModelError, OptionError, UnpoisonError, clip
from unpoison.models import requests
from unpoison.models.prompts import Prompt
from unpoison.models.protocols import (
    AsyncGenerator,
    AsyncRetriever,
    BatchGenerator,
    Listener,
    Models,
    StreamingGenerator,
    TokenByToken,
    query_vectors,
)
from unpoison.text.answers import Relation
from unpoison.text.replies import ReasoningFilter, without_reasoning

__all__ = ["Job", "Plan", "model_error", "plan"]

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class Job:
    """One model call.

    Attributes:
        do: The call; its argument is the maximum number of seconds.
        check: Validates the result, or raises `ModelError`.
        ado: The asynchronous call, if the model has a native one.
        local: A computation on this machine; runs in the caller's thread if it is the only job.
        patient: Whether the call may use all the remaining time.
    """

    kind: str
    model: str
    purpose: str
    items: int
    do: Callable[[float | None], Any]
    check: Callable[[Any], Any]
    ado: Callable[[float | None], Awaitable[Any]] | None = None
    local: bool = True
    patient: bool = False


class Plan(NamedTuple):
    """The jobs of one request, and the function that builds its reply from their results."""

    jobs: Sequence[Job]
    reply: Callable[[Sequence[Any]], Any]


def plan(request: requests.Request, models: Models, listener: Listener | None = None) -> Plan:
    """Plan the model calls of a request.

    Args:
        request: The request that a flow yielded.
        models: The models of its defense.
        listener: Receives the final reply in pieces, if the model can stream.

    Raises:
        OptionError: The request needs a model that was not given.
    """
    match request:
        case requests.Encode(texts, purpose, queries):
            encoder = _require_model(models.encoder, "encoder")
            call = (lambda items: query_vectors(encoder, items)) if queries else encoder.encode
            return _plan_items("encode", encoder, call, texts, purpose)
        case requests.Judge(pairs, purpose):
            nli = _require_model(models.nli, "nli")
            return _plan_items("judge", nli, nli.judge, pairs, purpose)
        case requests.Read(question, passages, purpose):
            reader = _reader(models, "read")
            return _plan_items("read", reader, lambda items: reader.read(question, items), passages, purpose)
        case requests.Relate(question, pairs, purpose):
            reader = _reader(models, "relations")
            return _plan_items("relate", reader, lambda items: reader.relations(question, items), pairs, purpose)
        case requests.Compare(pairs, purpose):
            scorer = _require_model(models.cross_encoder, "cross_encoder")
            return _plan_items("compare", scorer, scorer.score, pairs, purpose)
        case requests.Classify(texts, purpose):
            classifier = _require_model(models.injection, "injection_model")
            return _plan_items("classify", classifier, classifier.probabilities, texts, purpose)
        case requests.Likelihood(texts, purpose):
            language_model = _require_model(models.language_model, "language_model")
            return _plan_items("likelihood", language_model, language_model.logprobs, texts, purpose)
        case requests.Generate(prompts, purpose, final):
            styled = tuple(prompt.with_style(models.style) for prompt in prompts)
            heard = listener if final is not None and len(styled) == 1 else None
            return _plan_generation(styled, purpose, models, heard)
        case requests.NextToken(prompts, tokens, purpose):
            return _plan_token(tuple(prompt.with_style(models.style) for prompt in prompts), tokens, purpose, models)
        case requests.Retrieve(questions, purpose):
            return _plan_retrieval(questions, purpose, models)


def _reader(models: Models, method: str) -> Any:
    generator = _require_model(models.generator, "generator")
    if not callable(getattr(generator, method, None)):
        raise OptionError(f"{clip(generator.name)} is no reader, it has no {method}(); pass generator='reader'")
    return generator


def _plan_items(kind: str, model: Any, call: Callable[[list[Any]], Any], items: tuple[Any, ...], purpose: str) -> Plan:
    """One call with each distinct item once; the reply has an entry for every item."""
    check, nothing = _RESULTS[kind]
    if not items:
        return Plan([], lambda _: nothing())
    distinct, where = _distinct(items)
    name, count, local = model.name, len(distinct), not getattr(model, "remote", False)
    do = lambda _: call(distinct)  # noqa: E731  a call that is made later
    job = Job(kind, name, purpose, count, do, lambda value: check(value, count, name), local=local)

    def reply(done: Sequence[Any]) -> Any:
        (result,) = done
        if len(distinct) == len(items):
            return result
        return [result[i] for i in where] if isinstance(result, list) else result[where]

    return Plan([job], reply)


def _plan_generation(
    prompts: tuple[Prompt, ...], purpose: str, models: Models, listener: Listener | None = None
) -> Plan:
    generator = _require_model(models.generator, "generator")
    if listener is not None and isinstance(generator, StreamingGenerator):
        return _plan_stream(prompts[0], purpose, generator, listener)
    keys, where = _distinct([(prompt.task, prompt.max_tokens, prompt.text()) for prompt in prompts])
    first = dict(zip(reversed(where), reversed(prompts), strict=True))
    distinct_prompts = [first[number] for number in range(len(keys))]
    name = generator.name
    if isinstance(generator, BatchGenerator):
        count = len(distinct_prompts)
        ask = lambda timeout: generator.generate_batch(distinct_prompts, timeout=timeout)  # noqa: E731  made later
        check = lambda value: _all_replies(value, count, name)  # noqa: E731  as above
        batch = Job("generate", name, purpose, count, ask, check, local=False, patient=True)
        return Plan([batch] if distinct_prompts else [], lambda done: [done[0][i] for i in where])

    def job(prompt: Prompt) -> Job:
        ado = (lambda t: generator.agenerate(prompt, timeout=t)) if isinstance(generator, AsyncGenerator) else None
        do = lambda t: generator.generate(prompt, timeout=t)  # noqa: E731  beside its twin
        return Job("generate", name, purpose, 1, do, lambda value: _reply(value, name), ado, local=False)

    return Plan([job(prompt) for prompt in distinct_prompts], lambda done: [done[i] for i in where])


def _plan_stream(prompt: Prompt, purpose: str, generator: StreamingGenerator, listener: Listener) -> Plan:
    """One streaming call; no retry after the first chunk."""
    name = generator.name

    async def ado(timeout: float | None) -> Reply | None:
        heard, reasoning = False, ReasoningFilter()
        try:
            async with asyncio.timeout(timeout):
                async for piece in generator.astream(prompt, timeout=timeout):
                    if text := reasoning.close() if isinstance(piece, Reply) else reasoning.feed(piece):
                        heard = True
                        listener.on_text(text)
                    if isinstance(piece, Reply):
                        return piece
        except Exception as error:
            if heard:
                raise ModelError(f"{clip(name)} broke off in its reply; ask again") from error
            raise
        return None  # the check reports that there was no reply

    do = lambda timeout: generator.generate(prompt, timeout=timeout)  # noqa: E731  beside its twin
    job = Job("generate", name, purpose, 1, do, lambda value: _reply(value, name), ado, local=False)
    return Plan([job], list)


def _plan_token(prompts: tuple[Prompt, ...], tokens: tuple[int, ...], purpose: str, models: Models) -> Plan:
    generator = _require_model(models.generator, "generator")
    if not isinstance(generator, TokenByToken):
        raise OptionError(
            f"{clip(generator.name)} does not say how likely the next token is, which this defense needs; "
            "use a local model, hf:NAME_OR_PATH"
        )
    do = lambda _: generator.next_token(prompts, tokens)  # noqa: E731  a call that is made later
    name, count = generator.name, len(prompts)
    job = Job("next token", name, purpose, count, do, lambda value: _next_tokens(value, count, name))
    return Plan([job], lambda done: done[0])


def _plan_retrieval(questions: tuple[str | Query, ...], purpose: str, models: Models) -> Plan:
    """One call for each distinct question, all concurrent."""
    retriever = _require_model(models.retriever, "retriever")
    name = str(getattr(retriever, "name", None) or getattr(retriever, "__name__", type(retriever).__name__))
    distinct, where = _distinct(questions)

    def job(question: str | Query) -> Job:
        ado = (lambda _: retriever.acall(question)) if isinstance(retriever, AsyncRetriever) else None
        do = lambda _: _as_list(retriever(question), name)  # noqa: E731  beside its twin
        return Job("retrieve", name, purpose, 1, do, lambda listed: _as_list(listed, name), ado, local=False)

    return Plan([job(question) for question in distinct], lambda done: [done[i] for i in where])


def _require_model(model: T | None, name: str) -> T:
    if model is None:
        raise OptionError(f"this defense needs a model here and was given none; pass {name}=...")
    return model


def _distinct(items: Sequence[K]) -> tuple[list[K], list[int]]:
    """The distinct items in order of first occurrence, and for each input position its index among them."""
    position: dict[K, int] = {}
    where = [position.setdefault(item, len(position)) for item in items]
    return list(position), where


def model_error(error: Exception, job: Job) -> ModelError:
    """A call's exception as a `ModelError`. Other errors of this package are re-raised."""
    if isinstance(error, ModelError):
        return error
    if isinstance(error, UnpoisonError):
        raise error
    failure = ModelError(
        f"{job.kind} model {clip(job.model)} raised {type(error).__name__}: {clip(str(error), 200)}",
        retryable=isinstance(error, (TimeoutError, ConnectionError)),
    )
    failure.__cause__ = error
    return failure


def _as_list(value: Any, model: str) -> list[Any]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise ModelError(f"retrieve model {clip(model)} must return a list of passages, got {clip(value)}")
    return list(value)


def _reply(value: object, model: str) -> Reply:
    """A reply without the model's reasoning; one that ends inside it was cut off."""
    reply = Reply(value) if isinstance(value, str) else value
    if not isinstance(reply, Reply) or not isinstance(reply.text, str):
        raise ModelError(f"generate model {clip(model)} must return a Reply or a string, got {clip(value)}")
    text, cut = without_reasoning(reply.text)
    return reply if text == reply.text else replace(reply, text=text, finish="length" if cut else reply.finish)


def _all_replies(value: object, count: int, model: str) -> list[Reply]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != count:
        length = len(value) if isinstance(value, Sequence) and not isinstance(value, str) else clip(value)
        raise ModelError(f"generate model {clip(model)} must return {count} replies for {count} prompts, got {length}")
    return [_reply(reply, model) for reply in value]


def _array(
    kind: str, value: object, count: int, model: str, form: str, fits: Callable[[tuple[int, ...]], bool]
) -> NDArray[Any]:
    """Validate a finite numeric array with one row for each of `count` items."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    if array.dtype.kind not in "fiu" or array.shape[:1] != (count,) or not fits(array.shape):
        got = f"shape {array.shape}" if array.dtype.kind in "fiu" else clip(value)
        raise ModelError(
            f"{kind} model {clip(model)} must return numbers of shape {form} with n = {count}, one row for each item, "
            f"got {got}"
        )
    if not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0][0])
        raise ModelError(f"{kind} model {clip(model)} returned a value that is not finite, for item {row} of {count}")
    return array


_TOLERANCE = 1e-3
"""Tolerance for probabilities out of range: the rounding error of half precision."""


def _floats(values: NDArray[Any], model: str) -> NDArray[np.float64]:
    return values.astype(np.float64, copy=False)


def _probabilities(values: NDArray[Any], model: str) -> NDArray[np.float64]:
    rows = values.astype(np.float64, copy=False)
    if rows.min() < -_TOLERANCE or rows.max() > 1 + _TOLERANCE:
        raise ModelError(
            f"model {clip(model)} must return probabilities from 0 to 1, got values from {rows.min():g} to "
            f"{rows.max():g}; apply a softmax to its logits"
        )
    return np.clip(rows, 0.0, 1.0)


def _logarithms(values: NDArray[Any], model: str) -> NDArray[np.float64]:
    if values.max(initial=-1.0) > _TOLERANCE:
        raise ModelError(f"model {clip(model)} must return logarithms of probabilities, got {values.max():g}")
    return np.minimum(values.astype(np.float64), 0.0)


Check = Callable[[object, int, str], Any]
"""Checks a result of a number of items from a model."""


def _numbers(kind: str, form: str, columns: int | None, finish: Callable[[NDArray[Any], str], Any] = _floats) -> Check:
    """Checks arrays of shape (n,), or with a number of columns, 0 for any."""

    def fits(shape: tuple[int, ...]) -> bool:
        return len(shape) == 1 if columns is None else len(shape) == 2 and shape[1] > 0 and columns in (0, shape[1])

    return lambda value, count, model: finish(_array(kind, value, count, model, form, fits), model)


def _listed(kind: str, name: str, fits: Callable[[Any], bool]) -> Check:
    """Checks lists of objects that fit."""

    def check(value: object, count: int, model: str) -> list[Any]:
        if not isinstance(value, list) or len(value) != count or not all(map(fits, value)):
            raise ModelError(f"{kind} model {clip(model)} must return a list of {count} {name}, got {clip(value)}")
        return value

    return check


def _log_probabilities(value: object, count: int, model: str) -> list[NDArray[np.float64]]:
    check = _numbers("likelihood", "(T - 1,)", None, _logarithms)
    rows = _listed("likelihood", "arrays", lambda _: True)(value, count, model)
    return [check(row, np.size(row), model) for row in rows]


def _is_reading(item: Any) -> bool:
    return isinstance(getattr(item, "answer", None), str) and isinstance(getattr(item, "no_answer", None), float)


_next_tokens = _numbers("next token", "(n, vocabulary)", 0, _logarithms)

_RESULTS: dict[str, tuple[Check, Callable[[], Any]]] = {
    "encode": (
        _numbers("encode", "(n, d)", 0, lambda values, _: values.astype(np.float32, copy=False)),
        lambda: np.zeros((0, 1), np.float32),
    ),
    "judge": (_numbers("judge", "(n, 3)", 3, _probabilities), lambda: np.zeros((0, 3))),
    "read": (_listed("read", "Reading", _is_reading), list),
    "relate": (_listed("relate", "Relation", lambda item: isinstance(item, Relation)), list),
    "classify": (_numbers("classify", "(n,)", None, _probabilities), lambda: np.zeros(0)),
    "compare": (_numbers("compare", "(n,)", None), lambda: np.zeros(0)),
    "likelihood": (_log_probabilities, list),
}
"""For each kind of call on items: its check, and the reply to an empty request."""
