"""What the comparison of speed calls too slow, and that its peer stays what it was; without a clock."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.speed import speed_ratio


@pytest.mark.parametrize(
    ("ratio", "slow"), [(3.0, False), (3.9, False), (2 * speed_ratio.SLOWER, False), (4.1, True), (40.0, True)]
)
def test_more_than_twice_the_recorded_ratio_is_too_slow(ratio: float, slow: bool) -> None:
    found = speed_ratio.too_slow({"a row": ratio, "another": 0.5}, {"a row": 2.0, "another": 1.0})
    assert [line.split(" takes ")[0] for line in found] == ["a row"] * slow


def test_a_row_of_which_nothing_is_recorded_is_told() -> None:
    (line,) = speed_ratio.too_slow({"a new row": 0.1}, {})
    assert line == "nothing is recorded of a new row; record it with --write"


def test_every_row_is_recorded_and_nothing_else() -> None:
    recorded = json.loads(speed_ratio.RECORDED.read_text(encoding="utf-8"))
    assert list(recorded) == list(speed_ratio._rows())
    assert all(ratio > 0 for ratio in recorded.values())


def test_one_slow_measurement_is_no_failure_and_three_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = json.loads(speed_ratio.RECORDED.read_text(encoding="utf-8"))
    slow = {name: 5 * ratio for name, ratio in recorded.items()}
    monkeypatch.setattr(sys, "argv", ["speed_ratio.py"])
    for turns, failed in (([slow, recorded], 0), ([slow, slow, recorded], 0), ([slow, slow, slow], 1)):
        monkeypatch.setattr(speed_ratio, "measured", iter(turns).__next__)
        assert speed_ratio.main() == failed
        assert ("takes 5.0 times as long" in capsys.readouterr().err) == bool(failed)


def test_texts_of_a_first_sight_were_never_seen() -> None:
    seen: list[str] = []
    speed_ratio._first(lambda _, texts: seen.extend(texts), "q", ["a", "a"])
    speed_ratio._first(lambda _, texts: seen.extend(texts), "q", ["a", "a"])
    assert len(set(seen)) == len(seen) == 4 * speed_ratio.RUNS


def test_the_peer_is_what_it_was() -> None:
    texts = ["a ship sank", "a ship was raised", "the ship sank in the bay and was raised", "bread and butter"]
    assert speed_ratio.fixed_peer("where is the ship", texts) == [1, 0, 2, 3]
