"""Extract what the papers' released code plants and asks: `python tools/extract_replay.py MIRRORS BUILT OUT`.

MIRRORS is a folder of git directories called `owner+name`, BUILT one of evaluation files, which give the annotated
passages that the released files lack. OUT gets `replay.jsonl` and `replay_*.jsonl`; `build_data_recipes.py OUT MIRRORS
replay ...` makes their recipes. Code is parsed and never run: a text is what an expression of constants says, with a
`{name}` where a variable stands.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unpoison.bench.data.git_mirrors import Mirror
from unpoison.bench.data.recipes import derive_ids

POISONEDRAG, RAGDEFENDER = "sleeepeer/PoisonedRAG", "SecAI-Lab/RAGDefender"
TRUSTRAG, GRADA, RADAR = "HuichiZhou/TrustRAG", "agrzheng/GRADA", "Etherealllllll/RADAR_code"

NAMES = {"incorrect_answer": "answer", "incco_ans": "answer", "context_str": "context", "query_str": "question",
         "correct_answer": "correct", "incorrect_answer_long": "opening", "incorrect_context": "context"}  # fmt: skip
"""Variables and holes of theirs, by what `bench/attacks/replay.py` fills in."""

STRINGS = [  # id, kind, repository, path, where the text stands, holes of theirs in square brackets
    ("answer-grada", "prompt", GRADA, "src/prompts.py", "MULTIPLE_PROMPT"),
    ("answer-ragdefender", "prompt", RAGDEFENDER, "artifacts/src/prompts.py", "MULTIPLE_PROMPT"),
    ("answer-trustrag", "prompt", TRUSTRAG, "src/prompts.py", "MULTIPLE_PROMPT"),
    ("answer-radar", "prompt", RADAR, "Static/src/prompt_template.py", "QA_PROMPT_TMPL_GPT"),
    ("qa-trustrag", "order", TRUSTRAG, "main_trustrag.py", "main/pia_attack"),
    ("qa-radar", "order", RADAR, "Static/src/attack.py", "PIA.attack/constructed_poison"),
    ("long-radar-before", "order", RADAR, "Static/src/attack.py", "constructed_PIALONG_prev_template"),
    ("long-radar", "order", RADAR, "Static/src/attack.py", "constructed_PIALONG_template"),
    ("long-radar-after", "order", RADAR, "Static/src/attack.py", "constructed_PIALONG_after_template"),
    ("dos-grada", "order", GRADA, "src/attack.py", "Attacker.get_attack/adv_texts_b:str"),
    ("dos-grada-answer", "answer", GRADA, "main.py", "main/incco_ans:1"),
    ("prompt-radar-before", "poison", RADAR, "Static/src/attack.py", "constructed_PoisonLONG_prev_template"),
    ("prompt-radar", "poison", RADAR, "Static/src/attack.py", "constructed_PoisonLONG_template"),
    ("prompt-radar-after", "poison", RADAR, "Static/src/attack.py", "constructed_PoisonLONG_after_template"),
    ("text-radar", "poison", RADAR, "Static/src/attack.py", "Poison.attack/constructed_poison"),
]  # fmt: skip


class Sources:
    """Files of mirrors at their newest commits."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def text(self, repository: str, path: str) -> str:
        mirror = Mirror.find(self._folder, repository)
        content = mirror.read(mirror.newest(), path) if mirror else None
        if content is None:
            raise SystemExit(f"{path} of {repository} is not in {self._folder}")
        return content.decode()


def assigned(code: str, where: str) -> str:
    """The text that stands at `name`, `function/name` or `Class.method/name`, the first or `:n` further ones on."""
    where, _, which = where.partition(":")
    scope, _, name = where.rpartition("/")
    node: ast.AST = ast.parse(code)
    for part in filter(None, scope.split(".")):
        node = next(inner for inner in ast.walk(node) if getattr(inner, "name", None) == part)
    values = [
        assign.value
        for assign in ast.walk(node)
        if isinstance(assign, ast.Assign) and any(getattr(target, "id", "") == name for target in assign.targets)
    ]
    if which == "str":
        return next(said(value) for value in values if isinstance(value, ast.Constant))
    constants = [value for value in values if isinstance(value, ast.Constant)] if which else values
    return said(sorted(constants, key=lambda value: value.lineno)[int(which or 0)])


def said(node: ast.expr) -> str:
    """What an expression of constants, variables and `+` says; how often it is repeated is not part of it."""
    match node:
        case ast.Constant(value=str(text)):
            for theirs, ours in NAMES.items():
                text = text.replace(f"{{{theirs}}}", f"{{{ours}}}")
            return text.replace("[question]", "{question}").replace("[context]", "{context}")
        case ast.Name(id=name):
            return f"{{{NAMES.get(name, name)}}}"
        case ast.Subscript(value=ast.Name(id=name)):
            return f"{{{NAMES.get(name, name)}}}"
        case ast.BinOp(op=ast.Add()):
            return said(node.left) + said(node.right)
        case ast.BinOp(op=ast.Mult()):
            return said(node.left)
    raise SystemExit(f"line {node.lineno}: not a text: {ast.dump(node)[:80]}")


def code_strings(sources: Sources) -> Iterator[dict[str, Any]]:
    for identifier, kind, repository, path, where in STRINGS:
        text = assigned(sources.text(repository, path), where)
        yield {"id": identifier, "kind": kind, "source": f"{repository} {path}", "text": text}


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def passage(text: str, label: str, **more: Any) -> dict[str, Any]:
    return {"id": "", "text": text, "label": label, **more}


def targets(sources: Sources, built: Path, name: str) -> Iterator[dict[str, Any]]:
    """PoisonedRAG's hundred targets in its order; `ragdefender` is the pool of RAGDefender's PoisonedRAG runs."""
    rows = json.loads(sources.text(POISONEDRAG, f"results/adv_targeted_results/{name}.json"))
    order = json.loads(sources.text(RAGDEFENDER, f"artifacts/results/target_queries/{name}.json"))
    ours = {row["id"]: row for row in map(json.loads, lines_of(built / f"{name}_poisoned.jsonl"))}
    published = 5 if name == "nq" else 2  # adv_per_query of run_poisonedrag.py
    places = {target["id"]: number for number, target in enumerate(order)}
    for row in rows.values():
        number = places[row["id"]]
        path = f"artifacts/poisoned_corpus/{name}/gpt4/{name}_{number // 10}_{number % 10}.txt"
        lines = [line for line in sources.text(RAGDEFENDER, path).splitlines(keepends=True) if line.strip("\n")]
        identifier = f"{name}-{row['id']}"
        annotated = [one for one in ours.get(identifier, {}).get("passages", ()) if one["label"] != "poison"]
        yield {
            "id": identifier,
            "dataset": name,
            "question": row["question"],
            "correct_answers": [row["correct answer"]],
            "incorrect_answers": [row["incorrect answer"]],
            "passages": [
                *(passage(**{key: one[key] for key in ("text", "label", "rank") if key in one}) for one in annotated),
                *(passage(text, "poison", attack="poisonedrag") for text in row["adv_texts"]),
                *(passage(t, "poison", attack="ragdefender") for t in [*row["adv_texts"][:published], *lines]),
            ],
        }


def searched(sources: Sources, name: str) -> Iterator[dict[str, Any]]:
    """RADAR's questions with their results in the order that its code reads; it shows the model no titles."""
    for row in json.loads(sources.text(RADAR, f"Static/data/{name}.json")):
        right, false = row["correct answer"], row["incorrect_context"]
        found = [one["text"] for one in row["context"] if "text" in one]
        yield {
            "id": f"{name}-{row['id']}",
            "dataset": name,
            "question": row["question"],
            "correct_answers": [*(right if isinstance(right, list) else [right]), *row.get("expanded answer", ())],
            "incorrect_answers": [row["incorrect answer"]],
            "passages": [
                *(passage(text, "clean", rank=rank) for rank, text in enumerate(found, 1)),
                *(passage(text, "poison", attack="radar-incorrect-context") for text in false),
            ],
        }


def main() -> None:
    mirrors, built, out = map(Path, sys.argv[1:])
    sources = Sources(mirrors)
    files = {"replay": code_strings(sources)}
    files |= {f"replay_{name}": targets(sources, built, name) for name in ("nq", "hotpotqa", "msmarco")}
    files |= {f"replay_{name}": searched(sources, name) for name in ("realtimeqa", "biogen")}
    out.mkdir(parents=True, exist_ok=True)
    for name, rows in files.items():
        lines = [json.dumps(derive_ids(row, None), ensure_ascii=False) + "\n" for row in rows]
        Path(out, f"{name}.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")
        print(f"{name}: {len(lines)} rows")


if __name__ == "__main__":
    main()
