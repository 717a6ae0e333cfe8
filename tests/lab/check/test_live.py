"""A check of a running system: asked only, or planted into; interrupted, killed, and lied to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.check.rag_server import Rag, serve_rag
from lab.redteam.conftest import Quick
from unpoison.check.check import CheckResult
from unpoison.errors import InputError, TargetError
from unpoison_lab.check.live import check_system
from unpoison_lab.redteam.http_target import HttpTarget


@pytest.fixture
def rag() -> Iterator[Rag]:
    with serve_rag() as running:
        yield running


def checked(where: str, folder: Path, **options: Any) -> CheckResult:
    given = {"questions": 1, "reader": False, "clock": Quick(), **options}
    return check_system(where, journal=folder / "check.journal", **given)


def test_without_consent_it_is_only_asked(rag: Rag, tmp_path: Path) -> None:
    result = checked(rag.url, tmp_path)
    assert (result.documents, rag.planted, result.live is not None) == (3, [], True)
    assert len(result.outcomes) == 15
    assert list(tmp_path.iterdir()) == []


def test_every_attack_is_planted_judged_and_removed(rag: Rag, tmp_path: Path) -> None:
    result = checked(rag.url, tmp_path, plant=True)
    assert result.live is not None
    assert (result.live.planted, result.live.problems) == (len(rag.planted), ())
    assert set(rag.documents) == {"first-0", "first-1", "first-2"}
    assert len(rag.planted) == 1 + 4 * (1 + 3) + 3  # a harmless one; of each attack one text and three; three copies
    outcomes = {(one.attack, one.owner): one for one in result.outcomes}
    assert outcomes["injection", "one"].plain.hits == 1
    assert all(one.answered_plain is not None for one in result.outcomes)
    assert list(tmp_path.iterdir()) == []


def test_a_killed_check_leaves_nothing_when_it_is_started_again(
    rag: Rag, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = HttpTarget.remove, []

    def killed(target: HttpTarget, handles: Any) -> Any:
        calls.append(handles)
        if len(calls) > 3:
            raise MemoryError("as if the process were gone")
        return real(target, handles)

    monkeypatch.setattr(HttpTarget, "remove", killed)
    with pytest.raises(TargetError, match="could not be removed"):
        checked(rag.url, tmp_path, plant=True)
    assert len(rag.documents) > 3
    monkeypatch.setattr(HttpTarget, "remove", real)
    result = checked(rag.url, tmp_path, plant=True)
    assert (result.documents, len(rag.documents)) == (3, 3)
    assert not any("unpoison" in text for text, _ in rag.documents.values())


def test_interrupted_it_takes_back_what_is_planted(rag: Rag, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = HttpTarget.ask

    def interrupted(target: HttpTarget, question: str) -> Any:
        if len(rag.planted) > 3:
            raise KeyboardInterrupt
        return real(target, question)

    monkeypatch.setattr(HttpTarget, "ask", interrupted)
    with pytest.raises(KeyboardInterrupt):
        checked(rag.url, tmp_path, plant=True)
    assert len(rag.documents) == 3


def test_where_it_cannot_be_planted_into_the_next_command_is_named(rag: Rag, tmp_path: Path) -> None:
    rag.openapi = None
    with pytest.raises(InputError, match="unpoison redteam init"):
        checked(f"{rag.url}/ask", tmp_path, plant=True)
    rag.shows = False
    with pytest.raises(InputError, match="shows no passages"):
        checked(f"{rag.url}/ask", tmp_path)


def test_a_target_file(rag: Rag, tmp_path: Path) -> None:
    ask = {"url": f"{rag.url}/chat", "body": {"query": "{question}"}, "answer": "$.answer", "passages": "$.sources[*]"}
    (tmp_path / "t.yaml").write_text(json.dumps({"target": {"ask": ask}}))
    assert checked(str(tmp_path / "t.yaml"), tmp_path).documents == 3
