"""Work on processes: its order, its errors, and what happens when one of them dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unpoison.errors import OptionError, WorkerError
from unpoison.utils.processes import process_map


def work(item: float | str) -> float | str | bytes:
    """Sleep for a number of seconds, or do what a word says."""
    if item == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if item == "fail":
        raise OptionError("this item fails")
    if item == "long":
        return bytes(2**22)
    time.sleep(float(item))
    return item


def test_results_come_in_the_order_of_the_items_and_items_are_taken_as_results_are():
    taken = []

    def items():
        for item in (0.3, 0.0, 0.1, "long", 0.0, 0.2, *([0.0] * 20)):
            taken.append(item)
            yield item

    results = process_map(work, items(), 2)
    first = next(results)
    assert len(taken) <= 4
    assert [first, *results] == [bytes(2**22) if item == "long" else item for item in taken]


def test_nothing_to_do_starts_nothing():
    assert list(process_map(work, [], 2)) == []


@pytest.mark.parametrize(("item", "error"), [("fail", OptionError), ("die", WorkerError)])
def test_an_error_and_a_death_are_raised_behind_the_results_before_them(item: str, error: type[Exception]):
    results = process_map(work, [0.0, 0.0, 0.0, item, *([0.0] * 20)], 1)
    assert [next(results) for _ in range(2)] == [0.0, 0.0]
    with pytest.raises(error):
        list(results)


KILLING = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from test_processes import WorkerError, process_map, work

def kill():
    children = open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split()
    own = [c for c in children if b"spawn_main" in open(f"/proc/{c}/cmdline", "rb").read()]
    os.kill(int(own[-1]), signal.SIGKILL)

if __name__ == "__main__":
    for at in range(6):
        try:
            for done, _ in enumerate(process_map(work, [0.0, 0.01, "long"] * 20, 3)):
                if done == at * 3:
                    kill()
        except WorkerError:
            print("told")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc")
def test_whichever_process_is_killed_at_any_moment_it_is_told_and_never_waited_for(tmp_path: Path):
    script = tmp_path / "killing.py"
    script.write_text(KILLING)
    ended = subprocess.run(
        [sys.executable, script, Path(__file__).parent], stdout=subprocess.PIPE, timeout=120, check=True
    )
    assert ended.stdout.split() == [b"told"] * 6
