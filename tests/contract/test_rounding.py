"""No verdict hangs on the last bits of a similarity: every processor has its own."""

from __future__ import annotations

import numpy as np
import pytest

from contract.test_promises import INPUTS, QUERY, make
from reordered import ORDERS, Reordered
from unpoison import Defense
from unpoison.core import registry
from unpoison.models import LexicalEncoder
from unpoison.models.protocols import Encoder

ENCODING = [n for n in registry.names("defenses") if "encoder" in registry.find("defenses", n).__init__.__annotations__]


def built(name: str, encoder: Encoder) -> Defense:
    return make(name, encoder=encoder)


@pytest.mark.parametrize("given", INPUTS.values(), ids=INPUTS.keys())
@pytest.mark.parametrize("name", ENCODING)
def test_the_verdicts_do_not_depend_on_the_order_of_additions(name: str, given: list[str]) -> None:
    wanted = built(name, LexicalEncoder()).screen(QUERY, given)
    for order in ORDERS:
        got = built(name, Reordered(LexicalEncoder(), order)).screen(QUERY, given)
        assert got.kept_indices == wanted.kept_indices
        assert [v.reason for v in got.verdicts] == [v.reason for v in wanted.verdicts]
        np.testing.assert_allclose([v.score for v in got.verdicts], [v.score for v in wanted.verdicts], atol=1e-6)
