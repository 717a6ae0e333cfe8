"""Where a guarantee is shown and asked for: answers, the pipeline, the command line, the service, adapters, pages."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unpoison import Rag, Vote
from unpoison.cli import app
from unpoison.core.answers import guarantee_sentence
from unpoison.defenses.vote import withhold_unproved
from unpoison.errors import OptionError
from unpoison.models import ScriptedGenerator
from unpoison.models.prompts import Prompt
from unpoison.retrieval import BM25Retriever

QUESTION = "where is the tower"
PARIS = [f"The tower is in Paris, says guide {i}." for i in range(5)]
LYON = ["The tower is in Lyon."]


def reads(prompt: Prompt) -> str:
    return "Lyon" if "Lyon" in prompt.passages[0] else "Paris"


def vote() -> Vote:
    return Vote(ScriptedGenerator(reads))


def test_json_has_number_sentence_and_rule() -> None:
    fields = vote().answer(QUESTION, PARIS + LYON).to_dict()
    assert (fields["guarantee"], fields["promise"]) == (1, guarantee_sentence(1, 6))
    assert fields["proof"] == "5 passages say so, each passage read alone: 5 votes against 1"


def test_an_answer_that_withstands_too_little_is_withheld() -> None:
    answer = vote().answer(QUESTION, PARIS + LYON)
    assert withhold_unproved(answer, 0) is withhold_unproved(answer, 1) is answer
    empty = withhold_unproved(answer, 2)
    assert (empty.abstained, empty.guarantee, empty.details["withheld"]) == (True, 0, "Paris")
    assert empty.calls == answer.calls
    assert empty.screening.evidence.notes[-1] == (
        "an answer was withheld: it has to withstand 2 planted passages, and 1 is proved"
    )
    note = withhold_unproved(answer, 9).screening.evidence.notes[-1]
    assert note.endswith("1 is proved; 6 passages withstand 2 at most, so retrieve 19 or more")
    unproved = withhold_unproved(replace(answer, guarantee=None), 1)
    assert (unproved.abstained, unproved.guarantee) == (True, None)


def test_rag_asks_for_it() -> None:
    index = BM25Retriever(PARIS + LYON)
    assert Rag(index, vote(), k=6).ask(QUESTION).guarantee == 1
    strict = Rag(index, vote(), k=6, guarantee=2)
    assert strict.ask(QUESTION).abstained
    assert asyncio.run(strict.aask(QUESTION)).abstained
    named = Rag(index, "vote", ScriptedGenerator(reads), k=6, guarantee=1)
    assert named.ask(QUESTION).text == "Paris"
    with pytest.raises(OptionError, match="grada has no proof"):
        Rag(index, "grada", guarantee=1)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("unpoison.cli.common.load_generator", lambda _: ScriptedGenerator(reads))
    file = tmp_path / "rows.jsonl"
    lines = [{"query": QUESTION, "passages": PARIS + LYON}, {"query": QUESTION, "passages": PARIS[:1] + LYON}]
    file.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    return str(file)


def test_the_command_line_abstains_below_it(rows: str) -> None:
    shown = CliRunner().invoke(app, ["ask", "-d", "vote", "-g", "openai:x", rows])
    assert guarantee_sentence(1, 6) in shown.output
    given = CliRunner().invoke(app, ["ask", "-d", "vote", "-g", "openai:x", "--guarantee", "1", "--json", rows])
    answers = [json.loads(line)["answer"] for line in given.output.splitlines() if line.startswith("{")]
    assert [(one["text"], one["guarantee"]) for one in answers] == [("Paris", 1), ("I don't know.", 0)]
    strict = CliRunner().invoke(app, ["ask", "-g", "openai:x", "--guarantee", "2", "--json", rows])
    first = json.loads(next(line for line in strict.output.splitlines() if line.startswith("{")))
    assert first["screening"]["defense"] == "guard", "a guarded vote is the default where a guarantee is asked for"
    assert first["answer"]["abstained"]
    refused = CliRunner().invoke(app, ["ask", "-d", "radar", "-g", "openai:x", "--guarantee", "1", rows])
    assert refused.exit_code == 2
    assert "no proof" in refused.output


@pytest.mark.needs("fastapi")
def test_the_service_tells_it_and_asks_for_it() -> None:
    from fastapi import testclient

    from unpoison.serve import create_app

    with testclient.TestClient(create_app({"vote": vote()})) as client:
        body = {"query": QUESTION, "passages": PARIS + LYON}
        answer = client.post("/v1/answer", json=body).json()["answer"]
        assert (answer["text"], answer["guarantee"], answer["promise"]) == ("Paris", 1, guarantee_sentence(1, 6))
        assert client.post("/v1/answer", json={**body, "guarantee": 2}).json()["answer"]["abstained"]
        assert client.post("/v1/answer", json={**body, "guarantee": -1}).status_code == 422
        assert client.get("/v1/defenses").json()["defenses"][0]["guarantees"] is True
        assert guarantee_sentence(1, 6) in client.post("/play/answer", json=body).text


def test_the_explanation_shows_it() -> None:
    assert guarantee_sentence(1, 6) in vote().screen(QUESTION, PARIS + LYON).explain()
