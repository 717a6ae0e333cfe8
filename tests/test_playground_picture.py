"""The film of the playground: small, shown on both pages, as long as it takes, and made of an example that is there."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from unpoison.serve.playground import load_examples

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "pictures" / "playground.gif"


def test_it_is_a_small_gif() -> None:
    data = PICTURE.read_bytes()
    assert data[:6] == b"GIF89a"
    assert struct.unpack("<H", data[6:8])[0] <= 900
    assert len(data) < 600_000


@pytest.mark.parametrize(("page", "folder"), [("README.md", "/main/docs/"), ("docs/service.md", "(")])
def test_it_is_shown_and_described(page: str, folder: str) -> None:
    (line,) = [line for line in (ROOT / page).read_text(encoding="utf-8").splitlines() if "playground.gif" in line]
    words, _, address = line.removeprefix("![").partition("](")
    assert len(words.split()) >= 20
    assert f"({address}".endswith(f"{folder}pictures/playground.gif)")


def test_it_stands_long_enough_to_be_read_and_not_longer() -> None:
    image = pytest.importorskip("PIL.Image", reason="PILLOW ABSENT: pip install pillow")
    with image.open(PICTURE) as film:
        times = []
        for number in range(film.n_frames):
            film.seek(number)
            times.append(film.info["duration"])
    assert 8_000 <= sum(times) <= 12_000
    assert film.info["loop"] == 0


def test_what_the_script_types_over_is_in_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL.Image", reason="PILLOW ABSENT: pip install pillow")
    monkeypatch.syspath_prepend(ROOT / "tools")
    from draw_playground import EDITS, ORIGIN

    passages = load_examples()[0]["passages"]
    for passage, (old, _) in zip(passages, EDITS, strict=False):
        assert passage["text"].startswith(old)
    assert any(f"//{ORIGIN}/" in passage["source"] for passage in passages[len(EDITS) :])
