"""List what keeps each preset from the stamp "same setting": `python tools/list_stamps.py [--full]`, as Markdown.

It supposes that everything which can be had is at hand: the released data, the paper's encoder, retriever and judge,
and one of its language models. `--full` prints the differences in their own words.
"""

from __future__ import annotations

import re
import sys

from unpoison.bench.evaluation.presets import load_preset, preset_names

CONTRIEVER = "st:facebook/contriever,similarity=dot"
NLI = "cross:MoritzLaurer/DeBERTa-v3-large-mnli-fever-anli-ling-wanli"
BEST = {
    "grada": {"encoder": CONTRIEVER, "generator": "openai:gpt-3.5-turbo-0125"},
    "ragdefender": {
        "encoder": "st:NovaSearch/stella_en_400M_v5",
        "retriever": CONTRIEVER,
        "generator": "openai:gpt-4o",
    },
    "trustrag": {
        "encoder": "st:princeton-nlp/sup-simcse-bert-base-uncased",
        "retriever": CONTRIEVER,
        "generator": "openai:gpt-4o",
    },
    "radar": {"generator": "openai:deepseek-chat", "nli": NLI, "grader": "openai:deepseek-chat"},
}
"""The models that a run would name, by paper."""

KINDS = {
    "A": ("BEIR's corpora, which no repository holds", r"\(BEIR\)|pool's clean passages"),
    "B": ("data that is in no repository, or of which the paper does not say how many questions it has",
          r"left out|no data|questions of PoisonedRAG's file|paper does not say how many"),
    "C": ("a checkpoint, a method or an attack that cannot be run here", r"not measured|200 calls"),
    "D": ("the table's other models, each of which is a run of its own; or models that the paper does not name",
          r"^(generator|encoder|retriever|nli) .*, theirs "),
    "E": ("prompts of methods that ask more than once, and of biographies, which are in our words",
          r"in our words|prompts: "),
    "F": ("the paper's text and its released code contradict each other",
          r"the text |the paper does not say|in the code|released code; theirs|no rule is given"),
    "G": ("attack texts that a language model wrote for the paper and nobody released",
          r"attack written|our texts|their texts"),
    "H": ("temperature, seeds, order of the questions", r"temperature|seed|one draw"),
    "I": ("rows that are left out: the released wrong answer contains the right one, or a result has no text",
          r"of 100 questions"),
    "J": ("other", r""),
}  # fmt: skip


def kind(difference: str) -> str:
    """The letter of the first kind that a difference is of."""
    return next(letter for letter, (_, pattern) in KINDS.items() if re.search(pattern, difference))


def main() -> None:
    earned, rows = 0, []
    for name in preset_names():
        preset = load_preset(name, data="evaluation-data", **BEST[name.partition("-")[0]])  # type: ignore[arg-type]
        earned += preset.same_setting
        letters = sorted({kind(difference) for difference in (*preset.differences, *preset.lacks)})
        rows.append((name, "same setting" if preset.same_setting else ", ".join(letters), len(preset.differences)))
        if "--full" in sys.argv:
            print(name, *(f"  {kind(one)} {one}" for one in (*preset.differences, *preset.lacks)), sep="\n")
    print(f"{earned} of {len(rows)} presets earn the stamp.\n")
    print("| preset | kept from it by | differences |\n| --- | --- | --- |")
    print(*(f"| `{name}` | {why} | {count} |" for name, why, count in rows), sep="\n")
    print("", *(f"- {letter}: {what}" for letter, (what, _) in KINDS.items()), sep="\n")


if __name__ == "__main__":
    main()
