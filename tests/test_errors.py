"""What users get wrong, in Python and on the command line: the error names what was given, and is of ours."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from unpoison import Grada, Guard, Sources, TrustRag, UnpoisonError, load_defense
from unpoison.cli import app
from unpoison.core import registry
from unpoison.core.passages import Passage, Query
from unpoison.core.screenings import Screening
from unpoison.defenses.base import Defense
from unpoison.errors import ModelError, TargetError, UnknownNameError, clip
from unpoison.models import FakeEncoder
from unpoison.models.requests import Flow

TEXTS = ["The bridge was built in 1902.", "The bridge is 300 metres long."]

IN_PYTHON: list[tuple[Callable[[], Any], str]] = [
    (lambda: Guard("reader"), "got 'reader'"),  # type: ignore[call-arg]
    (lambda: Guard(genrator="reader"), "did you mean 'generator'"),  # type: ignore[call-arg]
    (lambda: Guard(damage=0.05, threshold=0.9), "not both"),
    (lambda: Passage("a", url=5), "url must be a string"),  # type: ignore[arg-type]
    (lambda: Guard(damage="low"), "got 'low'"),  # type: ignore[arg-type]
    (lambda: Guard(sources=["a.example"]), r"got \['a.example'\]"),  # type: ignore[arg-type]
    (lambda: Grada(encoder=5), "got 5"),  # type: ignore[arg-type]
    (lambda: Sources(["a.example"]), r"got \['a.example'\]"),  # type: ignore[arg-type]
    (lambda: load_defense(None), "got None"),  # type: ignore[arg-type]
    (lambda: Guard().screen("q", "one text"), "got 'one text'"),
    (lambda: Guard().screen(TEXTS, "q"), "query must be a string"),  # type: ignore[arg-type]
    (lambda: Guard().screen("q", set(TEXTS)), "write list"),
    (lambda: Grada(encoder=lambda texts: texts), "no function is"),  # type: ignore[arg-type,return-value]
    (lambda: Grada(encoder=FakeEncoder), "no class"),  # type: ignore[arg-type]
    (lambda: load_defense("json:JSONDecoder"), "MODULE:CLASS"),
    (lambda: load_defense("json:nothing"), "does not exist"),
]


@pytest.mark.parametrize(("tried", "said"), IN_PYTHON)
def test_a_mistake_in_python_is_named(tried: Callable[[], Any], said: str):
    with pytest.raises(UnpoisonError, match=said):
        tried()


@pytest.mark.needs("fastapi", "httpx")
def test_the_service_and_its_client_name_what_is_wrong():
    from unpoison.serve import Client, create_app

    with pytest.raises(UnpoisonError, match="got 'guard'"):
        create_app("guard")  # type: ignore[arg-type]
    with pytest.raises(UnpoisonError, match=r"http://127\.0\.0\.1:9"):
        Client("http://127.0.0.1:9").screen("q", TEXTS)


def test_texts_that_say_nothing_are_noted():
    assert "stage 1 alone" in TrustRag().screen("where", [*TEXTS, "A mill."]).notes[-1]
    assert not TrustRag(stages=1).screen("where", [*TEXTS, "A mill."]).notes
    assert Guard().screen(" ", ["", "x"]).evidence.notes == ("the question is empty", "passage 0 is empty")


@pytest.mark.needs("pandas")
def test_a_column_or_a_table_of_pandas_says_what_to_write():
    import pandas

    from unpoison.errors import InputError

    with pytest.raises(InputError, match=r"write passages\.tolist\(\)"):
        Guard().screen("q", pandas.Series(TEXTS))
    with pytest.raises(InputError, match=r'write passages\.to_dict\("records"\)'):
        Guard().screen("q", pandas.DataFrame({"text": TEXTS}))


def told(*line: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in line])
    return done.exit_code, done.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("screen --workers 0 rows.jsonl", "got '0'"),
        ("screen --calibrate=3 rows.jsonl", "got '3'"),
        ("serve --port 99999999", "got '99999999'"),
        ("mcp-proxy --url localhost:1", "got 'localhost:1'"),
        ("mcp-proxy --header X:1 -- python server.py", "--header is sent to --url"),
        ("redteam chek redteam.yaml", "did you mean 'check'?"),
        ("screen -d guard,threshold=0.5 rows.jsonl", "write guard:threshold=0.5"),
        ("redteam init 127.0.0.1:8000", "got '127.0.0.1:8000'"),
        ("scan chroma:x", "got 'chroma:x'"),
        ("incident --question q --answer a --passages rows.jsonl", "no row of 1 asks 'q'"),
        ("scren rows.jsonl", "'screen'"),
        ("screen nofile.jsonl", "nofile.jsonl: No such file"),
        ('ask "What is it?"', "'What is it?' is no file; write it with its passages into one"),
        ('screen "days of leave"', '{"question": "days of leave", "passages": ["...", "..."]}'),
        ("ask -g gpt-4o rows.jsonl", "no generator 'gpt-4o'"),
        ("evaluate --fail-if asrr>0.1", "did you mean 'asr'"),
        ("redteam run nofile.yaml", "'nofile.yaml' cannot be read"),
        ("check nodir", "nodir: No such file"),
        ("check emptydir", "holds no documents"),
        ("check cut", "none of 1 document was read"),
        ("check cut", "damaged, cut short, or no .pdf file"),
        ("screen docs.jsonl", "'unpoison check'"),
        ("screen null.jsonl", "question is null"),
        ("evaluate emptydir", "--questions 50"),
        ("evaluate docs.jsonl", "--questions 50 makes questions"),
        ("evaluate docs.jsonl", "and 3 more rows: "),
        ("evaluate --questions 5 notes.jsonl", "none of 9 documents was read"),
        ("evaluate nq_poisoned", "python -m benchmarks data get nq_poisoned"),
        ("incident --passages rows.jsonl --row 99", "no row of 1 is '99'"),
        ("redteam tab.yaml", "indent with spaces"),
        ("redteam colon.yaml", "a colon and a space"),
    ],
)
def test_a_mistake_on_the_command_line_is_named(line: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNPOISON_DATA", str(tmp_path / "none"))
    (tmp_path / "emptydir").mkdir()
    (tmp_path / "cut").mkdir()
    files = {
        "cut/a.pdf": "%PDF-1.4\nbroken",
        "docs.jsonl": "".join(f'{{"id": "{i}", "text": "One."}}\n' for i in range(8)),
        "notes.jsonl": '{"body": "One."}\n' * 9,
        "null.jsonl": '{"question": null, "passages": []}\n',
        "tab.yaml": "\ta: b",
        "colon.yaml": "a: b: c",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "rows.jsonl").write_text('{"query": "where", "passages": ["a b", "c d"]}\n')
    status, stderr = told(*shlex.split(line))
    assert status == 2
    assert said in stderr


class Fragile(Defense):
    """Has a bug that one row meets."""

    name = "fragile"

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        if query.text == "bad":
            raise IndexError("list index out of range")
        k = len(passages)
        return Screening.decided(self.name, query, passages, kept=range(k), scores=[1.0] * k, reasons=["fine"] * k)
        yield ()


@pytest.mark.parametrize("command", [["screen"], ["ask", "-g", "extractive"]])
def test_a_bug_fails_its_row_and_no_other(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(registry.BUILT_IN["defenses"], "fragile", f"{__name__}:Fragile")
    rows = [{"query": query, "passages": TEXTS} for query in ("good", "bad", "good")]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = CliRunner().invoke(app, [*command, "-d", "fragile", "--json", str(tmp_path / "rows.jsonl")])
    assert done.exit_code == 1
    first, second, third = map(json.loads, done.stdout.splitlines())
    assert "IndexError" in second["error"]
    assert "screening" in first
    assert "screening" in third


def test_ids_that_stand_twice_are_told(tmp_path: Path):
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps({"id": "a", "text": text}) + "\n" for text in TEXTS))
    assert re.search(r"by their names here: 'a#[0-9a-f]{8}' and \d", told("scan", path)[1])


def test_an_unknown_name_comes_with_the_nearest_and_no_more_names_than_can_be_read() -> None:
    many = [f"model {n:02}" for n in range(40)]
    near = str(UnknownNameError("model", "grda", ["grada", "radar"]))
    assert near == "no model is named 'grda'; did you mean 'grada' or 'radar'? known: grada, radar"
    assert str(UnknownNameError("model", "zzz", many[:3])).endswith("; known: model 00, model 01, model 02")
    assert str(UnknownNameError("model", "model 7", many)).endswith("? 40 are known")
    far = str(UnknownNameError("model", "zzz", many))
    assert far.endswith("model 22, model 23 and 16 more")
    assert str(UnknownNameError("defense", "mine", ["grada"])).endswith(
        "; name your own as MODULE:CLASS, my_module:MyClass"
    )


def test_what_is_shown_of_a_value_is_bounded():
    assert clip("x" * 58) == repr("x" * 58)
    assert clip("x" * 59) == f"'{'x' * 58}…"
    assert clip([1, 2], 4) == "[1,…"


def test_as_many_names_are_listed_as_help_and_no_more():
    names = [f"q{n:02}" for n in range(25)]
    assert str(UnknownNameError("limit", "zzz", names[:24])).endswith("q22, q23")
    assert str(UnknownNameError("limit", "zzz", names)).endswith("q23 and 1 more")
    near = ["guard", *names]
    assert str(UnknownNameError("limit", "gaurd", near[:12])) == (
        f"no limit is named 'gaurd'; did you mean 'guard'? known: guard, {', '.join(names[:11])}"
    )
    assert str(UnknownNameError("limit", "gaurd", near[:13])).endswith("did you mean 'guard'? 13 are known")
    own = "name your own as MODULE:CLASS"
    assert [own in str(UnknownNameError(kind, "zzz", names)) for kind in ("defense", "attack", "limit")] == [1, 1, 0]
    assert own not in str(UnknownNameError("defense", "gaurd", near))


def test_an_error_is_final_unless_it_says_otherwise():
    assert (ModelError("x").retryable, ModelError("x").retry_after) == (False, None)
    assert (TargetError("x").retryable, TargetError("x").refused) == (False, False)
    said = ModelError("x", retryable=True, retry_after=2.5)
    assert (said.retryable, said.retry_after, str(said)) == (True, 2.5, "x")
