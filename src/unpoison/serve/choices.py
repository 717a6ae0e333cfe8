"""The defenses that requests may choose from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from unpoison.core import registry
from unpoison.defenses.base import Defense
from unpoison.errors import OptionError, UnknownNameError, clip

__all__ = ["Choices"]

Maker = Callable[[str], Defense]
"""Makes the defense of an option string with the models of the service."""


class Choices(Mapping[str, Defense]):
    """Defenses by the strings that they were configured with; the first is the default.

    `guard` also finds `guard:damage=0.01`, if no other `guard` was configured before.

    Args:
        defenses: At least one.
        make: Makes variants that requests ask for, stricter than what is configured; without it no request can set
            options.

    Raises:
        OptionError: No defense at all.
    """

    def __init__(self, defenses: Mapping[str, Defense], make: Maker | None = None) -> None:
        if not defenses:
            raise OptionError("the service needs at least one defense; configure guard")
        self._defenses = dict(defenses)
        self._make = make
        self._aliases: dict[str, str] = {}
        for spec in defenses:
            self._aliases.setdefault(registry.parse(spec)[0], spec)

    def __getitem__(self, name: str) -> Defense:
        return self._defenses[name if name in self._defenses else self._aliases[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._defenses)

    def __len__(self) -> int:
        return len(self._defenses)

    @property
    def default(self) -> str:
        return next(iter(self._defenses))

    def pick(self, name: str | None) -> Defense:
        """The defense that a request names, the default for None.

        Raises:
            UnknownNameError: It is not configured.
            OptionError: Options that requests may not set, or only to the other side, or that are out of range.
        """
        if name is None:
            return self[self.default]
        if name in self:
            return self[name]
        family, options = registry.parse(name)
        if family not in self._aliases:
            raise UnknownNameError("defense", family, self)
        if options and self._make is None:
            raise OptionError(
                f"options of requests are not accepted here, got {clip(name)}; name one of: {', '.join(self)}"
            )
        return self._variant(name)

    def _variant(self, spec: str) -> Defense:
        """The configured defense with a request's own options on top, each stricter than it was or the same."""
        assert self._make is not None  # noqa: S101  the caller looked
        name, texts = registry.parse(spec)
        target, configured = registry.find("defenses", name), self[name]
        tightens: Mapping[str, str] = target.tightens
        values = registry.read_options(target, {o: t for o, t in texts.items() if o in tightens}, name)
        for option in texts:
            if option not in tightens:
                open_to = f"requests may set: {', '.join(tightens) or 'none'}"
                raise OptionError(f"{name}:{option} can only be set by who starts the service; {open_to}")
            limit, value = getattr(configured, option, None), values[option]
            if limit is not None and (value is None or _beyond(value, limit, tightens[option])):
                side = "at most" if tightens[option] == "lower" else "at least"
                raise OptionError(f"{name}:{option} may be {side} {limit} in a request, got {clip(value)}")
        merged = {**registry.parse(self._aliases[name])[1], **texts}
        return self._make(f"{name}:{','.join(f'{option}={text}' for option, text in merged.items())}")

    def model_name(self, name: str | None) -> str | None:
        """The name of a configured defense, None for the names of rerank models that gateways send."""
        return name if name is not None and name in self else None


def _beyond(value: float, limit: float, side: str) -> bool:
    """Whether a value is weaker than the limit; what is no number is."""
    return not (value <= limit if side == "lower" else value >= limit)
