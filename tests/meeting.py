"""A scripted generator whose calls wait for one another: no test needs threads to begin within a latency."""

from __future__ import annotations

from threading import Condition
from typing import Any

from unpoison.models import ScriptedGenerator
from unpoison.models.prompts import Prompt


class Meeting(ScriptedGenerator):
    """No call of it ends before `least` were in flight at once.

    Args:
        replies: As those of the scripted generator.
        least: How many calls meet.
    """

    def __init__(self, replies: Any, least: int) -> None:
        super().__init__(replies)
        self.least, self._changed = least, Condition()

    def _choose(self, prompt: Prompt, position: int) -> Any:
        with self._changed:
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self.most_in_flight >= self.least, 60)
        return super()._choose(prompt, position)
