"""The common options of all defenses: name, type, default and meaning, defined once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial, wraps
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any, Self, TypedDict, cast, get_type_hints

from unpoison.core.verdicts import ACTIONS, Action
from unpoison.errors import OptionError, clip
from unpoison.utils.checks import among, flag, refuse_unknown, within

if TYPE_CHECKING:
    from unpoison.models.loading import GeneratorFunction
    from unpoison.models.protocols import Generator, InjectionClassifier
    from unpoison.runtime.driver import Limits
    from unpoison.sources.sources import Sources, SourcesOption

__all__ = ["ScreeningOptions", "SharedOptions", "Shell", "ShellOptions", "checked_constructor"]


class SharedOptions(TypedDict, total=False):
    """Options of every defense, used by `Screener`; the first annotation of each is its default.

    Attributes:
        trust_embeddings: False encodes passages even if they have an embedding, because vectors can be forged.
        prompt_injection_threshold: The probability in [0, 1) above which a region is an injection.
        injection_model: A classifier of injections instead of the built-in detector.
        sources: `Sources`, or a policy as a file or a mapping. Blocked sources are dropped unread, and repetitions
            within a source are read once.
        learn: Whether results are written to the history of `sources`.
        limits: Bounds on the model calls.
    """

    trust_embeddings: Annotated[bool, True]
    prompt_injection_threshold: Annotated[float, 0.1]
    injection_model: Annotated[InjectionClassifier | None, None]
    sources: Annotated[SourcesOption | str | None, None]
    learn: Annotated[bool, False]
    limits: Annotated[Limits | None, None]


class ShellOptions(SharedOptions, total=False):
    """The common options: `SharedOptions`, and the one for which a defense may have its own default.

    A constructor accepts them as `**shell: Unpack[ShellOptions]` and passes them on, so that option strings find them.

    Attributes:
        prompt_injection: The action on passages with a prompt injection, before anything else reads them: `redact` cuts
            it and the rest of its block, and drops a passage without a harmless rest; `drop`; `flag` only reports it;
            `keep` skips the check.
    """

    prompt_injection: Annotated[Action, "keep"]


class ScreeningOptions(ShellOptions, total=False):
    """The common options of defenses that need a generator only for the plain answer.

    Attributes:
        generator: For `answer`: an object, a string (`models.load_generator`), or a function from messages to text.
    """

    generator: Annotated[Generator | GeneratorFunction | str | None, None]


def _option_names(kind: Any) -> tuple[str, ...]:
    from unpoison.core import registry  # imported when the first defense is created

    return tuple(registry.parameters(kind))


def checked_constructor(kind: Any) -> Any:
    """Wrap the constructor of a class: unknown options raise with a suggestion, and the given arguments are kept."""
    init = kind.__init__
    names = cache(partial(_option_names, kind))

    @wraps(init)
    def checked(self: Any, *arguments: Any, **options: Any) -> None:
        known = names()
        _, *parameters = signature(init).parameters.values() if arguments else (None,)
        positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
        if arguments and not positional:
            example = f"{kind.__name__}({min(known)}=...)"
            raise OptionError(f"{kind.__name__} takes options by name, as in {example}, got {clip(arguments[0])}")
        refuse_unknown(kind.__name__, options, known)
        if not hasattr(self, "_given"):  # the constructors of base classes are wrapped too
            self._given = {**dict(zip(positional, arguments)), **options}
        init(self, *arguments, **options)

    return checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """The validated values of `ShellOptions`; a classifier of injections is among the models of the defense.

    Raises:
        OptionError: A value out of its range, or `learn` without `sources`.
    """

    trust_embeddings: bool
    prompt_injection: Action
    prompt_injection_threshold: float
    sources: Sources | None
    learn: bool
    limits: Limits

    def __post_init__(self) -> None:
        flag("trust_embeddings", self.trust_embeddings)
        among("prompt_injection", self.prompt_injection, ACTIONS)
        within("prompt_injection_threshold", self.prompt_injection_threshold, 0, 1, open_end=True)
        sources, limits = cast(Any, self.sources), cast(Any, self.limits)  # unvalidated
        if sources is not None:
            from unpoison.sources.sources import Sources  # imported late, as limits below, to keep imports fast

            object.__setattr__(self, "sources", Sources.of(sources))
        if limits is None:
            from unpoison.runtime.driver import Limits

            object.__setattr__(self, "limits", Limits())
        if flag("learn", self.learn) and self.sources is None:
            raise OptionError("learn writes into the history of sources; give sources=Sources(history='seen.db')")

    @classmethod
    def of(cls, options: ShellOptions) -> Self:
        """The given options, and the defaults of the others."""
        given: dict[str, Any] = {**_defaults(), **options}
        return cls(**{name: given[name] for name in cls.__slots__})


@cache
def _defaults() -> dict[str, Any]:
    names = dict.fromkeys(("InjectionClassifier", "Limits", "SourcesOption"), object)
    hints = get_type_hints(ShellOptions, localns=names, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}
