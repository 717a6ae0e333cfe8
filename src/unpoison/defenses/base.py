"""Base of defenses: a pure flow that screens, and by default a flow that answers from the kept passages.

`screening` and `answering` get a question and passages, and request models; nothing else. Callers use `screen` and
`answer`, which run these flows by `unpoison.screener`: it validates input, cuts injections, drops blocked sources, and
handles limits, streaming, tracing and learning.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

from unpoison.core.answers import Answer, Reply
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.models.prompts import PromptStyle, answer_alone_prompt, answer_prompt
from unpoison.models.protocols import CrossEncoder, Encoder, Generator, LogProbabilities, NLIModel, Retriever
from unpoison.models.requests import Flow, generate
from unpoison.screener.options import ScreeningOptions, SharedOptions, Shell, ShellOptions, checked_constructor
from unpoison.text.replies import informative
from unpoison.utils.checks import refuse_unknown

if TYPE_CHECKING:
    from unpoison.models.loading import GeneratorFunction
    from unpoison.runtime.driver import Limits
    from unpoison.screener.screener import Event, Screener
    from unpoison.sources.sources import Sources, SourcesOption

__all__ = [
    "EQUAL", "AnsweringDefense", "Defense", "ScreeningOptions", "SharedOptions", "ShellOptions", "make_answer",
    "note_unfinished",
]  # fmt: skip

EQUAL = Reason.of("copies.all_equal")


class Defense(ABC):
    """A defense decides which passages to trust and, with a generator, answers despite poisoned ones.

    A subclass has a name, validates its options in `__init__`, and implements the flow `screening`. By default,
    `answering` uses the kept passages with the plain RAG prompt.

    Attributes:
        name: Its name in option strings.
        needs: The models that `screen` requires, such as ("generator",).
        summary: One line for lists of defenses.
        calls: The number of generator calls per answer, as a function of the k passages.
        source: The paper.
        certifies: Whether its answers have a guarantee.
        mode: `reference` if it follows a paper's released code, which reads raw texts.
        models: Those that its flows ask.
    """

    name: ClassVar[str]
    needs: tuple[str, ...] = ()
    summary: ClassVar[str] = ""
    calls: ClassVar[str] = ""
    source: ClassVar[str] = ""
    certifies: bool = False
    mode: str = "paper"
    _given: dict[str, Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__init__ = checked_constructor(cls)  # type: ignore[method-assign]

    def __init__(
        self,
        *,
        encoder: Encoder | str | None = None,
        nli: NLIModel | str | None = None,
        cross_encoder: CrossEncoder | str | None = None,
        language_model: LogProbabilities | str | None = None,
        retriever: Retriever | None = None,
        generator: Generator | GeneratorFunction | str | None = None,
        **shell: Unpack[ShellOptions],
    ) -> None:
        from unpoison.models.loading import load_models

        self._shell = Shell.of(shell)
        judges = {"nli": nli, "cross_encoder": cross_encoder, "injection": shell.get("injection_model")}
        self.models = load_models(
            encoder=encoder, generator=generator, language_model=language_model, retriever=retriever, **judges
        )

    @abstractmethod
    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """The flow that decides which passages to trust. It uses their `reading`, never their `text`."""

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """The flow that answers; by default from the kept passages, or with an abstention if there are none."""
        from unpoison.runtime.driver import as_flow, result_of

        screening = yield from as_flow(self.screening(query, passages), self, "screening")
        return (yield from self.answer_from(query, result_of(screening, Screening, self, "screening")))

    def answer_from(self, query: Query, screening: Screening) -> Flow[Answer]:
        """The plain answer from the kept passages of a screening."""
        if screening.passages and not screening.kept:
            return Answer.abstention(screening)
        texts = screening.texts
        prompt = answer_prompt(query.reading, texts) if texts else answer_alone_prompt(query.reading)
        (reply,) = yield from generate([prompt], "answer", screening)
        return make_answer(reply, screening)

    @property
    def answers_itself(self) -> bool:
        """Whether it does not use the plain answer from the kept passages."""
        return type(self).answering is not Defense.answering or self.certifies

    @property
    def verbatim(self) -> bool:
        """Whether it reads raw texts, as in the papers' released code."""
        return self.mode == "reference"

    @property
    def sources(self) -> Sources | None:
        """Whose passages are trusted, for its flows; None if every passage is its own source."""
        return self._shell.sources

    @property
    def source_notes(self) -> tuple[str, ...]:
        """Notes on an unavailable policy or history of `sources`."""
        return self.sources.notes if self.sources is not None else ()

    @property
    def limits(self) -> Limits:
        """The bounds on its model calls."""
        return self._shell.limits

    def with_models(self, **models: Any) -> Self:
        """The same defense with other models, by the names of `Models`."""
        other = copy(self)
        other.models = replace(self.models, **models)
        return other

    def with_style(self, style: PromptStyle | str) -> Self:
        """The same defense with another style of prompts (`safe`, `plain`, `plain:abstain=false`, ...).

        Raises:
            OptionError: No such style.
        """
        return self.with_models(style=PromptStyle.of(style))

    def with_sources(self, sources: SourcesOption, *, learn: bool = False) -> Self:
        """The same defense with other sources, whose history it does not write unless it is to `learn`."""
        return self.with_shell(sources=sources, learn=learn)

    def with_shell(self, **options: Unpack[ShellOptions]) -> Self:
        """The same defense in another shell; what is not given stays.

        Raises:
            OptionError: An unknown option, or a value out of its range.
        """
        from unpoison.models.loading import load_models

        refuse_unknown(type(self).__name__, options, ShellOptions.__annotations__)
        given: dict[str, Any] = dict(options)
        detecting = load_models(injection=given.pop("injection_model", self.models.injection))
        other = self.with_models(injection=detecting.injection)
        other._shell, other._given = replace(self._shell, **given), {**self._given, **options}
        return other

    def __repr__(self) -> str:
        """The call that makes it, apart from a style of prompts."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._given.items())})"

    def all_kept(
        self, query: Query, passages: tuple[Passage, ...], reasons: str | Reason | Sequence[str | Reason], *notes: str
    ) -> Screening:
        """A screening that drops nothing, with one reason for all passages or one for each."""
        k, found = len(passages), Evidence(notes=notes)
        why = [reasons] * k if isinstance(reasons, str | Reason) else reasons
        zeros = [0.0] * k
        return Screening.decided(self.name, query, passages, kept=range(k), scores=zeros, reasons=why, evidence=found)

    # The shell. It is imported on first use, so that importing a defense imports its method only.

    @property
    def shell(self) -> Screener:
        """The shell that runs the flows of this defense."""
        from unpoison.screener.screener import Screener

        return Screener(self)

    def screen(self, query: str | Query, passages: Iterable[Any]) -> Screening:
        """Decide which passages to trust.

        Args:
            query: The user's question.
            passages: Strings, dicts, framework documents or `Passage`, in retrieval order.

        Returns:
            One verdict per passage; kept plus dropped is exactly the input.

        Raises:
            InputError: An invalid query or passage.
            ModelError: A model failed; nothing is returned unscreened.
        """
        return self.shell.screen(query, passages)

    async def ascreen(self, query: str | Query, passages: Iterable[Any]) -> Screening:
        """`screen` for asyncio, without blocking the event loop."""
        return await self.shell.ascreen(query, passages)

    def screen_many(self, rows: Iterable[tuple[str | Query, Iterable[Any]]]) -> list[Screening]:
        """`screen` for each (query, passages), with the same results."""
        return [self.screen(query, passages) for query, passages in rows]

    def answer(self, query: str | Query, passages: Iterable[Any]) -> Answer:
        """Answer despite poisoned passages.

        Returns:
            The answer, the screening behind it and the record of every model call.

        Raises:
            InputError: An invalid query or passage.
            OptionError: No generator was given.
            ModelError: A model failed after all retries.
            DeadlineError: The deadline passed.
        """
        return self.shell.answer(query, passages)

    async def aanswer(self, query: str | Query, passages: Iterable[Any]) -> Answer:
        """`answer` for asyncio."""
        return await self.shell.aanswer(query, passages)

    def aanswer_stream(self, query: str | Query, passages: Iterable[Any]) -> AsyncIterator[Event]:
        """Stream `aanswer`: one `Screening`, then pieces of text, then the `Answer`.

        The final answer is authoritative: if a vote over the passages decides otherwise, its text differs from the
        pieces. A generator without streaming gives one piece.

        Raises:
            UnpoisonError: As `answer`, at any point.
        """
        return self.shell.stream(query, passages)


class AnsweringDefense(Defense):
    """A defense that drops no passage: it has its own way to answer from all of them.

    Attributes:
        keeps_for: The reason code of every passage.
    """

    keeps_for: ClassVar[str]

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        yield from ()  # a flow without requests
        return self.all_kept(query, passages, Reason.of(self.keeps_for))


def make_answer(reply: Reply, screening: Screening, details: Mapping[str, Any] | None = None) -> Answer:
    """The answer from a final reply. A refusal or an empty reply abstains; a truncated reply is noted in details."""
    early = {} if reply.finish == "stop" else {"finish": reply.finish}
    abstained = reply.finish == "refusal" or not informative(reply.text)
    return Answer(reply.text, screening, abstained=abstained, details={**(details or {}), **early})


def note_unfinished(answer: Answer, steps: Mapping[str, Reply]) -> Answer:
    """The same answer with notes on refused or truncated intermediate replies, by the name of the step."""
    ended_early = {step: reply.finish for step, reply in steps.items() if reply.finish != "stop"}
    if not ended_early:
        return answer
    in_words = {"refusal": "was refused by the model", "length": "was truncated at its length limit"}
    notes = [f"the {step} {in_words.get(finish, f'ended early ({finish})')}" for step, finish in ended_early.items()]
    return replace(answer.with_notes(*notes), details={**answer.details, "unfinished": ended_early})
