"""Whole files: the same as row by row, in order, whole or not at all, and resumable."""

from __future__ import annotations

import json
import os
import tempfile
from io import BufferedWriter, BytesIO
from pathlib import Path
from threading import Condition
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batch.ray_double import RayDouble
from batch.rows import GOOD, ODD, RAW, ROWS, good, read, write
from unpoison import Grada
from unpoison.batch import BatchScreener, Progress, run
from unpoison.batch import runner as runner_module
from unpoison.batch.runner import usual_workers, waits
from unpoison.batch.screener import BatchPart, Finished
from unpoison.core.answers import Reply
from unpoison.defenses.base import Defense
from unpoison.errors import InputError, ModelError, OptionError, UnknownNameError, WorkerError
from unpoison.io.rows import Row


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "in.jsonl", [*ODD, *(good(n) for n in range(70))], RAW)


@settings(max_examples=30)
@given(ROWS, st.integers(1, 5))
def test_a_file_is_its_rows_one_by_one(rows: list[dict[str, Any]], most: int):
    defense = Grada()
    expected = []
    for number, row in enumerate(rows, 1):
        try:
            it = Row.of(row)
            expected.append({**row, "screening": defense.screen(it.query, it.passages).summary()})
        except InputError as error:
            expected.append({**(row or {"line": number}), "error": str(error)})
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patched:
        patched.setattr(runner_module, "MAX_ROWS", most)
        source, output = write(Path(name) / "in.jsonl", rows), Path(name) / "out.jsonl"
        run(str(source), str(output), BatchScreener("grada"), workers=1)
        assert read(output) == expected


@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_bytes_as_the_command_screen(command, batch, source: Path, tmp_path: Path, workers: int):
    expected, output = tmp_path / "screened.jsonl", tmp_path / "out.jsonl"
    assert command("screen", "-d", "grada", "-o", expected, source).exit_code == 1
    result = batch("-d", "grada", "--workers", workers, source, output)
    assert result.exit_code == 1
    assert output.read_bytes() == expected.read_bytes()
    assert f"{source}:4: passages[1] has no text" in result.stderr
    assert result.stderr.endswith("screened 74 rows; 9 failed\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl", "screened.jsonl"]


def test_standard_input_and_output(batch, source: Path, tmp_path: Path):
    run(str(source), str(tmp_path / "out.jsonl"), BatchScreener("grada"), workers=1)
    result = batch("-d", "grada", "--workers", 1, "-", "-", given=source.read_bytes())
    assert result.exit_code == 1
    assert result.stdout_bytes == (tmp_path / "out.jsonl").read_bytes()
    assert "standard input:4: " in result.stderr


def test_limit_and_failures_that_are_not_all_reported(batch, tmp_path: Path):
    source, output = write(tmp_path / "in.jsonl", [{"query": 1}] * 100), tmp_path / "out.jsonl"
    result = batch("--limit", 30, "--workers", 1, source, output)
    assert result.exit_code == 2
    assert len(read(output)) == 30
    assert result.stderr.count("in.jsonl:") == 6
    assert result.stderr.endswith("are only counted\nscreened 0 rows; 30 failed\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-d", "gruard"], "did you mean 'guard'"),
        (["--calibrate", "0.1"], "needs one process"),
        (["-d", "vanilla", "-e", "lexical"], "takes no --encoder"),
    ],
)
def test_user_errors_are_one_line_and_leave_nothing(batch, source: Path, tmp_path: Path, arguments, says):
    result = batch(*arguments, source, tmp_path / "out.jsonl")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert says in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_files_that_cannot_be_used(batch, source: Path, tmp_path: Path):
    assert "is the input" in batch(source, source).stderr
    assert "No such file" in batch(tmp_path / "no.jsonl", tmp_path / "out.jsonl").stderr
    assert "No such file" in batch(source, tmp_path / "no" / "out.jsonl").stderr
    (tmp_path / "folder").mkdir()
    assert "Is a directory; give a file" in batch(source, tmp_path / "folder").stderr
    for option in ({"engine": "spark"}, {"workers": 0}, {"limit": 0}):
        with pytest.raises(OptionError, match=next(iter(option))):
            run(str(source), str(tmp_path / "out.jsonl"), BatchScreener(), **option)


class Busy:
    """A generator that remembers how many calls it had at the same time, and waits until there were `least`."""

    name = "busy"

    def __init__(self, least: int) -> None:
        self.least, self.changed, self.now, self.most = least, Condition(), 0, 0

    def generate(self, prompt: object, /, **_: object) -> Reply:
        with self.changed:
            self.now += 1
            self.most = max(self.most, self.now)
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.most >= self.least, timeout=30)
            self.now -= 1
        return Reply("Stockholm")


@pytest.mark.parametrize(("in_flight", "least", "most"), [(8, 3, 8), (1, 1, 4)])
def test_threads_share_one_defense_and_the_bound_on_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_flight: int, least: int, most: int
):
    busy: list[Busy] = []

    def generator(spec: str) -> Busy:
        busy.append(Busy(least))
        return busy[-1]

    monkeypatch.setattr("unpoison.models.loading.load_generator", generator)
    source, output = write(tmp_path / "in.jsonl", [good(n) for n in range(40)]), tmp_path / "out.jsonl"
    screener = BatchScreener("radar", generator="openai:x", nli="lexical", in_flight=in_flight)
    run(str(source), str(output), screener, workers=4)
    assert len(busy) == 1
    assert least <= busy[0].most <= most  # four rows at a time, eight passages each
    assert [row["id"] for row in read(output)] == [f"row {n}" for n in range(40)]


def test_how_many_workers_suit_which_models():
    many = usual_workers(BatchScreener())
    assert many >= 1
    assert usual_workers(BatchScreener("guard", encoder="lexical", generator="extractive")) == many
    assert usual_workers(BatchScreener("guard", encoder="st:some/model")) == 1
    assert usual_workers(BatchScreener("guard:encoder=minilm")) == 1
    assert usual_workers(BatchScreener("guard", generator="openai:gpt-4o-mini")) == 8
    assert waits(BatchScreener("guard:encoder=openai:text-embedding-3-small"))
    assert not waits(BatchScreener("guard", encoder="minilm"))


def test_unknown_names_come_back_from_other_processes(tmp_path: Path):
    source = write(tmp_path / "in.jsonl", [GOOD])
    with pytest.raises(UnknownNameError, match="did you mean 'grada'"):
        run(str(source), str(tmp_path / "out.jsonl"), BatchScreener("grado"), workers=2)
    assert json.loads(source.read_text()) == GOOD


class TestResuming:
    """Batches that are interrupted, changed and damaged, and what the next run makes of it."""

    SCREENER = BatchScreener("grada")

    @pytest.fixture
    def source(self, tmp_path: Path) -> Path:
        return write(tmp_path / "in.jsonl", [*ODD, *(good(n) for n in range(28))], RAW)

    def interrupted(self, source: Path, output: Path, after: int, screener: BatchScreener = SCREENER) -> None:
        def stop(step: Progress) -> None:
            nonlocal after
            after -= 1
            if after == 0:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(str(source), str(output), screener, workers=1, progress=stop)

    def steps(self, source: Path, output: Path, screener: BatchScreener = SCREENER) -> list[bool]:
        resumed: list[bool] = []
        run(str(source), str(output), screener, workers=1, progress=lambda step: resumed.append(step.resumed))
        return resumed

    @pytest.fixture(autouse=True)
    def small_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(runner_module, "MAX_ROWS", 10)

    @pytest.fixture
    def output(self, tmp_path: Path) -> Path:
        return tmp_path / "out.jsonl"

    @pytest.fixture
    def whole(self, source: Path, tmp_path: Path) -> bytes:
        run(str(source), str(tmp_path / "whole.jsonl"), self.SCREENER, workers=1)
        return (tmp_path / "whole.jsonl").read_bytes()

    def test_nothing_is_done_twice(self, source: Path, output: Path, whole: bytes):
        self.interrupted(source, output, after=2)
        assert not output.exists()
        assert self.steps(source, output) == [True, True, False, False, False]
        assert output.read_bytes() == whole
        assert not output.with_name("out.jsonl.parts").exists()

    def test_what_is_interrupted_twice_goes_on_from_the_second_time(self, source: Path, output: Path, whole: bytes):
        self.interrupted(source, output, after=2)
        self.interrupted(source, output, after=3)
        assert self.steps(source, output) == [True, True, True, False, False]
        assert output.read_bytes() == whole

    def test_a_block_that_never_reached_the_disk_is_done_anew(self, source: Path, output: Path, whole: bytes):
        self.interrupted(source, output, after=3)
        draft = output.with_name("out.jsonl.part")
        content = draft.read_bytes()
        draft.write_bytes(content[:-200] + bytes(200))
        assert self.steps(source, output) == [True, True, False, False, False]
        assert output.read_bytes() == whole

    def test_from_a_changed_row_on_all_is_done_anew(self, source: Path, output: Path, tmp_path: Path):
        self.interrupted(source, output, after=3)
        changed = source.read_bytes().replace(b'"row 5"', b'"ROW 5"')
        source.write_bytes(changed)
        assert self.steps(source, output) == [True, False, False, False, False]
        assert b"ROW 5" in output.read_bytes()

    @pytest.mark.parametrize(
        "other", [BatchScreener("grada:keep=2"), BatchScreener("vanilla"), BatchScreener("ragdefender")]
    )
    def test_another_defense_begins_anew(self, source: Path, output: Path, other: BatchScreener):
        self.interrupted(source, output, after=3)
        assert not any(self.steps(source, output, other))
        assert read(output)[0]["screening"] == other([GOOD])[0]["screening"]

    def test_rows_whose_model_failed_are_tried_again(
        self, source: Path, output: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
    ):
        def fail(*_: object) -> None:
            raise ModelError("down")

        with monkeypatch.context() as patched:
            patched.setattr(Defense, "screen", fail)
            self.interrupted(source, output, after=2)
        assert not any(self.steps(source, output))
        assert output.read_bytes() == whole

    def test_a_torn_draft_is_done_anew_from_there(self, source: Path, output: Path, whole: bytes):
        self.interrupted(source, output, after=3)
        draft = output.with_name("out.jsonl.part")
        draft.write_bytes(draft.read_bytes()[:-5])
        assert self.steps(source, output) == [True, True, False, False, False]
        assert output.read_bytes() == whole

    def test_one_process_at_a_time_writes_an_output(self, source: Path, output: Path):
        def again(step: Progress) -> None:
            run(str(source), str(output), self.SCREENER, workers=1)

        with pytest.raises(InputError, match="another process writes"):
            run(str(source), str(output), self.SCREENER, workers=1, progress=again)


def test_each_step_says_how_far_it_is(tmp_path: Path):
    source = write(tmp_path / "in.jsonl", [good(n) for n in range(65)])
    seen: list[Progress] = []
    run(str(source), str(tmp_path / "out.jsonl"), BatchScreener("grada"), workers=1, progress=seen.append)
    assert [step.finished.rows for step in seen] == [64, 1]
    assert [(step.source, step.size, step.resumed) for step in seen] == [
        (str(source), source.stat().st_size, False)
    ] * 2
    assert 0 < seen[0].position < seen[1].position == source.stat().st_size


def test_with_a_model_parts_are_small_so_that_few_paid_calls_are_lost(tmp_path: Path):
    source, sizes = write(tmp_path / "in.jsonl", [good(n) for n in range(17)]), list[int]()
    screener = BatchScreener("vanilla", generator="extractive")
    collect = lambda step: sizes.append(step.finished.rows)  # noqa: E731
    run(str(source), str(tmp_path / "out.jsonl"), screener, workers=1, progress=collect)
    assert sizes == [8, 8, 1]


def test_the_least_workers_and_rows_are_one(tmp_path: Path):
    source, output = write(tmp_path / "in.jsonl", [good(n) for n in range(3)]), tmp_path / "out.jsonl"
    run(str(source), str(output), BatchScreener("grada"), workers=1, limit=1)
    assert [row["id"] for row in read(output)] == ["row 0"]


@pytest.mark.parametrize(
    ("sizes", "window", "parts", "found"),
    [
        ([3, 3, 3], 6, 9, [[3, 3], [3]]),
        ([3, 3, 3], 7, 9, [[3, 3, 3]]),
        ([9, 1], 6, 9, [[9], [1]]),
        ([1] * 5, 9, 2, [[1, 1], [1, 1], [1]]),
    ],
)
def test_parts_go_to_ray_in_sets_of_bounded_size(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int], window: int, parts: int, found: list[list[int]]
):
    monkeypatch.setattr(runner_module, "WINDOW", window)
    monkeypatch.setattr(runner_module, "MAX_PARTS", parts)
    given = [BatchPart((b"x" * size,), 0) for size in sizes]
    assert [[part.size for part in some] for some in runner_module._windows(given)] == found


def test_an_actor_gives_lines_and_counts_or_why_it_cannot():
    class Table:
        def to_pylist(self) -> list[dict[str, Any]]:
            return [{"lines": [b'[1, {"query": 1}, null]', json.dumps([2, GOOD, None]).encode()], "position": 7}]

    done = runner_module._actor_batch(BatchScreener("grada"), Table())
    assert ["screening" in json.loads(line) for line in done["lines"][0].splitlines()] == [False, True]
    ((rows, ((number, error),), transient),) = map(json.loads, done["counts"])
    assert (rows, number, transient, done["refused"]) == (2, 1, 0, [None])
    assert error.startswith("query must be")
    done = runner_module._actor_batch(BatchScreener("gruard"), Table())
    assert (done["lines"], done["counts"]) == ([b""], ["[]"])
    assert "did you mean 'guard'" in done["refused"][0]


def test_each_part_has_left_for_standard_output_before_the_next_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    source = write(tmp_path / "in.jsonl", [good(n) for n in range(4)])
    raw, lengths = BytesIO(), list[int]()
    monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=BufferedWriter(raw, 2**20)))  # type: ignore[type-var]
    monkeypatch.setattr(runner_module, "MAX_ROWS", 2)
    run(
        str(source), "-", BatchScreener("grada"), workers=1, progress=lambda _: lengths.append(raw.getvalue().count(10))
    )
    assert lengths == [2, 4]


def test_a_part_is_on_the_disk_before_its_record_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    synced, output = list[str](), tmp_path / "out.jsonl"
    draft = output.with_name("out.jsonl.part")

    def fsync(handle: int) -> None:
        synced.append("part" if os.path.sameopenfile(handle, held) else "other")

    with runner_module.Draft(output) as one, draft.open("rb") as part:
        held = part.fileno()
        assert list(one.resume(iter(()), "", lambda *_, **__: None)) == []
        monkeypatch.setattr(os, "fsync", fsync)
        one.append(BatchPart((b"[]",), 0), Finished(b"{}\n", 1, [], 0))
        monkeypatch.undo()
    assert synced[0] == "part"
    assert len(synced) > 1


@pytest.mark.parametrize(
    ("workers", "address", "running", "started"),
    [
        (None, "", False, [{"num_cpus": None, "include_dashboard": False}]),
        (2, "", False, [{"num_cpus": 2, "include_dashboard": False}]),
        (1, "ray://host:1", False, [{}]),
        (2, "", True, []),
    ],
)
def test_ray_is_started_quietly_where_none_runs_and_only_then_stopped(
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    workers: Any,
    address: str,
    running: bool,
    started: Any,
):
    monkeypatch.setenv("RAY_ADDRESS", address)
    for name in ("RAY_USAGE_STATS_ENABLED", "RAY_BACKEND_LOG_LEVEL"):
        monkeypatch.setenv(name, "")  # or what the engine sets outlives this test
        monkeypatch.delenv(name)
    ray = RayDouble(monkeypatch, running=running)
    run(str(source), str(tmp_path / "ray.jsonl"), BatchScreener("grada"), engine="ray", workers=workers)
    quiet = {"log_to_driver": False, "logging_level": "error"}
    assert ray.started == [{**one, **quiet} for one in started]
    assert ray.stopped == len(started)
    assert ray.sets == [(2, min(workers or 3, 2))]  # no more actors than parts
    assert running or (os.environ["RAY_USAGE_STATS_ENABLED"], os.environ["RAY_BACKEND_LOG_LEVEL"]) == ("0", "fatal")
    run(str(source), str(tmp_path / "out.jsonl"), BatchScreener("grada"), workers=1)
    assert (tmp_path / "ray.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()


def test_what_ray_cannot_do_is_one_sentence(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ray = RayDouble(monkeypatch)
    with pytest.raises(OptionError, match="did you mean 'guard'"):
        run(str(source), str(tmp_path / "out.jsonl"), BatchScreener("gruard"), engine="ray")
    monkeypatch.setattr(ray, "cluster_resources", dict)  # of one that does not say: one actor
    run(str(source), str(tmp_path / "out.jsonl"), BatchScreener("grada"), engine="ray")
    assert ray.sets[-1] == (2, 1)

    def fail(*_: object, **__: object) -> None:
        raise ConnectionError("Traceback:\n  far away\nthe node died\n")

    monkeypatch.setattr(ray, "map_batches", fail)
    with pytest.raises(WorkerError, match=r"^Ray gave up: the node died$"):
        run(str(source), str(tmp_path / "out.jsonl"), BatchScreener("grada"), engine="ray")
    assert ray.stopped == 3
