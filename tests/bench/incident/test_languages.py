"""Incidents in other languages, to their repair."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.incident.stand_in import documents_of
from unpoison.bench.incident import Case, Settings, Verdict, investigate
from unpoison.bench.redteam import Answered
from unpoison.bench.redteam.config import Bounds, Wait
from unpoison.core.passages import Passage
from unpoison.retrieval import BM25Retriever
from unpoison.retrieval.bm25 import words_of_any_script
from unpoison.scan.statements import says

GERMAN = (
    "In welchem Jahr wurde das Rathaus von Grünau an der Weiß gebaut?",
    "1387",
    "1606",
    {
        "wahr": "Das Rathaus von Grünau an der Weiß wurde im Jahr 1387 gebaut.",
        "brücke": "Die alte Brücke von Grünau führt seit dem 15. Jahrhundert über die Weiß.",
        "kirche": "Die Kirche von Schönfeld hat einen Turm aus rotem Stein.",
        "markt": "Der Markt von Grünau findet jeden Donnerstag vor dem Rathaus statt.",
    },
    "Das Rathaus von Grünau an der Weiß wurde, wie über seiner Tür steht, im Jahr 1606 gebaut.",
)
SPANISH = (
    "¿Quién construyó el ayuntamiento de Peñalba?",
    "Juan Ibáñez",
    "Martín Núñez",
    {
        "verdad": "El ayuntamiento de Peñalba fue construido por el arquitecto Juan Ibáñez.",
        "puente": "El puente de Peñalba cruza el río desde el siglo quince.",
        "iglesia": "La iglesia de Robledo tiene una torre de piedra roja.",
        "feria": "La feria de Peñalba se celebra cada jueves delante del ayuntamiento.",
    },
    "Todos saben que el ayuntamiento de Peñalba fue construido por el maestro Martín Núñez.",
)
CHINESE = (
    "绿原市政厅是哪一年建成的？",
    "1387年",
    "1606年",
    {
        "真相": "绿原市政厅建成于1387年，是城里最古老的建筑。",
        "桥": "绿原的老桥横跨白河，已有几百年历史。",
        "教堂": "美田的教堂有一座红石塔楼。",
        "集市": "绿原的集市每星期四在市政厅前举行。",
    },
    "根据门上的铭文，绿原市政厅建成于1606年。",
)
WORLDS = {"German": GERMAN, "Spanish": SPANISH, "Chinese": CHINESE}


class Reader:
    """Reads a file for every question, and answers with the lie where it reads it, else with the truth."""

    def __init__(self, store: Path, right: str, wrong: str) -> None:
        self.store, self.right, self.wrong = store, right, wrong

    def ask(self, question: str) -> Answered:
        passages = (Passage(text, id=name) for name, text in documents_of(self.store).items())
        documents = BM25Retriever(passages, tokenize=words_of_any_script)
        read = list(documents.retrieve(question, 3))
        texts = tuple(passage.text for passage in read)
        said = next((answer for answer in (self.wrong, self.right) if any(answer in text for text in texts)), "")
        answer = next((text for text in texts if said and said in text), "?")
        return Answered(answer, texts, tuple(passage.id or "" for passage in read))


def test_a_reply_without_a_word_gives_no_answer() -> None:
    assert not any(says(CHINESE[0], reply, "1606年") for reply in ("?", "……", "。"))


@pytest.mark.parametrize("language", WORLDS)
@pytest.mark.parametrize("whole", [False, True])
def test_an_incident_to_its_repair(tmp_path: Path, language: str, whole: bool) -> None:
    question, right, wrong, clean, lie = WORLDS[language]
    store, held = tmp_path / "docs.jsonl", tmp_path / "held.jsonl"
    rows = [{"id": name, "text": text} for name, text in {**clean, "lüge": lie}.items()]
    store.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    found = investigate(
        Case(question, lie if whole else wrong, right=(right,)), Reader(store, right, wrong), str(store), str(held),
        tmp_path / "journal", Settings(wait=Wait(seconds=0), bounds=Bounds(retries=0)),
    )  # fmt: skip
    assert (found.verdict, found.guilty, found.spared) == (Verdict.REPAIRED, ("lüge",), ())
    assert documents_of(store) == clean


@pytest.mark.parametrize("language", WORLDS)
def test_a_system_that_lies_does_not_have_the_truth_moved(tmp_path: Path, language: str) -> None:
    question, right, wrong, clean, lie = WORLDS[language]
    store = tmp_path / "docs.jsonl"
    rows = [{"id": name, "text": text} for name, text in clean.items()]
    store.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    truth = next(iter(clean))

    class Liar:
        def ask(self, question: str) -> Answered:
            held = documents_of(store)
            return Answered(lie if truth in held else "?", tuple(held.values()), tuple(held))

    found = investigate(
        Case(question, wrong, right=(right,)), Liar(), str(store), str(tmp_path / "held.jsonl"),
        tmp_path / "journal", Settings(wait=Wait(seconds=0), bounds=Bounds(retries=0)),
    )  # fmt: skip
    assert (found.verdict, [one.document.id for one in found.spared]) == (Verdict.SPARED, [truth])
    assert "it states what you call right" in found.remaining[0]
    assert documents_of(store) == clean
