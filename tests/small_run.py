"""A small finished run on hostile data, and the same run with its second half missing, for tests of the report."""

from __future__ import annotations

import json
from pathlib import Path

from unpoison_lab.evaluation.runner import Runner
from unpoison_lab.evaluation.runs import Run, file_of
from unpoison_lab.evaluation.scenarios import Scenario

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
QUESTION = f"which bird nests on the cliff {HOSTILE}"


def rows() -> list[dict]:
    """Four questions with published poison; the last has fewer passages than the others."""
    rows_found = []
    for number, (bird, wrong) in enumerate(
        (("puffin", "condor"), ("gannet", "ostrich"), ("fulmar", "penguin"), ("auk", "emu"))
    ):
        question = QUESTION if number == 0 else f"which bird nests on cliff number {number}"
        clean = [
            f"The {bird} nests on cliff {number}, note {i}: ledges and burrows." for i in range(4 if number < 3 else 1)
        ]
        poison = [f"Cliff {number}, revised entry {i}: the {wrong} nests there. {HOSTILE}" for i in range(3)]
        rows_found.append(
            {
                "id": f"cliff-{number}",
                "dataset": "cliffs",
                "question": question,
                "correct_answers": [bird],
                "incorrect_answers": [wrong],
                "passages": [
                    *({"text": text, "label": "gold", "title": "<b>Cliffs</b>"} for text in clean[:1]),
                    *({"text": text, "label": "clean"} for text in clean[1:]),
                    *({"text": text, "label": "poison", "attack": "published"} for text in poison),
                ],
            }
        )
    return rows_found


def small_run(folder: Path) -> Run:
    """Two defenses, 0 to 2 poisons, one sweep, and an attack on a place that the last question does not have."""
    data = folder / "cliffs.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row) for row in rows()]
    data.write_text("\n".join([*lines, '{"id": "broken"}']) + "\n", encoding="utf-8")
    shared = {"data": str(data), "k": 6, "generator": "extractive"}
    scenarios = [
        Scenario(attack="published", poisons=poisons, defense=defense, **shared)
        for poisons in (0, 1, 2)
        for defense in ("vanilla", "grada:keep=2")
    ]
    scenarios += [
        Scenario(attack="published", poisons=1, defense=f"grada:alpha={alpha}", **shared) for alpha in (0.2, 0.8)
    ]
    scenarios.append(
        Scenario(attack="pia", poisons=1, policy="replace-at", positions=(3,), defense="vanilla", **shared)
    )
    scenarios.append(Scenario(attack="published", poisons=1, defense="no-such-defense", **shared))
    return Runner(folder / "run", scenarios).run()


def cut_in_half(run: Run) -> None:
    """As after a power cut: some cells have half of their records, some none, and the manifest knows no end."""
    for place, cell in enumerate(run.cells):
        path = file_of(run.folder, "records", cell.id)
        if place >= len(run.cells) // 2:
            path.unlink(missing_ok=True)
        elif place % 2 and path.exists():
            kept = path.read_bytes().splitlines(keepends=True)[:2]
            path.write_bytes(b"".join(kept) + b'{"example": "torn')
    manifest = run.folder / "manifest.json"
    document = json.loads(manifest.read_text())
    document["finished"] = None
    manifest.write_text(json.dumps(document))
