"""Find each text of a file in the strings of public source files, as stretches; for `build_data_recipes.py`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from unpoison.bench.data.readers import FORMS
from unpoison.bench.data.recipes import Part

LENGTH, STEP = 16, 8
"""Characters of an indexed stretch, and of the way from one to the next: what is longer than both together is found."""

MOST = 6
"""Places that are kept of one stretch: boilerplate stands everywhere."""


class Matcher:
    """The strings of some sources, searched for texts."""

    def __init__(self, strings: Sequence[Sequence[str]], forms: Sequence[str] = ("", "line")) -> None:
        self.places: list[tuple[int, str, int, str]] = []
        """(source, form, number, the string in that form)"""
        self.whole: dict[str, list[int]] = {}
        self.stretches: dict[int, list[tuple[int, int]]] = {}
        for source, texts in enumerate(strings):
            for number, text in enumerate(texts):
                for form in forms:
                    changed = FORMS[form](text)
                    if not form or changed != text:
                        self._add(source, form, number, changed)
        self.last = 0
        self.joined: str | None = None
        self.begins: list[int] = []

    def _add(self, source: int, form: str, number: int, text: str) -> None:
        place = len(self.places)
        self.places.append((source, form, number, text))
        self.whole.setdefault(text, []).append(place)
        for start in range(0, len(text) - LENGTH + 1, STEP):
            found = self.stretches.setdefault(hash(text[start : start + LENGTH]), [])
            if len(found) < MOST:
                found.append((place, start))

    def parts(self, text: str, longest: int) -> list[Part | str]:
        """The text as stretches of the sources; what is in none of them stays a string."""
        if text in self.whole:
            place = min(self.whole[text], key=lambda place: abs(place - self.last - 1))
            self.last = place
            source, form, number, _ = self.places[place]
            return [Part(source, number, form)]
        if len(text) < LENGTH + STEP:
            return self._short(text, longest)
        made: list[Part | str] = []
        at = literal = 0
        while at < len(text):
            best = self._longest(text, literal, at)
            if best is None:
                at += STEP
                continue
            place, start, begin, end = best
            if begin > literal:
                made += self._short(text[literal:begin], longest)
            made.append(self._stretch(place, start, start + end - begin))
            at = literal = end
        if literal < len(text):
            made += self._short(text[literal:], longest)
        return made

    def _stretch(self, place: int, start: int, stop: int) -> Part:
        self.last = place
        source, form, number, whole = self.places[place]
        return Part(source, number, form, start, 0 if stop == len(whole) else stop)

    def _longest(self, text: str, floor: int, at: int) -> tuple[int, int, int, int] | None:
        """The place whose stretch around text[at:at + STEP + LENGTH] is longest, as (place, start, begin, end)."""
        best, gain = None, (0, 0)
        for begin in range(at, min(at + STEP, len(text) - LENGTH + 1)):
            for place, start in self.stretches.get(hash(text[begin : begin + LENGTH]), ()):
                whole = self.places[place][3]
                if not whole.startswith(text[begin : begin + LENGTH], start):
                    continue
                low, left = begin, start
                while low > floor and left > 0 and text[low - 1] == whole[left - 1]:
                    low, left = low - 1, left - 1
                high, right = begin + LENGTH, start + LENGTH
                while high < len(text) and right < len(whole) and text[high] == whole[right]:
                    high, right = high + 1, right + 1
                if (high - low, -abs(place - self.last)) > gain:
                    best, gain = (place, left, low, high), (high - low, -abs(place - self.last))
        return best

    def _short(self, text: str, longest: int) -> list[Part | str]:
        """A short text as a part of a string near the last one, else as it is."""
        if len(text) <= 4:
            return [text]
        line = text.strip("\n")
        if line in self.whole and len(line) > 4:
            before, after = text[: text.index(line)], text[text.index(line) + len(line) :]
            place = min(self.whole[line], key=lambda place: abs(place - self.last - 1))
            return [*filter(None, [before]), self._stretch(place, 0, len(line)), *filter(None, [after])]
        around = range(max(0, self.last - 400), min(len(self.places), self.last + 400))
        for place in sorted(around, key=lambda place: abs(place - self.last)):
            start = self.places[place][3].find(text)
            if start >= 0:
                return [self._stretch(place, start, start + len(text))]
        if len(text) > longest and (found := self._anywhere(text)) is not None:
            return [found]
        half = text.rfind("\n", 1, len(text) - 1) + 1 or text.rfind(" ", 1, len(text) - 1) + 1
        if half and ("\n" in text[1:-1] or len(text) > longest):
            return [*self._short(text[:half], longest), *self._short(text[half:], longest)]
        return [text]

    def _anywhere(self, text: str) -> Part | None:
        if self.joined is None:
            self.joined = "\0".join(place[3] for place in self.places)
            self.begins = list(accumulate((len(place[3]) + 1 for place in self.places), initial=0))
        begin = self.joined.find(text)
        if begin < 0:
            return None
        place = bisect_right(self.begins, begin) - 1
        start = begin - self.begins[place]
        return self._stretch(place, start, start + len(text))
