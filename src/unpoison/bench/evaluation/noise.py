"""An NLI model that errs at random, for measuring how much a defense depends on it (RADAR, Table 6)."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from unpoison.models.protocols import NLIModel
from unpoison.utils.checks import at_least, within

__all__ = ["NoisyNLI"]


class NoisyNLI:
    """Replaces each output, with a given probability, by a random one.

    What a pair gets depends on the seed and the pair alone, so the order of the calls does not matter. The paper does
    not say which distribution replaces an output; here it is uniform over all of them.

    Args:
        nli: The model that errs.
        rate: The probability of a replacement.
        seed: Of the noise.
    """

    def __init__(self, nli: NLIModel, rate: float, seed: int = 0) -> None:
        self.name = f"{nli.name} with {rate:g} noise"
        self.remote = getattr(nli, "remote", False)
        self._nli = nli
        self._rate = within("rate", rate, 0, 1)
        self._seed = at_least("seed", seed, 0)

    def judge(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """Shape (n, 3), rows summing to 1."""
        judged = np.array(self._nli.judge(pairs), np.float64)
        for row, (premise, hypothesis) in enumerate(pairs):
            key = f"{self._seed}\0{premise}\0{hypothesis}".encode("utf-8", "surrogatepass")
            rng = np.random.default_rng(int.from_bytes(blake2b(key, digest_size=16).digest(), "little"))
            if rng.random() < self._rate:
                judged[row] = rng.dirichlet(np.ones(3))
        return judged
