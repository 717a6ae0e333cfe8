"""The model hub, asked in seconds whether it is there: its own client waits for minutes, file by file."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

from unpoison.errors import ModelError, clip
from unpoison.utils.extras import require

__all__ = ["SECONDS", "from_disk", "need_hub"]

SECONDS = 5.0
"""How long the hub has to answer a first request; a name server, a proxy or a firewall may stay silent for longer."""


def from_disk(name_or_path: str) -> bool:
    """Whether a checkpoint is to be read from disk alone: a folder, or a download of before while the hub is away.

    Raises:
        ModelError: It is neither, and the hub does not answer.
    """
    if Path(name_or_path).is_dir():
        return True
    library = require("huggingface_hub", "loading a checkpoint by its name")
    if library.constants.HF_HUB_OFFLINE:
        return False  # the library itself then reads what was downloaded, and says so where nothing was
    try:
        need_hub(f"there is no folder {clip(name_or_path, 200)}")
    except ModelError:
        if isinstance(library.try_to_load_from_cache(name_or_path, "config.json"), str):
            return True
        raise
    return False


def need_hub(why: str) -> None:
    """See that the model hub answers, whatever it says, within five seconds.

    Args:
        why: The begin of the sentence, such as "there is no folder 'x'".

    Raises:
        ModelError: It does not.
    """
    library = require("huggingface_hub", "the model hub")
    endpoint = library.constants.ENDPOINT
    problem = [f"no answer within {SECONDS:g} seconds"]

    def ask() -> None:
        try:
            library.utils.get_session().head(endpoint, timeout=SECONDS)
        except Exception as error:  # of the client's library, which differs between versions
            problem[:] = [" ".join(str(error).split()) or type(error).__name__]
        else:
            problem.clear()

    asking = Thread(target=ask, daemon=True, name="unpoison-hub")  # looking up a name has no timeout of its own
    asking.start()
    asking.join(SECONDS)
    if problem:
        raise ModelError(
            f"{why}, and the model hub at {endpoint} cannot be reached ({clip(problem[0], 120)}); give a folder, or "
            "download it where there is a network and set HF_HUB_OFFLINE=1"
        )
