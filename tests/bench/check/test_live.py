"""A running system is attacked with consent only, and everything is taken back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.check.rag_server import HANDBOOK, Rag, serve_rag
from unpoison.bench.check.live import SystemCheck
from unpoison.bench.check.planting import ATTACKS
from unpoison.bench.check.system import open_system
from unpoison.bench.redteam.cleanup import Remover
from unpoison.bench.redteam.http_hosts import Hosts
from unpoison.bench.redteam.secrets import Secrets
from unpoison.errors import InputError, TargetError


@pytest.fixture
def rag() -> Iterator[Rag]:
    with serve_rag() as system:
        yield system


def checked(rag: Rag, state: Path | None, *, plant: bool) -> SystemCheck:
    hosts, secrets = Hosts(), Secrets({})
    system = open_system(rag.url, hosts=hosts, secrets=secrets)
    options: dict[str, Any] = {"reader": False, "questions": 2}
    return SystemCheck.ask(system, plant=plant, hosts=hosts, secrets=secrets, state=state, **options)


def test_without_consent_it_is_only_asked(rag: Rag, tmp_path: Path) -> None:
    check = checked(rag, tmp_path, plant=False)
    check.run()
    result = check.result()
    assert rag.planted == []
    assert result.complete
    assert result.documents == 3
    assert {origin.name for origin in result.origins} == {"hr/", "it/"}
    assert result.system is not None
    assert result.system.planted is None
    assert "Nothing was planted in your system" in " ".join(result.open)
    assert "--plant" in " ".join(result.open)


def test_where_it_cannot_be_planted_into_the_next_command_is_named(rag: Rag, tmp_path: Path) -> None:
    assert rag.openapi is not None
    rag.openapi = {"openapi": "3.1.0", "paths": {"/ask": rag.openapi["paths"]["/ask"]}}
    check = checked(rag, tmp_path, plant=False)
    assert f"unpoison redteam init '{rag.url}'" in check.result().open[-1]
    with pytest.raises(InputError, match="--plant: nothing that adds and removes documents is known"):
        checked(rag, tmp_path, plant=True)


def test_every_attack_is_planted_judged_and_removed(rag: Rag, tmp_path: Path) -> None:
    check = checked(rag, tmp_path, plant=True)
    check.run()
    result = check.result()
    check.close()
    assert [text for text, _ in rag.documents.values()] == list(HANDBOOK.values())
    assert result.complete
    assert result.live
    assert {outcome.attack for outcome in result.outcomes} == set(ATTACKS)
    by_owner = {one.owner: one for one in result.outcomes if one.attack == "swap"}
    assert by_owner["one"].plain.hits == 2, "the system reads what is planted"
    assert by_owner["one"].guard.hits < by_owner["own"].guard.hits
    orders = {one.owner: one for one in result.outcomes if one.attack == "injection"}
    assert orders["one"].wrong_plain is not None
    assert orders["one"].wrong_plain.hits == 2, "it repeats the document that is most like the question"
    assert orders["one"].wrong_guard is None
    assert result.system is not None
    # The harmless one; of four attacks one text and three, and three copies; for two questions.
    assert result.system.planted == len(rag.planted) == 1 + 2 * (4 * (1 + 3) + 3)
    assert result.system.remaining == ()
    assert "your system as it is reads it for 2 of 2 and answers with it for" in result.headline
    journal = (tmp_path / "plants.journal").read_text()
    assert journal.count('"confirmed": true') >= len(rag.planted)


class Stop(KeyboardInterrupt):
    pass


def test_interrupted_it_takes_back_what_is_planted_and_goes_on(
    rag: Rag, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(done: int, total: int, step: str) -> None:
        if step == "correction, one":
            raise Stop

    first = checked(rag, tmp_path, plant=True)
    with pytest.raises(Stop):
        first.run(stop)
    partial = first.result()
    first.close()
    assert len(rag.documents) == 3
    assert [outcome.attack for outcome in partial.outcomes] == ["lie"] * 3 + ["swap"] * 3

    before = len(rag.asked)
    second = checked(rag, tmp_path, plant=True)
    assert len(rag.asked) == before + 1, "its documents are known; only how it is asked is seen anew"
    steps: list[str] = []
    second.run(lambda done, total, step: steps.append(step))
    assert "correction, one" in steps
    assert "swap, own" not in steps
    assert second.result().complete
    second.close()
    assert len(rag.documents) == 3


def test_what_a_killed_check_left_is_removed_before_anything_is_asked(
    rag: Rag, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def kill(*parts: object, **named: object) -> str:
        raise Killed

    check = checked(rag, tmp_path, plant=True)
    with monkeypatch.context() as patch:
        patch.setattr(Remover, "remove", kill)
        with pytest.raises(Killed):
            check.run()
    check.close()
    assert len(rag.documents) == 4
    again = checked(rag, tmp_path, plant=False)
    assert len(rag.documents) == 3
    assert again.result().documents == 3


def test_a_system_that_only_says_that_it_deletes_is_planted_into_once(rag: Rag, tmp_path: Path) -> None:
    rag.deaf = True
    check = checked(rag, tmp_path, plant=True)
    with pytest.raises(TargetError, match="could not be removed, so nothing else was planted"):
        check.run()
    assert len(rag.planted) == 1
    facts = check.result().system
    assert facts is not None
    assert len(facts.remaining) == 1
    check.close()


def test_planting_is_written_down_or_not_done(rag: Rag) -> None:
    with pytest.raises(InputError, match="give --state a folder"):
        checked(rag, None, plant=True)
    assert rag.planted == []
