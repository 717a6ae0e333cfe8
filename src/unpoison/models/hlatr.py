"""HLATR: a third stage that reranks a whole list at once (Zhang et al., 2022).

A cross-encoder's embedding of each (query, passage) and the passage's retrieval rank go into a small transformer that
looks at all passages of the list together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import InputError, ModelError, clip
from unpoison.models.checkpoints import NamedModel, sigmoid
from unpoison.models.classifiers import TorchClassifier
from unpoison.utils.checks import at_least
from unpoison.utils.extras import require

__all__ = ["HlatrScorer", "RankedList"]

FORM = "unpoison hlatr head 1"
POSITIONS = 110
"""Ranks that have an embedding of their own; what is retrieved later shares the last one."""

MAX_SIZE = 65_536
"""Of the sizes in a head's settings: a file may say anything."""


class RankedList(NamedTuple):
    """One list to train on: a query, its passages in retrieval order, and the position of the relevant one."""

    query: str
    passages: Sequence[str]
    relevant: int


class _Settings(NamedTuple):
    features: int
    hidden: int = 128
    layers: int = 4
    heads: int = 2
    dropout: float = 0.1


class HlatrScorer(NamedModel):
    """A list-aware scorer of (query, passage) pairs, over any reranker's checkpoint.

    In one call of `score` the pairs with the same first text are a list, in retrieval order. Without a head the scores
    are the checkpoint's own, and neither rank nor the other passages count. Arguments and errors are otherwise those
    of `CrossEncoderScorer`.

    Args:
        name_or_path: The reranker's checkpoint, with one output.
        head: A folder that `save` wrote, for the same checkpoint; None for the checkpoint's own scores.
        device: "cpu", "cuda", ...; None takes a GPU where there is one.
        batch_size: Pairs per forward pass.
        max_length: Tokens of a pair.

    Raises:
        InputError: The folder holds no head for this checkpoint.
        MissingExtraError: The extra `torch` is not installed.
        ModelError: The checkpoint cannot be loaded, or has more than one output.
    """

    def __init__(
        self,
        name_or_path: str | Path,
        *,
        head: str | Path | None = None,
        device: str | None = None,
        batch_size: int = 16,
        max_length: int = 512,
    ) -> None:
        self.name = f"hlatr:{name_or_path}" + ("" if head is None else f",head={head}")
        self._torch = require("torch", "HLATR")
        self._pairs = TorchClassifier(self.name, str(name_or_path), device, batch_size, max_length)
        if len(self._pairs.labels) != 1:
            raise ModelError(f"{self.name} has {len(self._pairs.labels)} outputs; use a reranker, which has one")
        self._checkpoint = str(name_or_path)
        self._settings: _Settings | None = None
        self._head: Any = None
        if head is not None:
            self._settings, weights = _load_head(Path(head), self._checkpoint)
            with _head_errors(Path(head)):
                self._head = self._build_head(self._settings)
                self._head.load_state_dict(weights)
            self._head.eval()

    def score(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """Shape (n,), in (0, 1).

        Raises:
            ModelError: The model made a value that is not finite.
        """
        if self._head is None:
            return sigmoid(self._pairs.logits(pairs)[:, 0])
        lists: dict[str, list[int]] = {}
        for position, (query, _) in enumerate(pairs):
            lists.setdefault(query, []).append(position)
        embeddings, scores = self._pairs.embeddings(pairs), np.zeros(len(pairs))
        with self._torch.inference_mode():
            for members in lists.values():
                scores[members] = self._logits(self._tensor(embeddings[members])).cpu().double().numpy()
        return sigmoid(scores)

    @classmethod
    def train(
        cls,
        name_or_path: str | Path,
        examples: Sequence[RankedList],
        *,
        hidden: int = 128,
        layers: int = 4,
        heads: int = 2,
        epochs: int = 80,
        batch: int = 256,
        rate: float = 1e-3,
        seed: int = 0,
        device: str | None = None,
    ) -> Self:
        """Fit a head by list-wise softmax cross-entropy; the checkpoint stays as it is.

        The defaults are the paper's: AdamW with weight decay 0.01, warm-up over a tenth of the steps, linear decay.

        Args:
            name_or_path: The reranker's checkpoint.
            examples: Lists of two passages and more.
            hidden: The transformer's width, a multiple of `heads`.
            layers: Its layers.
            heads: Its attention heads.
            epochs: Passes over the examples.
            batch: Lists per step.
            rate: The largest learning rate.
            seed: Of initialisation, order and dropout.
            device: As for the constructor.

        Raises:
            InputError: No example, or a relevant position outside its list.
            OptionError: A size that is not positive.
        """
        for option, value in (("hidden", hidden), ("layers", layers), ("heads", heads), ("epochs", epochs)):
            at_least(option, value, 1)
        for example in examples:
            if not 0 <= example.relevant < len(example.passages):
                raise InputError(
                    f"the relevant passage of {clip(example.query)} must be a position in its list of "
                    f"{len(example.passages)}, got {clip(example.relevant)}"
                )
        if not examples:
            raise InputError("examples holds no list to train on; pass some hundreds")
        scorer = cls(name_or_path, device=device)
        embeddings = [scorer._pairs.embeddings([(r.query, passage) for passage in r.passages]) for r in examples]
        scorer._settings = _Settings(embeddings[0].shape[1], hidden, layers, heads)
        relevant = [ranking.relevant for ranking in examples]
        scorer._fit([scorer._tensor(embedding) for embedding in embeddings], relevant, epochs, batch, rate, seed)
        return scorer

    def _fit(self, lists: list[Any], relevant: list[int], epochs: int, batch: int, rate: float, seed: int) -> None:
        torch, loss = self._torch, self._torch.nn.CrossEntropyLoss()
        steps = epochs * -(-len(lists) // at_least("batch", batch, 1))
        warm = max(1, steps // 10)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self._head = self._build_head(self._settings).train()
            optimizer = torch.optim.AdamW(self._head.parameters(), lr=rate, weight_decay=0.01)
            schedule = torch.optim.lr_scheduler.LambdaLR(
                optimizer, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm))
            )
            for _ in range(epochs):
                for chosen in torch.randperm(len(lists)).split(batch):
                    losses = [
                        loss(self._logits(lists[i]), torch.tensor(relevant[i], device=lists[i].device))
                        for i in chosen.tolist()
                    ]
                    optimizer.zero_grad()
                    torch.stack(losses).mean().backward()
                    optimizer.step()
                    schedule.step()
        self._head.eval()

    def save(self, folder: str | Path) -> None:
        """Write the head, as safetensors with its settings in JSON; the checkpoint is named, not copied.

        Raises:
            InputError: There is no head to save.
        """
        if self._head is None or self._settings is None:
            raise InputError(f"{self.name} has no head to save; train one with HlatrScorer.train")
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        header = {"form": FORM, "checkpoint": self._checkpoint, **self._settings._asdict()}
        (target / "head.json").write_text(json.dumps(header, indent=1), "utf-8")
        state = {name: value.cpu().contiguous() for name, value in self._head.state_dict().items()}
        require("safetensors.torch", "saving a head").save_file(state, target / "head.safetensors")

    def _build_head(self, settings: Any) -> Any:
        """Projection plus rank embedding, layer norm, dropout, a transformer over the list, one score for each."""
        nn, (features, hidden, layers, heads, dropout) = self._torch.nn, settings
        layer = nn.TransformerEncoderLayer(hidden, heads, 4 * hidden, dropout, batch_first=True)
        parts = {
            "projection": nn.Linear(features, hidden),
            "rank": nn.Embedding(POSITIONS, hidden),
            "norm": nn.LayerNorm(hidden),
            "dropout": nn.Dropout(dropout),
            "transformer": nn.TransformerEncoder(layer, layers, enable_nested_tensor=False),
            "score": nn.Linear(hidden, 1),
        }
        return nn.ModuleDict(parts).to(self._pairs.device)

    def _logits(self, embeddings: Any) -> Any:
        """The scores of one list, shape (n,), from its embeddings, (n, features)."""
        head = self._head
        ranks = self._torch.arange(len(embeddings), device=embeddings.device).clamp(max=POSITIONS - 1)
        items = head["dropout"](head["norm"](head["projection"](embeddings) + head["rank"](ranks)))
        return head["score"](head["transformer"](items[None]))[0, :, 0]

    def _tensor(self, embeddings: NDArray[np.float64]) -> Any:
        return self._torch.tensor(embeddings, dtype=self._torch.float32, device=self._pairs.device)


@contextmanager
def _head_errors(folder: Path) -> Iterator[None]:
    """Whatever a damaged folder raises, as an `InputError`."""
    try:
        yield
    except Exception as error:  # OSError, ValueError, KeyError, SafetensorError, RuntimeError for shapes, ...
        raise InputError(
            f"{clip(str(folder), 200)} holds no head of HLATR for this checkpoint ({type(error).__name__}: "
            f"{clip(str(error), 120)}); give a folder that HlatrScorer.save wrote"
        ) from error


def _load_head(folder: Path, checkpoint: str) -> tuple[_Settings, dict[str, Any]]:
    with _head_errors(folder):
        with (folder / "head.json").open("rb") as file:
            header = json.loads(file.read(10_000))
        if header["form"] != FORM or header["checkpoint"] != checkpoint:
            raise ValueError(f"it was trained on {clip(header['checkpoint'])}")
        settings = _Settings(**{name: header[name] for name in _Settings._fields})
        if any(not isinstance(size, int) or not 0 < size <= MAX_SIZE for size in settings[:4]):
            raise ValueError("its settings are not sizes")
        return settings, require("safetensors.torch", "loading a head").load_file(folder / "head.safetensors")
