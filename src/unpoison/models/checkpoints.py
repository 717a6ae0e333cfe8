"""Shared by the adapters to local checkpoints: loading without progress bars, batches, valid texts for tokenizers.

Whether the model hub is reachable is checked within seconds, because its own client waits for minutes, file by file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import ModelError, UnpoisonError, clip
from unpoison.utils.extras import require
from unpoison.utils.plain_text import encodable
from unpoison.utils.processes import Remade

__all__ = [
    "NamedModel", "checkpoint_errors", "from_disk", "in_batches", "load_pretrained", "model_name", "sigmoid", "softmax",
]  # fmt: skip


class NamedModel(Remade):
    """A model named by its option string: a kind, a colon, a checkpoint, options."""

    name: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name.partition(':')[2] or self.name!r})"


@contextmanager
def checkpoint_errors(name: str) -> Iterator[None]:
    """Load a checkpoint of the transformers library without progress bars; errors name the checkpoint.

    Raises:
        ModelError: The checkpoint is missing, incomplete or of another kind.
    """
    logging = require("transformers.utils.logging", "loading a checkpoint")
    shows_progress = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    except UnpoisonError:
        raise
    except Exception as error:  # for a bad folder: OSError, ValueError, KeyError, SafetensorError, ...
        reason = " ".join(str(error).split())
        raise ModelError(
            f"cannot load the checkpoint {clip(name, 200)} ({type(error).__name__}: {clip(reason, 200)}); "
            "give a folder written by save_pretrained, or a name on the model hub"
        ) from error
    finally:
        if shows_progress:
            logging.enable_progress_bar()


def load_pretrained(
    kind: str, path: str, purpose: str, device: str | None = None, **options: Any
) -> tuple[Any, Any, list[str]]:
    """Load a checkpoint of the transformers library. Code in a checkpoint is never run.

    Args:
        kind: The library's name of the model class, such as "CausalLM".
        path: A folder, or a name on the model hub.
        purpose: For the error if an extra is missing.
        device: "cpu", "cuda", ...; None for a GPU if there is one.
        options: For the model's `from_pretrained`.

    Returns:
        The tokenizer, the model in evaluation mode, and the names of missing weights.

    Raises:
        MissingExtraError: The extra `torch` is not installed.
        ModelError: The checkpoint cannot be loaded.
    """
    torch, library = require("torch", purpose), require("transformers", purpose)
    with checkpoint_errors(path):
        where = {"local_files_only": from_disk(path), "trust_remote_code": False}
        tokenizer = library.AutoTokenizer.from_pretrained(path, **where)
        loader = getattr(library, f"AutoModelFor{kind}")
        model, report = loader.from_pretrained(path, output_loading_info=True, **where, **options)
        model = model.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval()
    return tokenizer, model, sorted(report["missing_keys"])


def model_name(name: str, options: Mapping[str, object], **usual: object) -> str:
    """A model's name with the options that have unusual values; it identifies a model in records and caches.

    Args:
        name: `kind:model`.
        options: Options that change the model's results; None counts as usual.
        usual: Their usual values.
    """
    return name + "".join(f",{key}={value}" for key, value in options.items() if value != usual.get(key))


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logits to probabilities along the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probabilities: NDArray[np.float64] = powers / powers.sum(axis=-1, keepdims=True)
    return probabilities


def sigmoid(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logits to probabilities, element by element."""
    return 0.5 * (1 + np.tanh(logits / 2))


def in_batches(
    pairs: Sequence[tuple[str, str]],
    batch_size: int,
    run: Callable[[list[tuple[str, str]]], NDArray[np.floating]],
    name: str,
) -> NDArray[np.float64]:
    """Run a model over pairs of texts, sorted by length to reduce padding; results are in input order.

    Raises:
        ModelError: A value is not finite.
    """
    clean = [(encodable(left), encodable(right)) for left, right in pairs]
    order = np.argsort([-len(left) - len(right) for left, right in clean], kind="stable")
    parts = [run([clean[i] for i in order[at : at + batch_size]]) for at in range(0, len(order), batch_size)]
    rows = np.concatenate(parts).astype(np.float64)
    if not np.isfinite(rows).all():
        raise ModelError(f"{name} returned a value that is not finite; load it in float32 or use another model")
    result = np.empty_like(rows)
    result[order] = rows
    return result


SECONDS = 5.0
"""Timeout of the first request to the hub; a name server, a proxy or a firewall may not answer for longer."""


def from_disk(name_or_path: str) -> bool:
    """Whether to read a checkpoint from disk only: it is a folder, or it was downloaded and the hub is unreachable.

    Raises:
        ModelError: Neither, and the hub does not answer.
    """
    if Path(name_or_path).is_dir():
        return True
    library = require("huggingface_hub", "loading a checkpoint by its name")
    if library.constants.HF_HUB_OFFLINE:
        return False  # the library then reads the download, or reports that there is none
    endpoint, problem = library.constants.ENDPOINT, [f"no answer within {SECONDS:g} seconds"]

    def ask() -> None:
        try:
            library.utils.get_session().head(endpoint, timeout=SECONDS)
        except Exception as error:  # its type differs between versions of the client's library
            problem[:] = [" ".join(str(error).split()) or type(error).__name__]
        else:
            problem.clear()

    asking = Thread(target=ask, daemon=True, name="unpoison-hub")  # a DNS lookup has no timeout
    asking.start()
    asking.join(SECONDS)
    if not problem or isinstance(library.try_to_load_from_cache(name_or_path, "config.json"), str):
        return bool(problem)
    raise ModelError(
        f"there is no folder {clip(name_or_path, 200)}, and the model hub at {endpoint} cannot be reached "
        f"({clip(problem[0], 120)}); give a folder, or download it on a machine with network access and set "
        "HF_HUB_OFFLINE=1"
    )
