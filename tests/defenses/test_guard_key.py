from __future__ import annotations

from importlib.resources import files
from math import comb

import numpy as np
import pytest

from unpoison.defenses.guard.key import ALWAYS, GROUPS, NEVER, SEEN_GROUPS, drawn, group_of, part_of
from unpoison.defenses.guard.model import COMPANY, WORDING, GuardModel
from unpoison.defenses.guard.table import LEVELS, shipped_samples
from unpoison.errors import InputError, OptionError
from unpoison.kernels.style import Style

MODEL = GuardModel.load("lexical")
DATA = files("unpoison.data")
ENCODERS = [name for name in ("lexical", "minilm") if (DATA / f"guard-table-{name}.npz").is_file()]


def choice(secret):
    return drawn(secret, MODEL.columns, MODEL.alone_columns)


def test_a_secret_always_chooses_the_same() -> None:
    drawn = choice("sixteen letters!")
    assert drawn == choice("sixteen letters!")
    assert drawn.style == (1, 3, 5, 6, 8, 10)  # pinned: the same on every machine
    assert drawn.window_style == (1, 2, 3, 4, 5, 6)


def test_secrets_choose_differently() -> None:
    drawn = [choice(f"the secret number {i}") for i in range(40)]
    assert len({c.style for c in drawn}) > 30
    assert len({c.second for c in drawn}) == 40
    share = np.mean([len(c.second) / len((*MODEL.columns, *WORDING, *COMPANY)) for c in drawn])
    assert 0.65 < share < 0.8
    assert comb(GROUPS, SEEN_GROUPS) == 924


def test_some_columns_are_always_seen_and_some_never() -> None:
    for i in range(20):
        drawn = choice(f"the secret number {i}")
        assert "suspicion" in drawn.second
        assert {"similarity", "coverage", "wording", "wording_claim"} <= set(drawn.first)
        assert {"style", "coverage"} <= set(drawn.windows)
        assert not NEVER & {*drawn.first, *drawn.second, *drawn.alone}
        assert set(drawn.alone) <= set(MODEL.alone_columns)
    assert not ALWAYS & NEVER


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(OptionError, match="15 bytes can be guessed"):
        choice("x" * 15)


def test_groups_are_about_equal_and_their_parts_add_up() -> None:
    codes = np.random.default_rng(0).choice(10**9, 12_000, replace=False)
    sizes = np.bincount(group_of(codes), minlength=GROUPS)
    assert len(sizes) == GROUPS
    assert sizes.min() > 800
    style = Style(codes, np.ones(len(codes)), -3.0)
    whole = sum(part_of(style, [g]).weight for g in range(GROUPS))
    assert whole == pytest.approx(GROUPS * style.weight)
    half = part_of(style, range(SEEN_GROUPS))
    assert set(half.weight.tolist()) == {0.0, 2.0}
    assert half.base == -3.0
    assert part_of(style, range(GROUPS)).weight == pytest.approx(style.weight)


def test_there_are_numbers_for_the_built_in_encoder() -> None:
    assert "lexical" in ENCODERS
    with pytest.raises(InputError, match="there is no guard-table-glove"):
        shipped_samples("glove", range(SEEN_GROUPS), range(SEEN_GROUPS))


@pytest.mark.parametrize("encoder", ENCODERS)
def test_the_shipped_samples_fit_together(encoder) -> None:
    samples = shipped_samples(encoder, range(SEEN_GROUPS), range(SEEN_GROUPS))
    assert len(samples) > 1000
    assert {"none", "poisonedrag"} <= {sample.attack for sample in samples}
    for sample in samples[::50]:
        k = len(sample.poison)
        assert set(GuardModel.load(encoder).columns) == set(sample.signs.columns)
        assert all(column.shape == (k,) for column in sample.signs.columns.values())
        assert sample.signs.residual.shape == sample.signs.overlap.shape == (k, k)
        assert np.array_equal(sample.signs.residual, sample.signs.residual.T)
        assert sample.wording.shape == (k, len(WORDING))
        assert sample.windows.shape == (len(sample.owner), 8)
        assert sample.owner.max(initial=0) < k
        assert (sample.attack == "none") == (not sample.poison.any())
    poison = np.concatenate([s.poison for s in samples])
    wording = np.concatenate([s.wording[:, 0] for s in samples])
    assert np.mean(wording[poison]) > np.mean(wording[~poison]) + 1  # half of the style still tells them apart


def test_the_shipped_numbers_are_small_and_hold_no_text() -> None:
    size = 0
    for name in ("guard-table", *(f"guard-table-{encoder}" for encoder in ENCODERS)):
        with (DATA / f"{name}.npz").open("rb") as file:
            size += len(file.read())
            file.seek(0)
            with np.load(file, allow_pickle=False) as table:
                words = {part: table[part] for part in table.files if table[part].dtype.kind not in "biuf"}
                assert set(words) <= {"names", "domains", "attacks"}
                assert all(max(map(len, values)) < 40 for values in words.values())
                assert all(table[part].max() < LEVELS for part in table.files if part.endswith("codes"))
    assert size <= 1_250_000
