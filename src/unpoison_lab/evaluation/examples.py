"""A question with its answers and labelled passages, and the errors of rejected rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Literal, Self, get_args

from unpoison.core.passages import TEXT_FIELDS, Passage
from unpoison.errors import InputError, clip
from unpoison.io.rows import QUERY_FIELDS
from unpoison_lab.attacks.base import Target
from unpoison_lab.evaluation.matchers import contains_either

__all__ = ["Example", "FieldError", "Label", "LabelledPassage", "Loaded", "Problem"]

Label = Literal["clean", "gold", "poison", "misinfo", "noise"]
"""clean: retrieved, not written by an attacker; gold: annotated as relevant; poison: written by an attacker; misinfo
and noise: false and irrelevant documents of RAMDocs."""

CORRECT = ("correct_answers", "correct_answer", "answers", "answer")
INCORRECT = ("incorrect_answers", "incorrect_answer")
"""Fields of a row with answers; the first present one is used; each holds one or a list."""

_PASSAGE_FIELDS = frozenset({"id", *TEXT_FIELDS, "title", "source", "score", "label", "attack", "rank"})
_EXAMPLE_FIELDS = frozenset({"id", "dataset", *QUERY_FIELDS, *CORRECT, *INCORRECT, "passages"})


class FieldError(InputError):
    """A row that cannot be used.

    Attributes:
        field: The field at fault, such as `passages[3].label`.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field


@dataclass(frozen=True, slots=True)
class LabelledPassage:
    """A passage with a known author.

    Attributes:
        passage: The passage; its id is unique within the example.
        label: One of `Label`.
        attack: The attack that made it, for poison.
        rank: The retriever's rank, 1 = best, where known.
        extra: Further fields of the row (`rerank`, `published`, `retriever`, ...).
    """

    passage: Passage
    label: Label
    attack: str | None = None
    rank: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)

    @classmethod
    def of(cls, row: object, default_id: str, owner: str = "passage") -> Self:
        """Read one passage of the documented row format: a text, or an object with one; the label is optional.

        Raises:
            FieldError: A field is missing or malformed.
        """
        if isinstance(row, str):
            row = {"text": row}
        if not isinstance(row, Mapping):
            raise FieldError(owner, f"must be a text or an object with one, got {clip(row)}")
        label: Any = "clean" if row.get("label") is None else row["label"]
        if label not in get_args(Label):
            raise FieldError(f"{owner}.label", f"must be one of {', '.join(get_args(Label))}, got {clip(label)}")
        attack = row.get("attack")
        if not (attack is None or (isinstance(attack, str) and attack)):
            raise FieldError(f"{owner}.attack", f"must be a name or absent, got {clip(attack)}")
        rank = row.get("rank")
        if rank is not None and (isinstance(rank, bool) or not isinstance(rank, int) or rank < 1):
            raise FieldError(f"{owner}.rank", f"must be a whole number from 1, got {clip(rank)}")
        if not any(isinstance(row.get(name), str) for name in TEXT_FIELDS):
            raise FieldError(f"{owner}.text", f"must be a text, got {clip(row.get('text'))}")
        try:
            passage = Passage.of({**row, "id": default_id if row.get("id") is None else row["id"]})
        except InputError as error:
            raise FieldError(owner, str(error)) from None
        extra = {name: value for name, value in row.items() if name not in _PASSAGE_FIELDS}
        return cls(passage, label, attack, rank, MappingProxyType(extra))


@dataclass(frozen=True, slots=True)
class Example:
    """One question of a data set.

    Attributes:
        id: Unique in its data set.
        dataset: The data set's name; passages to fill a context come from the corpus of the same name.
        question: The user's question.
        correct_answers: Any of them is right; may be empty.
        incorrect_answers: The answers that the attacker wants; may be empty.
        passages: Labelled, in the file's order.
        extra: Further fields of the row (`kind`, `timeline`, `date`, `choices`, ...).
    """

    id: str
    dataset: str
    question: str
    correct_answers: tuple[str, ...] = ()
    incorrect_answers: tuple[str, ...] = ()
    passages: tuple[LabelledPassage, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)

    def __post_init__(self) -> None:
        seen: set[str | None] = set()
        for position, labelled in enumerate(self.passages):
            if labelled.passage.id in seen:
                raise FieldError(
                    f"passages[{position}].id", f"{clip(labelled.passage.id)} occurs twice; poison is tracked by id"
                )
            seen.add(labelled.passage.id)
        for wrong in self.incorrect_answers:
            for right in self.correct_answers:
                if contains_either(wrong, right):
                    raise FieldError(
                        "incorrect_answers",
                        f"holds {clip(wrong)}, which contains the correct answer {clip(right)} or is contained in "
                        "it; a correct reply and a successful attack could not be distinguished",
                    )

    @classmethod
    def of(cls, row: object, default_id: str | None = None) -> Self:
        """Read one row of the documented format (`docs/data.md`).

        Args:
            row: A row of a file, as a mapping.
            default_id: The id of a row without one; by default a hash of its question.

        Raises:
            FieldError: A field is missing or malformed.
        """
        if not isinstance(row, Mapping):
            raise FieldError("row", f"must be an object with a question, got {clip(row)}")
        question = _question(row)
        identifier = _identifier(row, default_id, question)
        passages = row.get("passages")
        if not (passages is None or isinstance(passages, list)):
            raise FieldError("passages", f"must be a list, got {clip(passages)}")
        return cls(
            id=identifier,
            dataset=_text(row, "dataset", default=""),
            question=question,
            correct_answers=_answers(row, CORRECT),
            incorrect_answers=_answers(row, INCORRECT),
            passages=tuple(
                LabelledPassage.of(passage, f"{identifier}#{i}", f"passages[{i}]")
                for i, passage in enumerate(passages or ())
            ),
            extra=MappingProxyType({name: value for name, value in row.items() if name not in _EXAMPLE_FIELDS}),
        )

    def passages_by_label(self, *labels: Label) -> tuple[LabelledPassage, ...]:
        """The passages with one of these labels, in the file's order."""
        return tuple(labelled for labelled in self.passages if labelled.label in labels)

    def poisons(self, attack: str | None = None) -> tuple[Passage, ...]:
        """The poison texts that come with the example, of one attack or of all."""
        return tuple(p.passage for p in self.passages if p.label == "poison" and attack in (None, p.attack))

    @property
    def attacks(self) -> tuple[str, ...]:
        """The attacks that the example has texts of, in order of appearance."""
        return tuple(dict.fromkeys(p.attack for p in self.passages if p.label == "poison" and p.attack))

    def target(self, attack: str | None = None) -> Target:
        """The attack target for this question.

        Args:
            attack: Whose published texts it may use; None for all.

        Raises:
            InputError: A wrong and a right answer that the attack could not tell apart.
        """
        wanted = self.incorrect_answers
        return Target(
            id=self.id,
            question=self.question,
            correct=self.correct_answers,
            incorrect=wanted[0] if wanted else "",
            texts=tuple(passage.text for passage in self.poisons(attack)),
            gold=tuple(labelled.passage.text for labelled in self.passages_by_label("gold")),
            context=tuple(labelled.passage.text for labelled in self.passages_by_label("gold", "clean")),
            alternatives=wanted[1:],
        )


def _question(row: Mapping[str, Any]) -> str:
    named = [name for name in QUERY_FIELDS if name in row] or ["question"]
    return _text(row, next((name for name in named if row.get(name) is not None), named[0]))


def _identifier(row: Mapping[str, Any], default: str | None, question: str) -> str:
    value = row.get("id")
    if value is None:
        return default or f"q-{blake2b(question.encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()}"
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _text(row, "id")


def _text(row: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = row.get(name)
    if value is None:
        value = default
    if not isinstance(value, str) or (default is None and not value.strip()):
        raise FieldError(name, f"must be a text that is not empty, got {clip(value)}")
    return value


def _answers(row: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    """The texts of the first field that is there; an `answer` object is output of an earlier `ask`."""
    name = next((n for n in names if row.get(n) is not None and not isinstance(row[n], Mapping)), names[0])
    value = row.get(name)
    values = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(text, (str, int, float)) and not isinstance(text, bool) for text in values):
        raise FieldError(name, f"must be a text or a list of texts, got {clip(value)}")
    return tuple(dict.fromkeys(str(text) for text in values if str(text).strip()))


@dataclass(frozen=True, slots=True)
class Problem:
    """A row that was left out, and why.

    Attributes:
        line: 1-based line of a JSON Lines file, or 1-based position in a JSON list.
        field: The field at fault.
        message: The sentence to print.
        id: The row's id if it could be read.
    """

    line: int
    field: str
    message: str
    id: str | None = None

    def __str__(self) -> str:
        return f"line {self.line}{'' if self.id is None else f' ({clip(self.id)})'}: {self.message}"


@dataclass(frozen=True, slots=True)
class Loaded:
    """The examples of one source, its rejected rows, and the hash that a manifest records.

    Attributes:
        source: The argument of `load`.
        examples: The usable examples, in the source's order.
        problems: The rows left out.
        digest: `sha256:` and the hash of the bytes read.
    """

    source: str
    examples: tuple[Example, ...]
    problems: tuple[Problem, ...]
    digest: str

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[Example]:
        return iter(self.examples)
