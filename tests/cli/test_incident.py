"""`unpoison incident`, from rows, documents and logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scan.test_incident import QUESTION as CITY
from scan.test_incident import TEXTS
from unpoison.cli.incident import Case, _case, _is, _read_case
from unpoison.core.passages import Passage, Query
from unpoison.core.screenings import Screening
from unpoison.errors import InputError
from unpoison.scan.audit_log import AuditLog

EVIL = "<script>alert(1)</script>\x1b[31m\u202e"


def test_what_is_missing_is_said_before_anything_is_asked(run: Any, tmp_path: Path) -> None:
    empty = tmp_path / "rows.jsonl"
    empty.write_text(json.dumps({"question": "q", "answer": "a"}) + "\n")
    for arguments, problem in (
        ([], "give --passages, the passages that were read"),
        (["--passages", empty, "--row", "1"], "shows no passages"),
        (["--passages", empty, "--row", "2"], "no row of 1 is '2'"),
    ):
        result = run("incident", *arguments)
        assert result.exit_code == 2
        assert problem in result.stderr


def test_the_screen_and_the_exit_status(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "complaints.jsonl"
    path.write_text(json.dumps({"question": CITY, "passages": TEXTS[::2] + TEXTS[1:2], "answer": "Gothenburg"}))
    shown = run("incident", "--passages", path, "-g", "extractive")
    assert shown.exit_code == 0, shown.stderr
    assert "Without these documents the wrong answer disappears." in shown.stdout
    assert (
        "answer without them: The museum of the Vasa is in the city of Stockholm." in shown.stdout
        and "asked" in shown.stderr
    )
    shown = run("incident", "--passages", path, "--answer", "Oslo", "-g", "extractive")
    assert shown.exit_code == 1 and "does not give this answer" in shown.stdout
    assert "its answer: The museum" in shown.stdout


def test_documents_and_rows_are_ranked_without_a_system(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    others = [f"Note {i} on fish and tides." for i in range(50)]
    rows = [{"text": text, "id": f"d{i}"} for i, text in enumerate([*others, *TEXTS])]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ["--passages", path, "--question", CITY]
    assert json.loads(run("incident", *asked, "--answer", "Gothenburg", "--json").stdout)["guilty"] == ["d52"]
    assert run("incident", *asked, "--answer", "Helsinki").exit_code == 1
    answered = {"question": CITY, "passages": TEXTS, "answer": {"text": "Gothenburg"}}
    path.write_text(
        json.dumps({**answered, "id": "r1", "passages": TEXTS[:1]})
        + "\n"
        + json.dumps({**answered, "id": "r2", "screening": {"kept": [0, 2]}})
        + "\n"
    )
    for choice in ("2", "r2"):
        result = run("incident", "--passages", path, "--row", choice, "-g", "extractive", "--json")
        assert json.loads(result.stdout)["verdict"] == "proven", result.output
    both = run("incident", "--passages", path)
    assert (both.exit_code, "select one: --row 1" in both.stderr) == (2, True)
    path.write_text('{"text": "a"}\n{broken\n')
    assert "line 2" in run("incident", *asked, "--answer", "a").stderr


@pytest.mark.parametrize("texts", ["keep", "hash"])
def test_a_line_of_the_audit_log_will_do_where_it_has_texts(run: Any, tmp_path: Path, texts: Any) -> None:
    path = tmp_path / "audit.jsonl"
    with AuditLog(path, texts=texts) as log:
        passages = [Passage(text, id=f"d{i}") for i, text in enumerate([*TEXTS, f"Gothenburg {EVIL}"])]
        log.record(
            Screening.decided("t", Query(CITY), passages, kept=[2, 0, 3], scores=[1, 1, 1, 1], reasons=["r"] * 4),
            request={"id": "4f1c-rest"},
        )
    result = run("incident", "--passages", path, "--row", "4f1c", "--question", CITY, "--answer", "Gothenburg")
    assert result.exit_code == (0 if texts == "keep" else 2), result.output
    assert "d2" in result.stdout if texts == "keep" else "texts=" in result.stderr
    assert "\x1b" not in result.stdout and "\u202e" not in result.stdout


@pytest.mark.parametrize(
    ("fields", "case"),
    [
        ({"Question ": "q", "ANSWER": " a "}, Case("q", "a", (), ())),
        ({"query": "", "question": "q", "reply": {"text": "a"}}, Case("q", "a", (), ())),
        ({"user_input": "q", "response": ["a", 7]}, Case("q", "a | 7", (), ())),
        ({"query": "q", "answer": {"no": 1}}, Case("q", None, (), ())),
        ({"query": "q", "right": " x ", "expected": ["y"]}, Case("q", None, ("x",), ())),
        ({"query": "q", "correct_answers": [], "expected": ["y", " ", 3]}, Case("q", None, ("y", "3"), ())),
        ({"query": 5, "answer": 0}, Case("5", "0", (), ())),
        ({"query": True, "answer": None}, Case("True", None, (), ())),
    ],
)
def test_a_row_is_read_by_the_names_that_others_use(fields: dict[str, Any], case: Case) -> None:
    assert _case(fields) == case


@pytest.mark.parametrize(
    ("kept", "read"),
    [(None, ["a", "b", "c"]), ([2, 0], ["c", "a"]), ([0, 3, -1, "1", 1], ["a", "b"]), ([], []), ("2", ["a", "b", "c"])],
)
def test_the_passages_are_those_that_the_model_read_in_its_order(kept: Any, read: list[str]) -> None:
    fields = {"query": "q", "passages": ["a", "b", "c"], "screening": {"kept": kept}}
    assert [passage.text for passage in _case(fields).passages] == read
    assert len(_case({**fields, "screening": "lost"}).passages) == 3


def test_a_log_gives_the_passages_that_were_kept() -> None:
    given = [{"text": "a"}, {"text": "b", "kept": False}, {"text": "c", "kept": True}, {"hash": "x", "kept": False}]
    assert [passage.text for passage in _case({"audit": 1, "query": "q", "passages": given}).passages] == ["a", "c"]
    with pytest.raises(InputError, match="the log has no texts"):
        _case({"audit": 1, "query": "q", "passages": [*given, {"hash": "y"}]})


@pytest.mark.parametrize(
    ("fields", "name", "same"),
    [
        ({"id": 7}, "7", True),
        ({"id": "r1"}, "r", False),
        ({"request": {"id": "4f1c-rest"}}, "4f1c-rest", True),
        ({"request": {"id": "4f1c-rest"}}, "4f1c", True),
        ({"request": {"id": "4f1c-rest"}}, "4f1", False),  # three letters may begin many
        ({"request": "4f1c"}, "4f1c", False),
    ],
)
def test_a_row_is_named_by_its_id_or_the_beginning_of_its_requests(fields: Any, name: str, same: bool) -> None:
    assert _is(fields, name) is same


def written(path: Path, *lines: Any) -> str:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return str(path)


def test_a_row_is_found_by_line_id_or_question_and_a_broken_one_is_said(tmp_path: Path) -> None:
    rows = [{"id": str(4 - i), "question": f"q{i}", "passages": []} for i in range(1, 4)]
    file = written(tmp_path / "rows.jsonl", *rows, "{broken")
    assert _read_case(file, question="q2").question == "q2"
    with pytest.raises(InputError, match="lines 1 and 3 both match; select one: --row 1"):
        _read_case(file, row="3")  # a line, and the id of another
    with pytest.raises(InputError, match="line 4: no usable JSON"):
        _read_case(file, row="4")
    with pytest.raises(InputError, match="no row of 4 asks 'q9'"):
        _read_case(file, question="q9")
    with pytest.raises(InputError, match="no row of 4 is '\u0663'"):
        _read_case(file, row="\u0663")
    with pytest.raises(InputError, match="has no rows"):
        _read_case(written(tmp_path / "empty.jsonl", ""))


def test_of_many_documents_those_near_the_question_may_have_been_read(tmp_path: Path) -> None:
    documents = [{"text": f"Note {i} on fish."} for i in range(30)]
    documents[17:17] = [{"text": f"The museum of the Vasa, page {i}."} for i in range(9)]
    file = written(tmp_path / "documents.jsonl", *documents)
    near = _read_case(file, question="where is the museum of the Vasa", k=1).passages
    assert len(near) == 5
    assert {passage.id for passage in near} <= {str(i) for i in range(17, 26)}
    assert len(_read_case(file).passages) == 39
    assert len(_read_case(file, question="museum", k=39).passages) == 39
    with pytest.raises(InputError, match="line 2: a document needs a text"):
        _read_case(written(tmp_path / "some.jsonl", {"text": "a"}, {"title": "b"}))


def test_a_budget_that_is_used_up_is_said(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "complaints.jsonl"
    path.write_text(json.dumps({"question": CITY, "passages": TEXTS[::2] + TEXTS[1:2], "answer": "Gothenburg"}))
    shown = run("incident", "--passages", path, "-g", "extractive", "--budget", 1)
    assert shown.exit_code == 1
    assert "The budget was exhausted before anything was proven." in shown.stdout
    assert "the budget of 1 questions is exhausted; raise --budget" in shown.stdout
    assert "asked 1 question" in shown.stderr
