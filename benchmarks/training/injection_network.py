"""The network that judges prompt injections, and the pieces that it knows: multilingual-e5-small, pruned.

Of the twelve layers the lower ones stay as they are, eight or six by the pass; they run as an int8 graph, which is
what is shipped of them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.training.e5_package import read_e5
from benchmarks.training.reader_weights import exported_weights

__all__ = ["LAYERS", "InjectionNetwork", "Lower", "Upper", "prune", "restore", "rows_to_int8", "trained_layers"]

LAYERS, HEADS, WIDTH, INNER = 12, 12, 384, 1536

POSITIONS = 160
"""Places of which the embeddings are kept."""

SPECIAL = 4
"""Pieces at the front: `<s>`, `<pad>`, `</s>`, `<unk>`."""

UNWRITTEN = -100.0
"""The log-probability of these: a text that spells `</s>` must not end where it says so."""

DROPPED = 0.1

LIKELIEST = 12_000
"""Pieces that are kept whatever the texts: languages that nobody wrote in need them."""


def prune(package: Path, texts: Iterable[tuple[str, str]], most: int, output: Path) -> None:
    """Write the tokenizer and the weights with all single signs, the likeliest pieces, and those that texts need.

    Args:
        package: The file that `e5_package.py` reads.
        texts: Languages and texts; each language counts as much as another.
        most: Pieces in all.
        output: Where `tokenizer.json` and `body.pt` go.
    """
    state, whole = read_e5(package)
    settings = json.loads(whole.to_str())
    known, used = settings["model"]["vocab"], dict[str, Counter[int]]()
    for language, text in texts:
        used.setdefault(language, Counter()).update(whole.encode(text, add_special_tokens=False).ids)
    weights = Counter[int]()
    for counts in used.values():
        total = counts.total() ** 0.7
        weights.update({i: count / total for i, count in counts.items() if count > 1})  # type: ignore[misc]
    single = [i for i, (piece, _) in enumerate(known) if i < SPECIAL or len(piece.strip("\u2581")) <= 1]
    likely = sorted(range(len(known)), key=lambda i: -known[i][1])
    chosen = dict.fromkeys([*single, *likely[:LIKELIEST], *(i for i, _ in weights.most_common()), *likely])
    kept = sorted(list(chosen)[:most])
    settings["model"]["vocab"] = [[known[i][0], round(known[i][1], 3) if i >= SPECIAL else UNWRITTEN] for i in kept]
    settings["added_tokens"] = []
    output.mkdir(parents=True, exist_ok=True)
    (output / "tokenizer.json").write_text(json.dumps(settings, ensure_ascii=False), "utf-8")
    name = "embeddings.word_embeddings.weight"
    state[name] = state[name][torch.tensor(kept)].clone()
    torch.save(state, output / "body.pt")
    print(
        f"{len(kept)} of {len(known)} pieces; {len(weights)} occur twice, {len(set(weights) - set(kept))} of them lost"
    )


def restore(shipped: Path, package: Path, output: Path) -> Path:
    """Write what a pass left behind that only its export is left of, and say where its checkpoint is.

    Args:
        shipped: The folder of `export_injections.py`.
        package: The file that `e5_package.py` reads.
        output: Where `tokenizer.json`, `body.pt` and `shipped.pt` go.
    """
    state, whole = read_e5(package)
    settings = json.loads((shipped / "tokenizer.json").read_text("utf-8"))
    place = {piece: i for i, (piece, _) in enumerate(json.loads(whole.to_str())["model"]["vocab"])}
    known = settings["model"]["vocab"]
    known[:SPECIAL] = [[piece, UNWRITTEN] for piece, _ in known[:SPECIAL]]
    name = "embeddings.word_embeddings.weight"
    state[name] = state[name][torch.tensor([place[piece] for piece, _ in known])].clone()
    output.mkdir(parents=True, exist_ok=True)
    (output / "tokenizer.json").write_text(json.dumps(settings, ensure_ascii=False), "utf-8")
    torch.save(state, output / "body.pt")
    weights = exported_weights(shipped / "model.onnx")
    upper = {key.removeprefix("upper."): value for key, value in weights.items() if key.startswith("upper.")}
    torch.save({"upper": upper}, output / "shipped.pt")
    return output / "shipped.pt"


def rows_to_int8(table: Tensor) -> tuple[Tensor, Tensor]:
    """A table as int8, and a scale for each row."""
    scale = table.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
    return (table / scale).round().to(torch.int8), scale


class Layer(nn.Module):
    """One layer of BERT."""

    def __init__(self, state: dict[str, Tensor], number: int) -> None:
        super().__init__()

        def linear(name: str, rows: int, columns: int) -> nn.Linear:
            made = nn.Linear(columns, rows)
            made.load_state_dict({k: state[f"encoder.layer.{number}.{name}.{k}"] for k in ("weight", "bias")})
            return made

        def norm(name: str) -> nn.LayerNorm:
            made = nn.LayerNorm(WIDTH, eps=1e-12)
            made.load_state_dict({k: state[f"encoder.layer.{number}.{name}.{k}"] for k in ("weight", "bias")})
            return made

        self.query, self.key, self.value = (
            linear(f"attention.self.{name}", WIDTH, WIDTH) for name in ("query", "key", "value")
        )
        self.out, self.out_norm = linear("attention.output.dense", WIDTH, WIDTH), norm("attention.output.LayerNorm")
        self.wide, self.narrow = linear("intermediate.dense", INNER, WIDTH), linear("output.dense", WIDTH, INNER)
        self.last_norm = norm("output.LayerNorm")

    def forward(self, hidden: Tensor, blocked: Tensor | None) -> Tensor:
        n = 1 if blocked is None else hidden.shape[0]

        def split(states: Tensor) -> Tensor:
            return states.view(n, -1, HEADS, WIDTH // HEADS).transpose(1, 2)

        query, key, value = split(self.query(hidden)), split(self.key(hidden)), split(self.value(hidden))
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=blocked)
        mixed = mixed.transpose(1, 2).reshape(n, -1, WIDTH)
        hidden = self.out_norm(hidden + self.out(mixed))
        last: Tensor = self.last_norm(hidden + self.narrow(nn.functional.gelu(self.wide(hidden))))
        return last


def _blocked(mask: Tensor | None) -> Tensor | None:
    """What attention is lowered by; None for a single window, which has nothing to leave out."""
    return None if mask is None else (1.0 - mask[:, None, None, :].float()) * -1e4


class Lower(nn.Module):
    """The embeddings and the frozen layers."""

    def __init__(self, body: Path, frozen: int) -> None:
        super().__init__()
        state = torch.load(body, weights_only=True)
        table, scale = rows_to_int8(state["embeddings.word_embeddings.weight"])
        self.register_buffer("table", table)
        self.register_buffer("scale", scale)
        places = state["embeddings.position_embeddings.weight"][:POSITIONS]
        self.register_buffer("places", places + state["embeddings.token_type_embeddings.weight"][0])
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.norm.load_state_dict({k: state[f"embeddings.LayerNorm.{k}"] for k in ("weight", "bias")})
        self.layers = nn.ModuleList(Layer(state, i) for i in range(frozen))
        self.requires_grad_(False)

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        table: Any = self.table
        scale: Any = self.scale
        places: Any = self.places
        hidden = self.norm(table[ids].float() * scale[ids] + places[: ids.shape[1]])
        for layer in self.layers:
            hidden = layer(hidden, _blocked(mask))
        return hidden


class Upper(nn.Module):
    """The layers that are trained, and the head: a log-odds for each piece."""

    def __init__(self, body: Path, trained: int) -> None:
        super().__init__()
        state = torch.load(body, weights_only=True)
        self.layers = nn.ModuleList(Layer(state, i) for i in range(LAYERS - trained, LAYERS))
        self.head = nn.Linear(WIDTH, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.constant_(self.head.bias, -2.0)

    def load_earlier(self, state: dict[str, Tensor]) -> None:
        """Take over what an earlier pass trained, the uppermost layers and the head; those below begin as packaged."""
        more = len(self.layers) - trained_layers(state)
        moved = {
            re.sub(r"(?<=^layers\.)\d+", lambda number: str(int(number[0]) + more), key): value
            for key, value in state.items()
        }
        self.load_state_dict(self.state_dict() | moved)

    def forward(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        for layer in self.layers:
            hidden = layer(hidden, _blocked(mask))
            if self.training:  # one mask for all pieces of a window
                kept = (torch.rand(hidden.shape[0], 1, WIDTH) >= DROPPED / 2).float()
                hidden = hidden * kept / (1 - DROPPED / 2)
        odds: Tensor = self.head(hidden).squeeze(-1)
        return odds


def trained_layers(state: dict[str, Tensor]) -> int:
    """How many layers a pass trained, of the weights that it left."""
    return len({key.split(".")[1] for key in state if key.startswith("layers.")})


class InjectionNetwork(nn.Module):
    """Both together, for the export: one window at a time, so that no mask is needed."""

    def __init__(self, lower: Lower, upper: Upper) -> None:
        super().__init__()
        self.lower, self.upper = lower, upper

    def forward(self, ids: Tensor) -> Tensor:
        odds: Tensor = self.upper(self.lower(ids))
        return odds
