"""Where a wrong answer comes from: options, a log, a table of complaints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unpoison.bench.incident import Case, case_of_log
from unpoison.bench.redteam.targets import Answered
from unpoison.errors import InputError


def test_a_row_of_an_audit_log_by_its_request(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    row = {
        "audit": 1, "time": "2026-03-01", "query": "who", "answer": {"text": "Gustav", "abstained": False},
        "request": {"id": "4f1c22", "client": "10.0.0.7"},
        "passages": [
            {"id": "a", "kept": True, "text": "Gustav did."},
            {"id": "b", "kept": False, "text": "dropped"},
        ],
    }  # fmt: skip
    log.with_name("audit.jsonl.1").write_text(json.dumps(row) + "\n")
    log.write_text(json.dumps({**row, "request": {"id": "9999"}}) + "\n")
    case = case_of_log(str(log), "4f1c", right=("Henrik",))
    assert (case.question, case.answer, case.right) == ("who", "Gustav", ("Henrik",))
    assert (case.time, case.person, case.source) == ("2026-03-01", "10.0.0.7", f"row 1 of {log}")
    assert case.read == Answered("", ("Gustav did.",), ("a",))


def test_a_complaint_in_a_table(tmp_path: Path) -> None:
    table = tmp_path / "complaints.csv"
    table.write_text("Question,answer,right,user,time\nwho built it,Gustav,Henrik,Ann,2026-03-02\nwhen,1606,,,\n")
    case = case_of_log(str(table), "2")
    assert (case.question, case.answer, case.right, case.person) == ("who built it", "Gustav", ("Henrik",), "Ann")
    assert case_of_log(str(table), "3").to_dict() == {
        "question": "when", "answer": "1606", "right": [], "time": "", "person": "", "source": f"row 3 of {table}",
    }  # fmt: skip
    with pytest.raises(InputError, match=r"no row 1; rows go by their line in the file, here 2 to 3"):
        case_of_log(str(table), "1")  # the line of the names
    with pytest.raises(InputError, match=r"no row fits; look at its id, or leave it out where there is one row"):
        case_of_log(str(table), "4f1c")
    with pytest.raises(InputError, match="both fit; say which is meant with --row"):
        case_of_log(str(table), None)


def test_what_is_missing_is_asked_for(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    log.write_text('{"audit": 1, "query_hash": "x", "answer": {"hash": "y"}, "passages": []}\n')
    with pytest.raises(InputError, match=r"does not say the question .* give it with --question"):
        case_of_log(str(log), None)
    assert case_of_log(str(log), None, question="who", answer="Gustav").answer == "Gustav"
    with pytest.raises(InputError, match="does not say the answer"):
        Case("who", " ")
