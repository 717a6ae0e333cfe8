"""What every defense is: a pure flow that screens, and by default a flow that answers from what it kept.

`screening` and `answering` read a question and passages and ask models; nothing else. Callers use `screen` and
`answer`, which run these flows inside the shell (`unpoison.screener`): it admits what callers pass, cuts injections,
knows blocked sources, bounds, streams, traces and learns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, partial, wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypedDict

from unpoison.core.answers import Answer, Reply
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import ACTIONS, Action, Evidence
from unpoison.errors import OptionError, clip, nearest
from unpoison.models.prompts import PromptStyle, answer_alone_prompt, answer_prompt, informative
from unpoison.models.protocols import (
    CrossEncoder,
    Encoder,
    Generator,
    InjectionClassifier,
    LogProbabilities,
    NLIModel,
    Retriever,
)
from unpoison.models.requests import Flow, generate
from unpoison.utils.checks import among, flag, within

if TYPE_CHECKING:
    from unpoison.models.functions import GeneratorFunction
    from unpoison.runtime.limits import Limits
    from unpoison.screener.screener import Screener
    from unpoison.screener.streaming import Event
    from unpoison.sources.sources import Sources, SourcesOption

__all__ = ["EQUAL", "AnsweringDefense", "Defense", "ScreeningOptions", "ShellOptions", "make_answer", "note_unfinished"]


EQUAL = Reason.of("copies.all_equal")


class ShellOptions(TypedDict, total=False):
    """What every defense takes beside its own options: what the shell around it does.

    A constructor takes them as `**shell: Unpack[ShellOptions]` and passes them on; option strings find them there.

    Attributes:
        trust_embeddings: False encodes here what comes with an embedding, for vectors can be forged.
        prompt_injection: What becomes of passages that hold a prompt injection, before anything reads them: `redact`
            cuts it and what follows in its block, and drops what has no harmless rest, `drop`, `flag` only says so,
            `keep` does not look.
        prompt_injection_threshold: The probability in [0, 1) above which a stretch is an injection; .1 unless given.
        injection_model: A classifier that finds injections in place of the built-in detector, or the string of one:
            `hf:NAME_OR_PATH` or `onnx:FOLDER` (`models.load_injection_model`).
        sources: Who says what: `Sources`, or a policy as a file or a mapping. What is of a blocked source is dropped
            unread, and what a source repeats is read once.
        limits: Bounds on the model calls.
    """

    trust_embeddings: bool
    prompt_injection: Action
    prompt_injection_threshold: float
    injection_model: InjectionClassifier | str | None
    sources: SourcesOption | str | None
    limits: Limits | None


class ScreeningOptions(ShellOptions, total=False):
    """The same for a defense that does not name its generator, since only the plain answer needs one.

    Attributes:
        generator: For `answer`: an object, a string (`models.load_generator`), or a function from messages to text.
    """

    generator: Generator | GeneratorFunction | str | None


def _option_names(kind: type[Defense]) -> frozenset[str]:
    from unpoison.core import registry  # when the first defense is made

    return frozenset(registry.parameters(kind))


def _takes_positional(init: Callable[..., Any]) -> bool:
    _, *parameters = signature(init).parameters.values()
    return any(one.kind in (one.POSITIONAL_OR_KEYWORD, one.VAR_POSITIONAL) for one in parameters)


def _refuse_unknown(kind: type[Defense]) -> Any:
    """The constructor of a class, which says which option was meant by a name that it does not have."""
    init = kind.__init__
    names = cache(partial(_option_names, kind))

    @wraps(init)
    def checked(self: Defense, *arguments: Any, **options: Any) -> None:
        known = names()
        if arguments and not _takes_positional(init):
            example = f"{kind.__name__}({min(known)}=...)"
            raise OptionError(f"{kind.__name__} takes options by name, as in {example}, got {clip(arguments[0])}")
        for name in options:
            if name not in known:
                listed = ", ".join(sorted(known))
                raise OptionError(f"{kind.__name__} has no option {name!r}; {nearest(name, known)}it has: {listed}")
        init(self, *arguments, **options)

    return checked


class Defense(ABC):
    """A defense answers "which passages do I trust" and, given a generator, "what is the answer in spite of them".

    A subclass names itself, validates its options in `__init__`, and writes `screening`, a flow; `answering` may stay
    as it is: answer from the kept passages with the plain RAG prompt.

    Attributes:
        name: What users type.
        needs: The models without which `screen` cannot run, such as ("generator",).
        summary: One line for lists of defenses.
        calls: How often an answer asks the generator, as a function of the k passages.
        source: The paper.
        certifies: Whether its answers come with a guarantee.
        client_options: The options that clients of a service may override without weakening the defense or making it
            dearer, and to which side: "lower" or "higher" than they are.
        mode: `reference` where it does as a paper's released code, which reads raw texts.
        learn: Whether what it screens and answers is written into the history of its `sources`.
    """

    name: ClassVar[str]
    needs: tuple[str, ...] = ()
    summary: ClassVar[str] = ""
    calls: ClassVar[str] = ""
    source: ClassVar[str] = ""
    certifies: bool = False
    client_options: ClassVar[Mapping[str, Literal["lower", "higher"]]] = {}
    mode: str = "paper"
    learn: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__init__ = _refuse_unknown(cls)  # type: ignore[method-assign]

    def __init__(
        self,
        *,
        encoder: Encoder | str | None = None,
        nli: NLIModel | str | None = None,
        cross_encoder: CrossEncoder | str | None = None,
        language_model: LogProbabilities | str | None = None,
        retriever: Retriever | None = None,
        generator: Generator | GeneratorFunction | str | None = None,
        trust_embeddings: bool = True,
        prompt_injection: Action = "keep",
        prompt_injection_threshold: float = 0.1,
        injection_model: InjectionClassifier | str | None = None,
        sources: SourcesOption | str | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.trust_embeddings = flag("trust_embeddings", trust_embeddings)
        self.prompt_injection: Action = among("prompt_injection", prompt_injection, ACTIONS)
        self.prompt_injection_threshold = within(
            "prompt_injection_threshold", prompt_injection_threshold, 0, 1, open_end=True
        )
        from unpoison.models.loading import load_models
        from unpoison.runtime.limits import Limits

        self.models = load_models(
            encoder=encoder,
            generator=generator,
            nli=nli,
            cross_encoder=cross_encoder,
            language_model=language_model,
            retriever=retriever,
            injection=injection_model,
        )
        self.sources = _sources_of(sources)
        self.limits = limits or Limits()

    @abstractmethod
    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """The flow that decides which passages to trust. It reads their `reading`, never their `text`."""

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """The flow that answers; by default from the kept passages, and abstaining when a screening kept none."""
        from unpoison.runtime.flows import as_flow, result_of

        screening = yield from as_flow(self.screening(query, passages), self, "screening")
        return (yield from self.answer_from(query, result_of(screening, Screening, self, "screening")))

    def answer_from(self, query: Query, screening: Screening) -> Flow[Answer]:
        """The plain answer from what a screening kept."""
        if screening.passages and not screening.kept:
            return Answer.abstention(screening)
        texts = screening.texts
        prompt = answer_prompt(query.reading, texts) if texts else answer_alone_prompt(query.reading)
        (reply,) = yield from generate([prompt], "answer", screening)
        return make_answer(reply, screening)

    @property
    def answers_itself(self) -> bool:
        """Whether it has a way of its own to answer, beside the plain answer from what it kept."""
        return type(self).answering is not Defense.answering or self.certifies

    @property
    def verbatim(self) -> bool:
        """Whether it reads raw texts, as the papers' released codes do."""
        return self.mode == "reference"

    def with_style(self, style: PromptStyle | str) -> Self:
        """The same defense, asking its generator in another style (`safe`, `plain`, `plain:abstain=false`, ...).

        Raises:
            OptionError: No such style.
        """
        styled = copy(self)
        styled.models = replace(self.models, style=PromptStyle.of(style))
        return styled

    def with_sources(self, sources: SourcesOption) -> Self:
        """The same defense with other sources, about which it learns nothing."""
        other = copy(self)
        other.sources, other.learn = _sources_of(sources), False
        return other

    @property
    def source_notes(self) -> tuple[str, ...]:
        """What went on without the policy or the history of `sources`."""
        return self.sources.notes if self.sources is not None else ()

    def all_kept(
        self, query: Query, passages: tuple[Passage, ...], reasons: str | Reason | Sequence[str | Reason], *notes: str
    ) -> Screening:
        """A screening that drops nothing, for one reason or for one reason each."""
        k = len(passages)
        return Screening.decided(
            self.name,
            query,
            passages,
            kept=range(k),
            scores=[0.0] * k,
            reasons=[reasons] * k if isinstance(reasons, str | Reason) else reasons,
            evidence=Evidence(notes=notes),
        )

    # The shell. It is imported when it is first used, so that a defense stands on its method alone.

    @property
    def shell(self) -> Screener:
        """What runs the flows of this defense."""
        from unpoison.screener.screener import Screener

        return Screener(self)

    def screen_flow(self, query: str | Query, passages: Iterable[Any]) -> Flow[Screening]:
        """The flow of `screen`, for who runs it himself."""
        return self.shell.screen_flow(query, passages)

    def screen(self, query: str | Query, passages: Iterable[Any]) -> Screening:
        """Say which passages to trust.

        Args:
            query: The user's question.
            passages: Strings, dicts, framework documents or `Passage`, in retrieval order.

        Returns:
            One verdict per passage; kept plus dropped is exactly the input.

        Raises:
            InputError: An unusable query or passage.
            ModelError: A model failed; nothing is ever returned unscreened.
        """
        return self.shell.screen(query, passages)

    async def ascreen(self, query: str | Query, passages: Iterable[Any]) -> Screening:
        """`screen` for asyncio; the loop stays free while it computes."""
        return await self.shell.ascreen(query, passages)

    def screen_many(self, rows: Iterable[tuple[str | Query, Iterable[Any]]]) -> list[Screening]:
        """`screen` for each (query, passages), with the same results."""
        return [self.screen(query, passages) for query, passages in rows]

    def answer(self, query: str | Query, passages: Iterable[Any]) -> Answer:
        """Answer in spite of poisoned passages.

        Returns:
            The answer, the screening behind it and the account of every model call.

        Raises:
            InputError: An unusable query or passage.
            OptionError: No generator was given.
            ModelError: A model failed for good.
            DeadlineError: The deadline passed.
        """
        return self.shell.answer(query, passages)

    async def aanswer(self, query: str | Query, passages: Iterable[Any]) -> Answer:
        """`answer` for asyncio."""
        return await self.shell.aanswer(query, passages)

    def aanswer_stream(self, query: str | Query, passages: Iterable[Any]) -> AsyncIterator[Event]:
        """`aanswer` as it comes: one `Screening`, then pieces of text, then the `Answer`.

        The answer counts: where a vote over the passages decides otherwise, its text is not that of the pieces. A
        generator that cannot stream gives its text as one piece.

        Raises:
            UnpoisonError: As `answer`, at any event.
        """
        return self.shell.stream(query, passages)

    def remember(self, result: Screening | Answer) -> None:
        """Write what came of each source into the history, where that is wanted (`learn`)."""
        self.shell.remember(result)


class AnsweringDefense(Defense):
    """A defense that drops no passage: it answers from all of them, in a way of its own.

    Attributes:
        keeps_for: The code of the reason that its screening gives for every passage.
    """

    keeps_for: ClassVar[str]

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        yield from ()  # a flow without requests
        return self.all_kept(query, passages, Reason.of(self.keeps_for))


def make_answer(reply: Reply, screening: Screening, details: Mapping[str, Any] | None = None) -> Answer:
    """The answer that a final reply makes. A refusal or an empty reply abstains; a reply that was cut says so."""
    all_details = dict(details or {})
    if reply.finish != "stop":
        all_details["finish"] = reply.finish
    return Answer(
        reply.text,
        screening,
        abstained=reply.finish == "refusal" or not informative(reply.text),
        details=all_details,
    )


def note_unfinished(answer: Answer, steps: Mapping[str, Reply]) -> Answer:
    """The same answer, saying which of the replies that it rests on were refused or cut, by the name of the step."""
    ended_early = {step: reply.finish for step, reply in steps.items() if reply.finish != "stop"}
    if not ended_early:
        return answer
    in_words = {"refusal": "was refused by the model", "length": "was cut at its length limit"}
    notes = [f"the {step} {in_words.get(finish, f'ended early ({finish})')}" for step, finish in ended_early.items()]
    return replace(answer.with_notes(*notes), details={**answer.details, "unfinished": ended_early})


def _sources_of(sources: SourcesOption) -> Sources | None:
    if sources is None:
        return None
    from unpoison.sources.sources import Sources

    return Sources.of(sources)
