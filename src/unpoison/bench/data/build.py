"""Build evaluation files: licences first, then the sources, then the file, compared with the pinned hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from unpoison.bench.data.catalogue import DataFile, Licence, data_file, licences, recipe
from unpoison.bench.data.origins import Folder, Kept, Origin
from unpoison.bench.data.readers import strings
from unpoison.bench.data.recipes import SourceFile, rebuild
from unpoison.bench.data.store import Store, digest_of
from unpoison.errors import InputError, OptionError
from unpoison.utils.threads import parallel_map

__all__ = ["Terms", "build", "check_folder", "origin_of", "with_companions"]

AT_ONCE = 8
"""Source files that are asked for side by side."""


def with_companions(names: Iterable[str]) -> list[DataFile]:
    """The named files, each once, and those that belong to them: `corpus` fills the contexts of many."""
    named = [data_file(name) for name in names]
    companions = [data_file(name) for file in named for name in file.companions]
    return list(dict.fromkeys([*named, *companions]))


class Terms:
    """Which licences the user of a store has accepted; asked once, remembered in the store.

    Args:
        store: Whose.
        ask: Shows the terms and says whether they are accepted; None where nobody can be asked.
    """

    def __init__(self, store: Store, ask: Callable[[Licence, Sequence[str]], bool] | None = None) -> None:
        self._store = store
        self._path = store.folder / "accepted-licences.json"
        self._ask = ask

    def accepted(self) -> set[str]:
        """The slugs of what was accepted before."""
        try:
            slugs = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return set()
        return {slug for slug in slugs if isinstance(slug, str)} if isinstance(slugs, list) else set()

    def accept(self, slugs: Iterable[str]) -> None:
        """Remember that licences are accepted.

        Raises:
            OptionError: No source has such a licence.
        """
        known = licences()
        for slug in slugs:
            if slug not in known:
                raise OptionError(f"--accept-licence {slug}: no source has it; known: all, {', '.join(known)}")
        together = sorted(self.accepted() | set(slugs))
        if set(together) != self.accepted():
            self._store.write(self._path, json.dumps(together).encode())

    def check(self, files: Iterable[DataFile]) -> None:
        """See that what must be accepted was accepted, asking where somebody can be asked.

        Raises:
            InputError: Something is not accepted; the message has the terms and the option.
        """
        open_ = dict[str, list[str]]()
        for file in files:
            for slug in file.licences:
                if licences()[slug].accept and slug not in self.accepted():
                    open_.setdefault(slug, []).append(file.name)
        refused = []
        for slug, names in open_.items():
            if self._ask is not None and self._ask(licences()[slug], names):
                self.accept([slug])
            else:
                refused.append(slug)
        if refused:
            terms = "; ".join(f"{licences()[slug]} ({', '.join(open_[slug])})" for slug in refused)
            raise InputError(
                f"nothing was downloaded; these terms must be accepted first: {terms}. To accept: "
                f"--accept-licence {','.join(refused)}"
            )


def build(
    file: DataFile,
    store: Store,
    origin: Origin,
    given: Path | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, word: None,
) -> bool:
    """Put an evaluation file into a store, with the very bytes that the documented tables were measured on.

    Args:
        file: Which.
        store: Where to.
        origin: Where its source files come from.
        given: A folder that may hold the built file itself, which is compared and copied then.
        progress: Told about each source file: how many are done, of how many, and its path.

    Returns:
        Whether anything was done; False where the file was there already.

    Raises:
        InputError: A source cannot be had, or what comes out is another file. Nothing is left under the file's name
            that was not compared.
    """
    if store.has(file) and digest_of(store.path(file)) == file.sha256:
        return False
    ready = None if given is None else given / f"{file.name}.jsonl"
    if ready is not None and ready.is_file():
        content = ready.read_bytes() if ready.stat().st_size == file.bytes else b""
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise InputError(
                f"{ready} is not the file that the tables were measured on (SHA-256 {file.sha256[:16]}...)"
            )
    else:
        content = _rebuilt(file, origin, progress)
    store.write(store.path(file), content)
    return True


def _rebuilt(file: DataFile, origin: Origin, progress: Callable[[int, int, str], None]) -> bytes:
    plan = recipe(file)

    def read(source: SourceFile) -> list[str]:
        return strings(origin.read(source), source.path)

    read_strings = list[list[str]]()
    for texts in parallel_map(read, plan.sources, AT_ONCE, "unpoison-data"):
        read_strings.append(texts)
        progress(len(read_strings), len(plan.sources), plan.sources[len(read_strings) - 1].path)
    content = "".join(f"{line}\n" for line in rebuild(plan, read_strings)).encode()
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise InputError(f"{file.name}: what the sources give is another file; this is a defect, please report it")
    return content


def check_folder(files: Iterable[DataFile], folder: Path) -> dict[str, str]:
    """What is to be said of each file in a folder of built ones.

    Returns:
        By name: "" where its hash is the pinned one, else what is wrong; files that are absent are left out.
    """
    said = {}
    for file in files:
        path = folder / f"{file.name}.jsonl"
        if path.is_file():
            right = path.stat().st_size == file.bytes and digest_of(path) == file.sha256
            said[file.name] = "" if right else "is not the file that the tables were measured on"
    return said


def origin_of(store: Store, given: Path | None, downloads: Callable[[], Origin]) -> Origin:
    """A folder where one is given, which needs no network, else the public repositories; what came before is kept."""
    return Folder(given) if given is not None else Kept(store, downloads())
