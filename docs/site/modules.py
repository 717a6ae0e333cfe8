"""The reference of the Python modules, one page for each room, as directives that mkdocstrings reads."""

from __future__ import annotations

import ast
from pathlib import Path

FOLDER = "reference/python"

ROOMS = {
    "defenses": "which passages to trust, and what the answer is in spite of the others",
    "attacks": "poisoned passages for a target, and wrappers that change how they look",
    "models": "encoders, generators, NLI models, readers, test doubles",
    "retrieval": "a question to passages with the store's vectors",
    "evaluation": "data sets, injection, metrics, scenarios, report",
    "redteam": "tests of running systems",
    "questions": "one's own documents to questions with a true and a false answer",
    "at_rest": "poison in an index, in a log, behind an answer",
    "beliefs": "what RADAR remembers of a question",
    "integrations": "LangChain, LlamaIndex, Haystack",
    "batch": "whole files, local and on Ray",
    "service": "the HTTP service",
    "kernels": "arrays and texts: the equations of the papers",
}
"""The folders of the package and what is in them."""


OPTIONS = "    options:\n      show_root_heading: false\n      show_root_toc_entry: false\n"
"""The module's name is the heading above the directive already."""


def module_pages(package: Path) -> dict[str, str]:
    """Pages as Markdown by their path below `docs`."""
    pages = {f"{FOLDER}/{room}.md": _page(package, room, sorted((package / room).glob("*.py"))) for room in ROOMS}
    top = [path for path in sorted(package.glob("*.py")) if path.stem != "__init__"]
    pages[f"{FOLDER}/unpoison.md"] = _page(package, "unpoison", top)
    rows = "\n".join(f"| [unpoison.{room}]({room}.md) | {what} |" for room, what in ROOMS.items())
    pages[f"{FOLDER}/index.md"] = (
        "# Python\n\nMade from the docstrings when this site was built. The names that most programs need are in "
        "`unpoison` itself.\n\n| modules | what is in them |\n| --- | --- |\n"
        f"| [unpoison](unpoison.md) | passages, results, pipeline, requests, errors |\n{rows}\n"
    )
    return pages


def _page(package: Path, room: str, modules: list[Path]) -> str:
    title = "unpoison" if room == "unpoison" else f"unpoison.{room}"
    names = [
        path.relative_to(package.parent).with_suffix("").as_posix().replace("/", ".")
        for path in modules
        if _public(path)
    ]
    parts = [f"## {name}\n\n::: {name}\n{OPTIONS}" for name in names]
    return f"# {title}\n\n" + "\n".join(parts)


def _public(path: Path) -> bool:
    """Whether a module says what it offers, and offers something of its own."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}
    return any(not name.startswith("_") for name in own)
