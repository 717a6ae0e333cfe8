"""`unpoison ask --stream` with each store."""

from __future__ import annotations

import json

import pytest

from beliefs.conftest import postgres_server, redis_server, spec  # noqa: F401  fixtures
from cli.conftest import lines
from unpoison.beliefs import belief_key, open_beliefs

QUESTION = "Who is the mayor of Tarnford?"


def step(time, name, count=3):
    statements = [
        f"{name} is the mayor of Tarnford.",
        f"The mayor of Tarnford, {name}, spoke.",
        f"Mayor {name} of Tarnford.",
    ]
    return {"question": QUESTION, "time": time, "passages": statements[:count]}


@pytest.fixture
def stream_file(tmp_path):
    def stream_file(*steps):
        path = tmp_path / "stream.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in steps))
        return path

    return stream_file


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_the_sample_with_each_store(run, spec, kind):  # noqa: F811
    where = spec(kind)
    options = ("-d", "radar", "-g", "extractive", "--stream", "--json", "--beliefs", where)
    result = run("ask", *options, "--limit", 12, "timeline")
    assert result.exit_code == 0, result.stderr
    text_lines = lines(result.stdout)
    assert [row["time"] for row in text_lines] == ["2021", "2022", "2023", "2024"] * 3
    assert [row["answer"]["belief"]["previous"] is None for row in text_lines] == [True, False, False, False] * 3
    assert all(row["answer"]["belief"]["saved"] for row in text_lines)
    if kind != "memory":
        store = open_beliefs(where)
        assert store.get(belief_key(QUESTION)).answer == text_lines[3]["answer"]["belief"]["now"]["answer"]
        store.close()


def test_a_row_per_step_follows_a_change(run, stream_file):
    path = stream_file(step("2021-05", "Ada Quill"), step("2022-05", "Ada Quill"), step("2023-05", "Bo Stone"))
    result = run("ask", "-d", "radar", "-g", "extractive", "--stream", "--json", path)
    beliefs = [row["answer"]["belief"] for row in lines(result.stdout)]
    assert [belief["kept"] for belief in beliefs] == [None, True, False]
    assert "Bo Stone" in beliefs[2]["now"]["answer"]
    shown = run("ask", "-d", "radar", "-g", "extractive", "--stream", path).stdout
    assert "memory: no belief was stored" in shown
    assert "memory: gave up" in shown


def test_steps_out_of_order_or_without_a_time_are_reported(run, stream_file):
    path = stream_file(step("2022", "Ada Quill"), step("2021", "Ada Quill"), {"question": "q", "passages": []})
    result = run("ask", "-d", "radar", "-g", "extractive", "--stream", "--json", path)
    assert result.exit_code == 1
    assert "time '2021' lies before '2022'" in lines(result.stdout)[1]["error"]
    assert "time is missing" in lines(result.stdout)[2]["error"]


@pytest.mark.parametrize(
    "earlier_later", ["9 10", "2022 2022-05", "Mon,_2_Mar_2026_10:00:00_+0100 2026-03-02T09:30:00Z"]
)
def test_times_are_compared_as_times(run, stream_file, earlier_later):
    earlier, later = earlier_later.replace("_", " ").rsplit(" ", 1)
    told = run("ask", "-d", "radar", "-g", "extractive", "--stream", stream_file(step(earlier, "A"), step(later, "A")))
    assert told.exit_code == 0, told.stderr
    back = run("ask", "-d", "radar", "-g", "extractive", "--stream", stream_file(step(later, "A"), step(earlier, "A")))
    assert back.exit_code == 1 and "lies before" in back.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("-d", "radar", "--stream", "--rows", "2"), "leave out --rows"),
        (("-d", "simple", "--beliefs", "memory"), "simple takes no --beliefs"),
        (("-d", "radar", "--beliefs", "mysql://x"), "no belief store"),
        pytest.param(
            ("-d", "radar", "--beliefs", "redis://127.0.0.1:9"), "cannot be reached", marks=pytest.mark.needs("redis")
        ),
    ],
)
def test_what_does_not_go_together(run, rows_file, options, says):
    result = run("ask", "-g", "extractive", *options, rows_file)
    assert result.exit_code == 2
    assert says in result.stderr


def test_without_a_stream_beliefs_are_used_where_named(run, tmp_path):
    where = f"sqlite:{tmp_path / 'b.db'}"
    for name, previous in (("Ada Quill", None), ("Ada Quill", "Ada Quill is the mayor of Tarnford.")):
        given = json.dumps(step("2021", name))
        result = run("ask", "-d", "radar", "-g", "extractive", "--beliefs", where, "--json", "-", given=given)
        assert lines(result.stdout)[0]["answer"]["belief"]["previous"] == previous
