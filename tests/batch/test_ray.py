"""The Ray engine against a real Ray of two processors on this machine."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from batch.rows import ODD, RAW, good, write
from needs import need
from unpoison.batch import BatchScreener, run
from unpoison.batch import runner as engine
from unpoison.errors import MissingExtraError
from unpoison.utils.extras import install_command

pytestmark = [
    pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ray\.data\.context"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # of a start that failed
]


@pytest.fixture(scope="module")
def ray():
    """Ray as the engine starts it itself."""
    need("ray")
    import ray.data

    for _ in range(2):
        try:
            engine._start_ray(ray, 2)
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
        else:
            yield ray
            ray.shutdown()
            return
        ray.shutdown()
        gc.collect()  # the processes of the failed start warn when they are forgotten, in whatever test that is
    pytest.skip("RAY DID NOT START: its own processes have 15 seconds, twice too few here; its engine is not tested")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "in.jsonl", [*ODD, *(good(n) for n in range(60))], RAW)


@pytest.mark.needs("ray")
def test_the_same_bytes_as_the_local_engine(ray, source: Path, tmp_path: Path):
    steps: list[int] = []
    screener = BatchScreener("grada")
    run(str(source), str(tmp_path / "local.jsonl"), screener, workers=1)
    collect = lambda step: steps.append(step.finished.rows)  # noqa: E731
    run(str(source), str(tmp_path / "ray.jsonl"), screener, engine="ray", workers=2, progress=collect)
    assert steps == [64, 9]
    assert (tmp_path / "ray.jsonl").read_bytes() == (tmp_path / "local.jsonl").read_bytes()
    assert ray.is_initialized()  # whoever started it ends it


def test_without_ray_the_extra_is_named(batch, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    result = batch("--engine", "ray", source, tmp_path / "out.jsonl")
    assert result.exit_code == 2
    assert result.stderr == f"error: the engine ray needs ray; run: {install_command('ray')}\n"
    with pytest.raises(MissingExtraError):
        run(str(source), str(tmp_path / "out.jsonl"), BatchScreener(), engine="ray")
