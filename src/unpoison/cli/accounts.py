"""What the model calls took: how many, how many tokens, how long, and how much money."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from unpoison.cli.running import count_noun
from unpoison.report.rendering import plain
from unpoison.types import Call

__all__ = ["Accounts"]

MILLION = 1_000_000


class Accounts:
    """Adds up model calls. Prices are per million tokens, in any currency; replies from the cache cost nothing."""

    def __init__(self, price_in: float | None, price_out: float | None) -> None:
        self.prices = None if price_in is None and price_out is None else (price_in or 0.0, price_out or 0.0)
        self.calls: list[Call] = []

    def add(self, calls: Sequence[Call]) -> None:
        self.calls.extend(calls)

    def table(self, calls: Sequence[Call]) -> Table:
        """One line per call."""
        table = Table(box=None, padding=(0, 2, 0, 0))
        for heading in ("call", "model", "purpose"):
            table.add_column(heading)
        for heading in ("items", "attempts", "tokens in", "tokens out", "seconds"):
            table.add_column(heading, justify="right")
        for call in calls:
            numbers = (call.items, call.attempts, call.prompt_tokens, call.completion_tokens)
            table.add_row(
                *map(Text, (call.kind, plain(call.model), plain(call.purpose))),
                *("?" if number is None else f"{number:,}" for number in numbers),
                "cached" if call.cached else f"{call.seconds:.2f}",
            )
        return table

    def summary(self) -> str:
        """The cost of all calls, in one line."""
        paid = [call for call in self.calls if not call.cached]
        prompt_tokens = sum(call.prompt_tokens or 0 for call in paid)
        replied = sum(call.completion_tokens or 0 for call in paid)
        unknown = sum(call.kind == "generate" and call.prompt_tokens is None for call in paid)
        parts = [
            f"{count_noun(len(self.calls), 'model call')}, {len(self.calls) - len(paid):,} of them from the cache",
            f"{prompt_tokens:,} prompt and {replied:,} completion tokens"
            + (f" ({count_noun(unknown, 'call')} did not say)" if unknown else ""),
            f"{sum(call.seconds for call in paid):.1f} s in calls",
        ]
        if self.prices is not None:
            cost = (prompt_tokens * self.prices[0] + replied * self.prices[1]) / MILLION
            parts.append(f"cost {cost:.4f} at {self.prices[0]:g} in and {self.prices[1]:g} out per million tokens")
        return "; ".join(parts)
