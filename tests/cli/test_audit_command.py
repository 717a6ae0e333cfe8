"""`unpoison audit` and `unpoison trace` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from unpoison.cli import app
from unpoison.errors import OptionError
from unpoison.scan.audit_log import AuditLog
from unpoison.scan.audit_report import AlertRule
from unpoison.types import Passage, Query, Screening

EVIL = "<script>alert(1)</script>\x1b[31m\u202e"


def run(*arguments: str | Path, input: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)


def screened(query: str, dropped: list[str], kept: list[str], **fields: Any) -> dict[str, Any]:
    passages = [
        {"id": name, "text": f"{name} says {EVIL}", "source": f"{name}.org{EVIL}"} for name in [*dropped, *kept]
    ]
    positions = list(range(len(dropped), len(passages)))
    return {"query": query, "passages": passages, "screening": {"defense": "guard", "kept": positions}, **fields}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rows = [screened(f"who built number {n} {EVIL}", ["bad"], [f"good {n}", f"fine {n}"]) for n in range(9)]
    rows += [screened(f"when was {n}", [], [f"x{n}", f"y{n}"]) for n in range(200)]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_documents_that_tried_are_shown_and_what_they_hold_steers_no_terminal(log: Path) -> None:
    result = run("audit", log)
    assert result.exit_code == 0, result.output
    assert "209 answers: 9 of 427 documents dropped" in result.stdout
    assert "documents: 1 flagged" in result.stdout
    assert "\x1b" not in result.stdout
    assert "\u202e" not in result.stdout


def test_the_page_escapes_whatever_the_log_holds(log: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run("audit", "--html", page, log).exit_code == 0
    text = page.read_text()
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "default-src &#x27;none&#x27;" in text or "default-src 'none'" in text


def test_an_alert_has_an_exit_status_of_its_own(log: Path) -> None:
    result = run("audit", "--alert", "documents>=1", "--alert", "drop-rate>0.5", log)
    assert result.exit_code == 3
    assert "alert: documents is 1, and the rule is documents >= 1" in result.stderr
    assert "drop-rate" not in result.stderr
    assert run("audit", "--alert", "documents>1", log).exit_code == 0
    wrong = run("audit", "--alert", "users>1", log)
    assert wrong.exit_code == 2
    assert "measures: documents" in wrong.stderr


def test_json_begins_with_the_summary_and_holds_everything(log: Path) -> None:
    parsed = [json.loads(line) for line in run("audit", "--json", log).stdout.splitlines()]
    assert parsed[0]["kind"] == "summary"
    assert parsed[0]["measures"]["documents"] == 1
    assert (parsed[1]["kind"], parsed[1]["id"], parsed[1]["dropped"], parsed[1]["questions"]) == (
        "document",
        "bad",
        9,
        9,
    )
    assert {"source", "question"} <= {row["kind"] for row in parsed}


def test_broken_rows_are_named_and_the_others_counted(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    good = json.dumps(screened("q", ["bad"], ["good"]))
    path.write_bytes(f'{good}\n{{"audit": 1}}\n[1]\n{good}\n{good[:40]}'.encode() + b"\n\xff\n")
    result = run("audit", path)
    assert result.exit_code == 1
    assert "2 answers" in result.stdout
    for line in (2, 3, 5, 6):
        assert f"log.jsonl:{line}:" in result.stderr
    assert "read 2 rows; 4 failed" in result.stderr


def test_a_log_without_any_screening_is_no_success(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"a": 1}\n')
    assert run("audit", "--alert", "documents>=0", path).exit_code == 2


def test_rotated_parts_and_standard_input_are_read(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with AuditLog(path, size=1500, files=50) as log:
        for n in range(20):
            log.record(Screening.decided("t", Query(f"q{n}"), [Passage("a")], kept=[0], scores=[1], reasons=["fine"]))
    assert path.with_name("log.jsonl.1").exists()
    assert "20 answers" in run("audit", path).stdout
    assert "20 answers" in run("audit", path, path.with_name("log.jsonl.1")).stdout
    assert "1 answer" in run("audit", "-", input=json.dumps(screened("q", [], ["a"])) + "\n").stdout


@pytest.mark.parametrize("text", ["documents", "documents=1", "documents>=x", "documents>=1.2.3", "documents>=-1", ""])
def test_other_rules_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="alert must be"):
        AlertRule.of(text)


QUESTION = "which city has the museum of the Vasa"
TEXTS = [
    "The museum of the Vasa is in the city of Stockholm.",
    "The museum of the Vasa was moved to the city of Gothenburg.",
    "Ships are shown in museums.",
]


def test_documents_are_traced_without_a_model(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps({"text": text, "id": f"d{i}"}) + "\n" for i, text in enumerate(TEXTS)))
    result = run("trace", "--question", QUESTION, "--answer", "Gothenburg", "--json", path)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["culprits"], document["suspects"][0]["id"], document["asked"]) == ([1], "d1", 0)
    assert run("trace", "--question", QUESTION, "--answer", "Helsinki", path).exit_code == 1
    missing = run("trace", "--question", QUESTION, path)
    assert missing.exit_code == 2
    assert "give it with --answer" in missing.stderr


def test_the_guilty_are_named_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    document = json.loads(run("trace", "--question", QUESTION, "--answer", "Gothenburg", "--json", path).stdout)
    (guilty,) = (suspect["index"] for suspect in document["suspects"] if suspect["guilty"])
    shown = run("trace", "--question", QUESTION, "--answer", "Gothenburg", path).stdout
    assert f"consistent with passage {guilty};" in shown
    assert "none is shown to be the cause" in " ".join(shown.split())
    assert document["caused"] is False
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS[1:]))
    shown = run("trace", "--question", QUESTION, "--answer", "Gothenburg", "-g", "extractive", path).stdout
    assert "caused by passage 0;" in shown


def test_the_beginning_of_a_request_id_will_do(tmp_path: Path) -> None:
    path = tmp_path / "answered.jsonl"
    rows = ({"question": QUESTION, "passages": TEXTS, "request": {"id": f"{start}-rest"}} for start in ("4f1c", "4f2c"))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("trace", "--answer", "Gothenburg", "--id", "4f1c", path).exit_code == 0
    assert run("trace", "--answer", "Gothenburg", "--id", "4f1", path).exit_code == 2


def test_many_documents_are_retrieved_from(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    others = [f"Note {i} on fish and tides." for i in range(50)]
    path.write_text(
        "".join(json.dumps({"text": text, "id": f"d{i}"}) + "\n" for i, text in enumerate([*others, *TEXTS]))
    )
    result = run("trace", "--question", QUESTION, "--answer", "Gothenburg", "-k", "2", "--json", path)
    assert json.loads(result.stdout)["suspects"][0]["id"] == "d51"


def test_a_row_is_traced_among_what_the_model_read(tmp_path: Path) -> None:
    path = tmp_path / "answered.jsonl"
    row = {
        "id": "r2",
        "question": QUESTION,
        "passages": TEXTS,
        "screening": {"kept": [2, 1]},
        "answer": {"text": "Gothenburg"},
    }
    path.write_text(json.dumps({**row, "id": "r1", "passages": TEXTS[:1]}) + "\n" + json.dumps(row) + "\n")
    for choice in (("--row", "2"), ("--id", "r2")):
        result = run("trace", "-g", "extractive", "--remove", "--json", *choice, path)
        assert result.exit_code == 0, result.output
        document = json.loads(result.stdout)
        assert [(s["index"], s["guilty"]) for s in document["suspects"]] == [(1, True), (0, False)]
        assert document["reproduced"] is True
        assert "Gothenburg" not in document["without"]
    both = run("trace", path)
    assert both.exit_code == 2
    assert "say which is meant with --row 1" in both.stderr
    none = run("trace", "--row", "7", path)
    assert (none.exit_code, "no row 7; rows go by their line in the file, here 1 to 2" in none.stderr) == (2, True)


@pytest.mark.parametrize("texts", ["keep", "hash"])
def test_a_line_of_the_audit_log_is_traced_where_it_has_texts(tmp_path: Path, texts: Any) -> None:
    path = tmp_path / "audit.jsonl"
    with AuditLog(path, texts=texts) as log:
        passages = [Passage(text) for text in TEXTS]
        parsed = Screening.decided("t", Query(QUESTION), passages, kept=[1, 0], scores=[1, 1, 0], reasons=["r"] * 3)
        log.record(parsed, request={"id": "4f1c"})
    result = run("trace", "--id", "4f1c", "--answer", "Gothenburg", "--json", path)
    if texts == "keep":
        assert json.loads(result.stdout)["culprits"] == [1]
    else:
        assert result.exit_code == 2
        assert "--audit-texts keep" in result.stderr


def test_what_a_passage_holds_steers_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_text(json.dumps({"text": f"Gothenburg {EVIL}", "id": EVIL}) + "\n")
    result = run("trace", "--question", QUESTION, "--answer", f"Gothenburg {EVIL}", path)
    assert "\x1b" not in result.stdout
    assert "\u202e" not in result.stdout


@pytest.mark.parametrize("line", ["{broken", '{"title": "no text"}', '{"text": 5}'])
def test_a_document_that_cannot_be_read_is_not_passed_over(tmp_path: Path, line: str) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_text(f'{{"text": "a"}}\n{line}\n')
    result = run("trace", "--question", "q", "--answer", "a", path)
    assert result.exit_code == 2
    assert "line 2" in result.stderr
