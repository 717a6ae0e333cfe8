"""Keys by their digests."""

from __future__ import annotations

from pathlib import Path

import pytest

from unpoison.errors import InputError, OptionError
from unpoison.serve.admission import Keys, digest


def test_a_file_of_digests_as_sha256sum_writes_it(tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    file.write_text(f"# the teams\n{digest('one')}  search-team\n\n{digest('two').upper()}  -\n{digest('three')}\n")
    keys = Keys.read(file) | Keys.of("four")
    assert [keys.holder(key) for key in ("one", "four", b"one")] == ["search-team", "default", "search-team"]
    assert keys.holder("two") == digest("two")[:8]
    assert keys.holder("three") == digest("three")[:8]
    assert keys.holder("five") is None
    assert keys.holder("") is None


@pytest.mark.parametrize(
    ("content", "said"),
    [("", "holds no key"), ("secret\n", "line 1"), (f"{'0' * 64} a b\n", "line 1"), (f"\n{'0' * 63}  a\n", "line 2")],
)
def test_a_mistake_names_its_line_and_no_key(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "keys.txt").write_text(content)
    with pytest.raises(InputError, match=said) as caught:
        Keys.read(tmp_path / "keys.txt")
    assert "secret" not in str(caught.value)
    with pytest.raises(InputError, match="cannot be read"):
        Keys.read(tmp_path / "none")


def test_a_blank_key_is_none() -> None:
    with pytest.raises(OptionError, match="blank"):
        Keys.of(" ")
