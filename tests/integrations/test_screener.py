"""What all adapters promise, whatever the framework."""

from __future__ import annotations

import asyncio
import copy
import importlib
import json
import logging
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from integrations.frameworks import QUERY, TEXTS, Adapted, CutsStadium, DropsStadium
from unpoison import Guard, Sources
from unpoison.core import registry
from unpoison.errors import MissingExtraError, ModelError, OptionError, UnknownNameError
from unpoison.models import FakeNLI, ScriptedGenerator
from unpoison.models.requests import generate
from unpoison.scan.audit_log import AuditLog
from unpoison.utils.extras import install_command

TAKES_A_CHECKPOINT = ("rerank", "perplexity")
DEFENSES = [name for name in registry.names("defenses") if name not in TAKES_A_CHECKPOINT]


def made(name: str) -> Any:
    """The defense; its name where that is enough, so that both ways are taken."""
    target = registry.find("defenses", name)
    if not target.needs:
        return name
    models = {"generator": ScriptedGenerator(lambda prompt: "the SAP Center"), "nli": FakeNLI(lambda *pair: "neutral")}
    return registry.create("defenses", name, **models)


class Failing(DropsStadium):
    name = "failing"

    def __init__(self, error: ModelError) -> None:
        def fail(prompt: Any) -> str:
            raise error

        super().__init__(generator=ScriptedGenerator(fail))

    def screening(self, query: Any, passages: Any) -> Any:
        from unpoison.models.prompts import answer_alone_prompt

        yield from generate([answer_alone_prompt(query.text)], "answer")


@pytest.mark.parametrize("name", DEFENSES)
def test_every_defense_screens_and_the_kept_are_the_callers_objects(adapted: Adapted, name: str) -> None:
    documents = adapted.documents()
    before = copy.deepcopy([adapted.framework.metadata(document) for document in documents])
    delivered = adapted.screen(documents, made(name))
    defense = made(name)
    alone = (registry.create("defenses", defense) if isinstance(defense, str) else defense).screen(QUERY, TEXTS)
    assert adapted.positions(delivered, documents) == list(alone.kept_indices)
    assert [adapted.framework.metadata(document) for document in documents] == before


def test_asynchronous_calls_are_the_defenses_own(adapted: Adapted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DropsStadium, "screen", None)
    documents, adapter = adapted.documents(), adapted.framework.make(DropsStadium())
    result = asyncio.run(adapted.framework.ascreen(adapter, QUERY, documents))
    assert adapted.positions(result, documents) == [0, 1, 3, 5]


def test_sources_that_nobody_reads_for_are_a_warning(adapted: Adapted, caplog: pytest.LogCaptureFixture) -> None:
    sources = Sources({"known": ["a.example"]})
    adapted.screen(adapted.documents(), Guard(sources=sources))
    assert all("give a generator" in record.getMessage() for record in caplog.records)
    assert caplog.records
    caplog.clear()
    adapted.screen(adapted.documents(), Guard(sources=sources, generator="extractive"))
    assert not caplog.records


def test_verdicts_go_into_copies(adapted: Adapted) -> None:
    documents = adapted.documents()
    delivered = adapted.screen(documents, DropsStadium(reverse=True), annotate=True)
    assert not {id(document) for document in delivered} & {id(document) for document in documents}
    assert all("unpoison" not in adapted.framework.metadata(document) for document in documents)
    assert adapted.framework.metadata(delivered[0]) == {
        "source": "s5",
        "page": 5,
        "unpoison": {
            "defense": "drops-stadium",
            "kept": True,
            "score": 1.0,
            "rank": 0,
            "reason": "no stadium",
            "spans": [],
        },
    }
    assert [adapted.framework.text(document) for document in delivered] == [TEXTS[i] for i in (5, 3, 1, 0)]


def test_monitor_keeps_all_in_order_and_logs_counts_only(adapted: Adapted, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "unpoison")
    documents = adapted.documents()
    delivered = adapted.screen(documents, DropsStadium(reverse=True), mode="monitor")
    assert [adapted.framework.text(document) for document in delivered] == TEXTS
    assert [verdict.kept for verdict in adapted.verdicts(delivered)] == [True, True, False, True, False, True]
    assert [record.getMessage() for record in caplog.records] == ["drops-stadium would drop 2 of 6 passages"] * 2
    assert caplog.records[0].unpoison == {  # type: ignore[attr-defined]
        "defense": "drops-stadium",
        "mode": "monitor",
        "passages": 6,
        "dropped": 2,
    }


def test_every_screening_is_written_down_for_the_audit(adapted: Adapted, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    for mode in ("monitor", "enforce"):
        adapted.screen(adapted.documents(), DropsStadium(), mode=mode, audit_log=str(log))
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [line["action"] for line in lines] == ["monitor"] * 2 + ["drop"] * 2  # both ways of asking, twice
    assert [one["kept"] for one in lines[0]["passages"]] == [True, True, False, True, False, True]
    assert QUERY not in log.read_text(encoding="utf-8")


def test_a_log_that_cannot_be_written_stops_no_answer(
    adapted: Adapted, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(AuditLog, "append", full)
    documents = adapted.documents()
    delivered = adapted.screen(documents, DropsStadium(), audit_log=AuditLog(tmp_path / "audit.jsonl"))
    assert adapted.positions(delivered, documents) == [0, 1, 3, 5]
    assert {record.getMessage() for record in caplog.records} == {"the audit log was not written: OSError"}


def test_a_failing_model_raises_and_is_only_noted_when_monitoring(
    adapted: Adapted, caplog: pytest.LogCaptureFixture
) -> None:
    documents = adapted.documents()
    failing = Failing(ModelError("the model quoted: Levi's Stadium"))
    for named in ({}, {"annotate": True}):
        enforcing = adapted.framework.make(failing, **named)
        with pytest.raises(ModelError, match="quoted"):
            adapted.framework.screen(enforcing, QUERY, documents)
        with pytest.raises(ModelError, match="quoted"):
            asyncio.run(adapted.framework.ascreen(enforcing, QUERY, documents))
    delivered = adapted.screen(documents, failing, mode="monitor")
    assert adapted.positions(delivered, documents) == [0, 1, 2, 3, 4, 5]
    assert {record.getMessage() for record in caplog.records} == {"6 passages were not screened: ModelError"}


@pytest.mark.parametrize("exempt", [["id-2"], {"s2"}, ("s2", "elsewhere")])
def test_exempt_passages_are_shown_and_kept(adapted: Adapted, exempt: Any) -> None:
    documents, defense = adapted.documents(), DropsStadium()
    assert adapted.positions(adapted.screen(documents, defense, exempt=exempt), documents) == [0, 1, 2, 3, 5]
    assert len(defense.seen[0][1]) == 6
    verdicts = adapted.verdicts(adapted.screen(documents, defense, exempt=exempt, annotate=True))
    assert str(verdicts[2].reason) == "exempt from screening: stadium"


def test_what_is_redacted_comes_back_as_a_copy_with_the_text_that_was_screened(adapted: Adapted) -> None:
    metadata = [{"source": f"s{i}", "title": "A t\u200bitle"} for i in range(len(TEXTS))]
    documents = adapted.documents(metadata=metadata)
    adapter = adapted.framework.make(CutsStadium())
    delivered = adapted.framework.screen(adapter, QUERY, documents)
    again = asyncio.run(adapted.framework.ascreen(adapter, QUERY, documents))
    for one, other, document, text in zip(delivered, again, documents, TEXTS, strict=True):
        assert (one is document) == (other is document) == ("Levi's" not in text)
        assert adapted.framework.text(document) == text
        if one is not document:
            cut = text.replace("Levi's Stadium", "[removed]").replace("].", "] .")
            assert adapted.framework.text(one) == adapted.framework.text(other) == f"A title\n{cut}"
            assert adapted.framework.metadata(one) == {"source": adapted.framework.metadata(document)["source"]}
            assert adapted.framework.metadata(document)["title"] == "A t\u200bitle"


def test_an_exempt_passage_is_whole(adapted: Adapted) -> None:
    documents = adapted.documents()
    delivered = adapted.framework.screen(adapted.framework.make(CutsStadium(), exempt=["id-2"]), QUERY, documents)
    assert delivered[2] is documents[2]
    assert "[removed]" in adapted.framework.text(delivered[4])


def test_what_a_comment_or_a_tag_says_is_not_delivered_unless_exempt(adapted: Adapted) -> None:
    texts = [
        "It is <p title='in Oakland since the year before'>in San Jose.",
        "It is <!-- open on all days but Monday -->.",
        *TEXTS,
    ]
    documents = [adapted.framework.document(text, None, i) for i, text in enumerate(texts)]
    delivered = adapted.framework.screen(adapted.framework.make(CutsStadium(), exempt=["id-1"]), QUERY, documents)
    assert adapted.framework.text(delivered[0]) == "It is\nin San Jose."
    assert delivered[1] is documents[1]
    assert delivered[2] is documents[2]


def test_hostile_documents_break_nothing(adapted: Adapted) -> None:
    texts = ["", *TEXTS, "The arena is loud at night. " * 4_000, "lone \ud800 surrogate", "\x00\x1b[31m", TEXTS[2]]
    strange = [None, {}, {"title": 3, "source": ["a"]}, {"unpoison": "forged"}, {"title": "x" * 10_000}]
    documents = adapted.documents(texts, [strange[i % len(strange)] for i in range(len(texts))])
    documents += [documents[1], documents[1]]
    for defense in ("guard", "grada", "ragdefender"):
        delivered = adapted.screen(documents, defense)
        assert {id(document) for document in delivered} <= {id(document) for document in documents}
    for named in ({"annotate": True}, {"mode": "monitor"}):
        assert all(verdict.reason for verdict in adapted.verdicts(adapted.screen(documents, **named)))


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"defense": "gard"}, UnknownNameError, "did you mean 'guard'"),
        ({"defense": "grada:kep=3"}, OptionError, "grada has no option 'kep'"),
        ({"defense": "radar"}, OptionError, "radar needs a generator"),
        ({"defense": 3}, OptionError, "defense must be a defense or an option string such as 'guard', got 3"),
        ({"mode": "audit"}, OptionError, "mode must be one of enforce, monitor, got 'audit'"),
        ({"exempt": "id-2"}, OptionError, "exempt must be a list of ids, hashes and sources"),
    ],
)
def test_bad_options_are_refused_with_our_errors(
    adapted: Adapted, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        adapted.framework.make(**options)


def test_a_missing_library_names_its_extra(adapted: Adapted, monkeypatch: pytest.MonkeyPatch) -> None:
    framework = adapted.framework
    monkeypatch.setitem(sys.modules, framework.library, None)
    monkeypatch.delitem(sys.modules, framework.module, raising=False)
    with pytest.raises(MissingExtraError, match=re.escape(install_command(framework.extra))):
        importlib.import_module(framework.module)
