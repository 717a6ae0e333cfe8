"""Differences between how a paper measured its table and how it is measured here.

Each is a text `code: detail`; tables show the code, and the details once below. A defense whose released code differs
from its paper's text has two variants, `paper` and `reference`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from unpoison.core.registry import format_spec, names, parse
from unpoison.models.loading import answer_judge, can_write
from unpoison.models.prompts import PromptStyle, wording
from unpoison_lab.evaluation.preset_data import PaperData, released_setting
from unpoison_lab.evaluation.scenarios import COMPETING, Scenario, short_of, stand_in, takes

__all__ = [
    "PAPER",
    "REFERENCE",
    "Differences",
    "codes",
    "injection_difference",
    "measurable",
    "same_model",
    "shortfalls",
    "variants",
]


def codes(differences: Iterable[str]) -> str:
    """The codes of differences for a cell of a table, such as `data generator prompt`; "yes" without differences."""
    return " ".join(dict.fromkeys(difference.partition(": ")[0] for difference in differences)) or "yes"


PAPER, REFERENCE = "paper", "reference"

# No table of TrustRAG, RADAR or RAGDefender says whether the rules of the paper's text or those of its released code
# produced it, and they keep different passages; so every such row is measured in both variants. GRADA has one variant:
# where its text is silent its code is followed, and elsewhere both keep the same passages.

_HAS_REFERENCE = ("trustrag", "radar", "ragdefender")
"""Methods whose `mode=reference` follows the released code."""


def shortfalls(variant: str, spec: str) -> tuple[str, ...]:
    """Differences between a variant and the source it is named after."""
    if variant != PAPER or _method(spec) != "radar":
        return ()
    return (
        "variant: unanimous answers count as supported, where Eq. 36 gives them no support",
        "variant: of two answers that are outliers by Eq. 40 the better rank stays",
        "variant: it abstains where nothing is trusted; the paper does not say what then",
    )


def variants(spec: str) -> dict[str, str]:
    """The option strings to measure for a row that does not say which variant it has, by variant.

    Returns:
        `paper` and `reference`; only "" for a defense that has no variants, or if the option string names one.
    """
    name, options = parse(spec)
    method = _method(spec)
    if method not in _HAS_REFERENCE or {"mode", "rule"} & set(options):
        return {"": spec}
    as_printed = {"rule": "paper"} if method == "ragdefender" and options.get("hops") == "multi" else {}
    return {
        PAPER: format_spec(name, {**options, **as_printed}),
        REFERENCE: format_spec(name, {**options, "mode": "reference"}),
    }


def _method(spec: str) -> str:
    """The name of a defense, or of the method that is ablated: `trustrag` of `trustrag-ablation:ngram=false`."""
    return parse(spec)[0].removesuffix("-ablation")


_SAME = {
    "contriever": re.compile(r"facebook/contriever(?:-msmarco)?$"),
    "contrieverms": re.compile(r"facebook/contriever-msmarco$"),
    "simcse": re.compile(r"princeton-nlp/sup-simcse-bert-base-uncased$"),
    "bert": re.compile(r"(?:google-bert/|:)bert-base-uncased$"),
    "stella": re.compile(r"(?:novasearch|dunzhang)/stella_en_"),
    "gpt4o": re.compile(r"gpt-4o(?:-20\d\d-\d\d-\d\d)?$"),
    "gpt35turbo": re.compile(r"gpt-3\.5-turbo"),
    "deepseek": re.compile(r"deepseek-chat$"),
    "gpt4omini": re.compile(r"gpt-4o-mini(?:-20\d\d-\d\d-\d\d)?$"),
    "llama318b": re.compile(r"llama-3\.1-8b-instruct$"),
    "llama3170b": re.compile(r"llama-3\.1-70b-instruct$"),
    "llama321b": re.compile(r"llama-3\.2-1b-instruct$"),
    "llama323b": re.compile(r"llama-3\.2-3b-instruct$"),
    "llama3370b": re.compile(r"llama-3\.3-70b-instruct$"),
    "qwen257b": re.compile(r"qwen2\.5-7b-instruct$"),
    "grok4fast": re.compile(r"grok-4-fast"),
    "ance": re.compile(r"castorini/ance-|ance-msmarco"),
    "mistralnemo": re.compile(r"mistral-nemo-instruct"),
    "llama7b": re.compile(r"llama-2-7b"),
    "llama13b": re.compile(r"llama-2-13b"),
    "vicuna7b": re.compile(r"vicuna-7b-v1\.3$"),
    "vicuna13b": re.compile(r"vicuna-13b-v1\.3$"),
    "gemini": re.compile(r"gemini-1\.5-pro"),
    "debertav3": re.compile(r"deberta-v3-large-mnli-fever-anli-ling-wanli$"),
    "bart": re.compile(r"bart-large-mnli$"),
}
"""The papers' models, in lower case without punctuation, with a pattern of option strings for the same model."""

_WRITING = frozenset({"astuterag", "instructrag", "trustrag", "no-rag", "discern", "madam", "paraphrase"})
"""Defenses that need a generator with knowledge or words of its own; a reader, which only copies, measures nothing."""

_SCREENING = frozenset({"vanilla", "grada", "ragdefender", "rerank", "perplexity"})
"""Defenses behind which plain RAG answers, in one prompt."""

_WITH_REPLIES = ("asr", "accuracy", "exact_match", "em_", "abstained", "judged", "graded")


def needs_replies(measure: str) -> bool:
    """Whether a measure needs the words of a generator."""
    return measure.startswith(_WITH_REPLIES)


def has_gradient(encoder: str) -> bool:
    """Whether attacks can follow the gradient of an encoder of this name."""
    return encoder.partition(":")[0].partition(",")[0] not in ("lexical", "openai")


def available(row: Mapping[str, Any]) -> bool:
    """Whether the row's defense is in this package and needs no third-party checkpoint."""
    return "defense" in row and _method(row["defense"]) in names("defenses")


def measurable(row: Mapping[str, Any], generator: str | None) -> str:
    """The reason that a row cannot be measured with this generator; "" if it can."""
    if not available(row):
        return f"needs a checkpoint, {row['needs']}" if row.get("needs") else "not in this package"
    if not row.get("generator"):
        return ""
    if generator is None:
        return "needs a generator (-g)"
    name, architecture = _method(row["defense"]), row.get("architecture")
    if architecture == "replug" and not generator.startswith("hf:"):
        return "needs a generator with next-token probabilities, -g hf:NAME"
    if (name in _WRITING or architecture == "self-rag") and not can_write(generator):
        return "needs a generator that writes; a reader only copies"
    return ""


def prompt_difference(row: Mapping[str, Any]) -> str:
    """How the prompts behind a row's replies differ from the paper's; "" for those of the released code itself."""
    name, options = _method(row["defense"]), parse(row["defense"])[1]
    style = PromptStyle.of(row.get("style", "safe"))
    differs = "in our words"
    if name == "trustrag" and options.get("stages") != "1":
        differs = wording("consolidate", options.get("mode", "paper"))["differs"]
    elif name == "astuterag":
        differs = wording("consolidate", name)["differs"]
    elif name == "robustrag" and style.paper == "grada":
        differs = "keywords are asked for in our words, theirs by Prompts 1 and 2 of Figure 8"
    elif style.paper and "architecture" not in row and (name in _SCREENING or name == "trustrag"):
        if style.replay:
            return ""
        differs = wording("answer", style.paper)["differs"]
    return f"prompt: {differs.removeprefix('prompts: ').removeprefix('prompt: ')}"


def injection_difference(source: str, attack: str) -> str:
    """How an attack's planted instruction differs from the paper that a source names; "" without a difference."""
    name, options = parse(attack)
    kind = options.get("style", "qa") if name == "pia" else name
    if kind not in ("qa", "dos", "long", "link", "ambiguous"):
        return ""
    theirs = wording("orders", kind)["of"].get(source.partition(",")[0], {"differs": "in our words"})
    differs = theirs.get("replayed", "") if options.get("replay") else theirs["differs"]
    return f"injection: {differs}" if differs else ""


def same_model(ours: str, theirs: str) -> bool:
    """Whether an option string names a model that the paper names; options behind a comma do not count."""
    named = ours.partition(",")[0].lower()
    return any(_SAME[name].search(named) for name in _model_names(theirs))


def _model_names(text: str) -> list[str]:
    """The models of `_SAME` in a text; GPT-4o-mini names no GPT-4o."""
    plain, named = "".join(filter(str.isalnum, text.lower())), list[str]()
    for name in sorted(_SAME, key=len, reverse=True):
        if name in plain:
            plain = plain.replace(name, " ")
            named.append(name)
    return named


class Differences:
    """The measurable parts of a table, with their differences by row, column and table.

    Args:
        raw: The preset's file.
        sources: Where its data comes from.
        models: encoder, retriever, generator and nli of the run, by kind, with its seed and limit.
    """

    def __init__(self, raw: Mapping[str, Any], sources: PaperData, models: Mapping[str, Any]) -> None:
        self._raw, self._sources, self._models = raw, sources, models
        self._setting = released_setting(str(raw["source"]).partition(",")[0])

    def scenario(self, row: Mapping[str, Any], column: Mapping[str, Any]) -> Scenario | None:
        """The scenario of one cell of the table; None if something is missing."""
        if self._column_lacks(column) or measurable(row, self._models["generator"]):
            return None
        stated = self._stated(row, column)
        own = {key: stated[key] for key in stated if key in Scenario.__slots__ and key not in ("data", "generator")}
        return Scenario.from_dict({**self._models, **own, **self._sources.fields[column["data"]]})

    def _stated(self, row: Mapping[str, Any], column: Mapping[str, Any]) -> dict[str, Any]:
        """The file's settings for a cell; those of the released code if the released data was fetched."""
        stated = {**self._raw.get("base", {}), **column, **row}
        if column["data"] not in self._sources.replayed:
            return stated
        if stated.get("policy") in self._setting["policies"]:
            stated["policy"] = self._setting["policies"][stated["policy"]]
        stated["style"] = self._style(str(stated.get("style", "safe")))
        name, options = parse(str(stated.get("attack", "none")))
        for theirs, added in self._setting["attacks"].items():
            replayed, wanted = parse(theirs)
            if name == replayed and wanted.items() <= options.items() and not set(added) & set(options):
                stated["attack"] = format_spec(name, {**options, **added})
        return stated

    def _style(self, spec: str) -> str:
        """The style with the released code's own words, if the paper's style is used and answers are short."""
        style = PromptStyle.of(spec)
        return str(replace(style, replay=True)) if style.paper and not style.long else spec

    def variants(self, row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """The rows that are measured for a row of the paper: one, or one for each variant of its defense."""
        if measurable(row, self._models["generator"]):
            yield row
            return
        for variant, spec in variants(row["defense"]).items():
            differs = [*row.get("differs", ()), *shortfalls(variant, spec)]
            yield {**row, "variant": variant, "defense": spec, "differs": differs}

    def any_scenario(self, table: Mapping[str, Any], column: Mapping[str, Any]) -> Scenario | None:
        """The scenario of a column in the first measurable row."""
        return next(
            (scenario for row in table["rows"] if (scenario := self.scenario(row, column)) is not None),
            None,
        )

    def _column_lacks(self, column: Mapping[str, Any]) -> str:
        """The reason that a whole column cannot be measured; "" if it can."""
        if column["data"] not in self._sources.fields:
            return "no data"
        if not column.get("measured", True):
            return str(column["lacks"])
        if column.get("gradients") and not has_gradient(self._models["encoder"]):
            return "the attack follows an encoder's gradient (-e minilm)"
        return ""

    def of_row(self, table: Mapping[str, Any], row: Mapping[str, Any], measure: str) -> tuple[str, ...]:
        """The differences of this row for one measure, or why it is not measured."""
        if why := measurable(row, self._models["generator"]):
            return (f"none: {why}",)
        return tuple(dict.fromkeys(self._of_row(table, row, measure)))

    def _of_row(self, table: Mapping[str, Any], row: Mapping[str, Any], measure: str) -> Iterator[str]:
        if takes("defenses", row["defense"], "encoder"):
            yield from self._model("encoder", table)
        replies = needs_replies(measure)
        if replies and self._models["generator"] is None:
            yield "replies: no generator (-g), so the poison left in context in place of replies"
        elif replies:
            yield from self._model("generator", table)
            stated = {**self._raw.get("base", {}), **row}
            if self._sources.replayed:
                stated["style"] = self._style(str(stated.get("style", "safe")))
            yield from filter(None, [prompt_difference(stated)])
        if takes("defenses", row["defense"], "nli") and (replies or row.get("generator")):
            yield from self._model("nli", table)
        yield from _phrases(row, measure)
        yield from _phrases(table, measure)
        yield from _phrases(self._raw, measure)

    def of_column(self, column: Mapping[str, Any], scenario: Scenario | None, measure: str) -> tuple[str, ...]:
        """The differences of this column; `scenario` is any scenario measured in it."""
        if why := self._column_lacks(column):
            return (f"none: {why}",)
        return tuple(dict.fromkeys(self._of_column(column, scenario, measure)))

    def _of_column(self, column: Mapping[str, Any], scenario: Scenario | None, measure: str) -> Iterator[str]:
        if difference := self._sources.differs[column["data"]]:
            yield f"data: {difference}"
        if scenario is not None:
            yield from self._of_setting(column["data"], scenario, measure)
            if scenario.policy in COMPETING:
                yield from self._model("retriever", {})
            if scenario.policy == "pool" and column["data"] == "msmarco":
                yield "setting: k = 2 and 2 poisons at 1x, as in the released code; Section 5 has k = 5 and 5"
            if writer := stand_in(scenario):
                yield f"texts: attack written by {writer}, theirs by a language model"
            if scenario.attacked and (words := injection_difference(self._raw["source"], scenario.attack)):
                yield words
            if less := short_of(scenario):
                yield f"search: {less}"
            if scenario.prefix and scenario.attacked:
                yield from self._raw.get("with_question", ())
        yield from _phrases(column, measure)

    def _of_setting(self, data: str, scenario: Scenario, measure: str) -> Iterator[str]:
        """Differences from the released code's setting, apart from data, models and prompts."""
        setting, ours = self._setting, str(self._models["retriever"])
        if clean := self._sources.clean.get(data):
            yield f"corpus: {clean}"
        if scenario.policy == "retrieve" and scenario.attacked and "retrieve" in setting["policies"]:
            yield "setting: only the question's own poison competes, in the released code that of ten questions"
        named = self._raw["used"].get("retriever", "")
        dot = f"similarity={setting['similarity']}"
        if scenario.policy in COMPETING and setting["similarity"] and same_model(ours, named) and dot not in ours:
            yield f"retriever: compares by cosine; the released code by dot product, '{ours},{dot}'"
        if scenario.attacked and parse(scenario.attack) == ("published", {}) and "published" in setting["attacks"]:
            yield "texts: in the order of the data file, not as the released code takes them"
        if data not in self._sources.replayed:
            return
        for phrase in setting["differs"]:
            of_data = data in phrase.get("data", [data])
            if of_data and any(map(measure.startswith, phrase.get("of", [""]))):
                yield phrase["say"]

    def _model(self, kind: str, table: Mapping[str, Any]) -> Iterator[str]:
        theirs = {**self._raw["used"], **table.get("used", {})}.get(kind)
        ours = self._models[kind]
        if kind == "nli":
            ours = answer_judge(ours, self._models["generator"])
        if not theirs or not ours:
            return
        of_table = [name for name in _model_names(table.get("model", "")) if name in _model_names(theirs)]
        if not same_model(ours, " ".join(of_table) or theirs):
            yield f"{kind}: {ours}, theirs {theirs}"


def _phrases(of: Mapping[str, Any], measure: str) -> Iterator[str]:
    """Differences in a preset's file at a row, column or table, for every measure or for those named."""
    for phrase in of.get("differs", ()):
        if isinstance(phrase, str):
            yield phrase
        elif any(measure.startswith(name) for name in phrase["of"]):
            yield phrase["say"]
