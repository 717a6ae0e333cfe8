"""Batches that are interrupted, killed, changed and damaged, and what the next run makes of it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from batch.rows import ODD, RAW, good, write
from unpoison.batch import BatchScreener, run
from unpoison.cli import app

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "in.jsonl", [*ODD, *(good(n) for n in range(28))], RAW)


STRIKING = """
import os, signal, sys
from pathlib import Path
from unpoison.cli import main
from unpoison.cli.common import RowCounts

signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent that ignores Ctrl-C hands that down
left, how, add = int(sys.argv.pop(1)), int(sys.argv.pop(1)), RowCounts.add_part


def strike(self, *arguments, **options):
    global left
    add(self, *arguments, **options)
    left -= 1
    if left == 0:
        own = os.getpid()
        children = Path(f"/proc/{own}/task/{own}/children").read_text()
        Path(sys.argv[-2] + ".children").write_text(children)
        if how:
            os.kill(own, how)
        else:
            for child in children.split():
                if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                    os.kill(int(child), signal.SIGKILL)


RowCounts.add_part = strike
main()
"""
"""Sends itself a signal when so many parts are finished: whoever sent it from outside might come too late."""


KILL_WORKERS = 0
"""Instead of a signal."""


def batch_process(*arguments: object, strike: tuple[int, int] = (0, 0)) -> subprocess.Popen[bytes]:
    *options, source, output = map(str, arguments)
    command = [sys.executable, "-c", STRIKING, *map(str, strike), "screen", *options, "--output", output, source]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


@LINUX
def test_killed_for_good_and_begun_again(tmp_path: Path):
    source = write(tmp_path / "in.jsonl", [good(n) for n in range(320)])
    whole, output = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    run(str(source), str(whole), BatchScreener("grada"), workers=1)
    with batch_process("-d", "grada", "--workers", 2, source, output, strike=(3, signal.SIGKILL)) as process:
        assert process.wait() == -signal.SIGKILL
    assert not output.exists()
    children = [int(child) for child in output.with_name(f"{output.name}.children").read_text().split()]
    assert children
    for _ in range(3000):
        if not any(map(alive, children)):
            break
        time.sleep(0.02)
    assert not any(map(alive, children))  # nobody waits for work for ever
    with batch_process("-d", "grada", "--workers", 2, source, output) as process:
        assert process.wait() == 0
        assert process.stderr is not None
        assert b"of them in an earlier run" in process.stderr.read()
    assert output.read_bytes() == whole.read_bytes()
    assert not output.with_name("out.jsonl.part").exists()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@LINUX
def test_a_worker_that_is_killed_ends_the_batch_with_a_sentence(tmp_path: Path):
    source, output = write(tmp_path / "in.jsonl", [good(n) for n in range(700)]), tmp_path / "out.jsonl"
    with batch_process("-d", "grada", "--workers", 2, source, output, strike=(1, KILL_WORKERS)) as process:
        _, told = process.communicate(timeout=120)
    assert process.returncode == 2
    assert b"a worker process was killed" in told
    assert b"Traceback" not in told
    assert output.with_name("out.jsonl.part").stat().st_size
    assert not output.exists()


@pytest.mark.parametrize("workers", [("--workers", 2), ()])
def test_control_c_ends_with_130_and_the_same_command_resumes(workers: tuple[object, ...], tmp_path: Path):
    source, output = write(tmp_path / "in.jsonl", [good(n) for n in range(320)]), tmp_path / "out.jsonl"
    with batch_process("-d", "grada", *workers, source, output, strike=(1, signal.SIGINT)) as process:
        assert process.wait() == 130
        assert process.stderr is not None
        told = process.stderr.read()
    assert b"Traceback" not in told
    assert b"interrupted; 64 rows screened; the same command goes on behind them" in told
    assert output.with_name("out.jsonl.part").stat().st_size
    assert not output.exists()
    done = CliRunner().invoke(app, ["screen", "-d", "grada", "-o", str(output), str(source)])
    assert "of them in an earlier run" in done.stderr
