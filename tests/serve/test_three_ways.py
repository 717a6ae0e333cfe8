"""An endpoint that refuses every seventh call: `evaluate`, the service and Python end with equal answers and calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from servers import serving as model_server
from servers import statistics
from service_doubles import Serving
from unpoison.bench.evaluation.poisoning import Staged
from unpoison.bench.evaluation.runs import open_run
from unpoison.cli import app
from unpoison.defenses.base import Defense
from unpoison.defenses.radar import Radar
from unpoison.defenses.trustrag import TrustRag
from unpoison.types import Call, Passage, Verdict

pytestmark = pytest.mark.needs("openai")

CLASSES = {"trustrag": TrustRag, "radar": Radar}
Ended = dict[tuple[str, int, str], tuple[str | None, tuple[int, ...], int]]
"""(defense, poisons, question) -> the answer, the kept positions and the successful calls."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with model_server() as address:
        yield address


def successful(url: str, way: str) -> int:
    """The calls that the endpoint replied to; every seventh was refused, so there was more than one."""
    calls: int = statistics(url)["calls"][f"seventh/{way}"]
    assert calls >= 14
    return calls - calls // 7


def defenses(url: str, way: str) -> dict[str, Defense]:
    generator = f"openai:seventh/{way},base_url={url}/v1"
    return {name: cls(generator=generator) for name, cls in CLASSES.items()}


def asked(calls: Sequence[Call]) -> int:
    return sum(call.items for call in calls if call.kind == "generate")


def kept_of(verdicts: Sequence[Verdict]) -> tuple[int, ...]:
    return tuple(verdict.index for verdict in verdicts if verdict.kept)


def row(passage: Passage) -> dict[str, object]:
    return {"text": passage.text, "title": passage.title, "source": passage.source, "score": passage.score}


def by_evaluate(url: str, folder: Path) -> tuple[Ended, dict[tuple[str, int, str], Staged], int]:
    """What the run recorded, what each defense was shown, and the calls of the whole run."""
    model = f"openai:seventh/evaluate,base_url={url}/v1"
    options = ["-a", "published", "--poisons", "2", "--limit", "1", "--folder", str(folder)]
    done = CliRunner().invoke(app, ["evaluate", "-d", "trustrag,radar", "-g", model, *options, "sample"])
    assert done.exit_code == 0, done.output
    run, ended, shown, calls = open_run(folder), Ended(), {}, 0
    for cell in run.cells:
        for record in cell.records:
            assert not record.failed, record.error
            calls += record.calls or 0
            if (name := cell.scenario.defense) in CLASSES:
                key = name, cell.scenario.poisons, record.example
                shown[key] = run.read_contexts(cell)[record.example]
                ended[key] = record.answer, kept_of(record.verdicts), record.calls or 0
    return ended, shown, calls


def test_three_ways_to_a_faltering_endpoint_end_alike(url: str, tmp_path: Path, serving: Serving) -> None:
    """What was refused is asked again, and counted apart from what was answered."""
    expected, shown, calls = by_evaluate(url, tmp_path / "run")
    assert len(expected) == 4
    assert successful(url, "evaluate") <= calls, "a run remembers replies, and asks for none twice"
    python, service, retried = Ended(), Ended(), 0
    own, client = defenses(url, "python"), serving(defenses(url, "service"))
    for (name, poisons, example), staged in shown.items():
        question, passages = staged.context.query, staged.context.passages
        answer = own[name].answer(question, passages)
        key = name, poisons, example
        python[key] = answer.text, kept_of(answer.screening.verdicts), asked(answer.calls)
        retried += sum(call.attempts - 1 for call in answer.calls)
        sent = {"query": question, "passages": [row(passage) for passage in passages], "defense": name}
        reply = client.post("/v1/answer", json=sent)
        assert reply.status_code == 200, reply.text
        body = reply.json()
        made = [Call(**call) for call in body["answer"]["calls"]]
        service[key] = body["answer"]["text"], tuple(sorted(body["screening"]["kept"])), asked(made)
    assert python == expected
    assert service == expected
    assert sum(count for *_, count in expected.values()) == successful(url, "python") == successful(url, "service")
    assert retried == statistics(url)["calls"]["seventh/python"] // 7
