"""The reference of the Python modules, one page for each room, as directives that mkdocstrings reads."""

from __future__ import annotations

import ast
from pathlib import Path

FOLDER = "reference/python"

OPTIONS = "    options:\n      show_root_heading: false\n      show_root_toc_entry: false\n"
"""The module's name is the heading above the directive already."""


def module_pages(package: Path) -> dict[str, str]:
    """Pages as Markdown by their path below `docs`: one for each folder of the package that holds modules."""
    rooms = {
        path.parent.relative_to(package).as_posix(): _purpose(path)
        for path in sorted(package.rglob("__init__.py"))
        if path.parent != package and len(list(path.parent.glob("*.py"))) > 1
    }
    pages = {f"{FOLDER}/{room}.md": _page(package, room, sorted((package / room).glob("*.py"))) for room in rooms}
    top = [path for path in sorted(package.glob("*.py")) if path.stem != "__init__"]
    pages[f"{FOLDER}/unpoison.md"] = _page(package, "unpoison", top)
    rows = "\n".join(f"| [unpoison.{_dotted(room)}]({room}.md) | {what} |" for room, what in rooms.items())
    pages[f"{FOLDER}/index.md"] = (
        "# Python\n\nMade from the docstrings when this site was built. The names that most programs need are in "
        "`unpoison` itself.\n\n| modules | what is in them |\n| --- | --- |\n"
        f"| [unpoison](unpoison.md) | passages, results, pipeline, requests, errors |\n{rows}\n"
    )
    return pages


def _page(package: Path, room: str, modules: list[Path]) -> str:
    title = "unpoison" if room == "unpoison" else f"unpoison.{_dotted(room)}"
    names = [
        path.relative_to(package.parent).with_suffix("").as_posix().removesuffix("/__init__").replace("/", ".")
        for path in modules
        if _public(path)
    ]
    parts = [f"## {name}\n\n::: {name}\n{OPTIONS}" for name in names]
    return f"# {title}\n\n" + "\n".join(parts)


def _dotted(room: str) -> str:
    return room.replace("/", ".")


def _purpose(init: Path) -> str:
    """The first sentence of a folder's docstring, on one line of a table."""
    doc = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
    return doc.split("\n")[0].rstrip(".")


def _public(path: Path) -> bool:
    """Whether a module says what it offers, and offers something of its own."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}
    return any(not name.startswith("_") for name in own)
