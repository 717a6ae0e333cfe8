"""What the build of the site adds to the pages: the reference, made from the program, and links that leave `docs`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from posixpath import normpath
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # the modules beside this one; MkDocs loads a hook by its path

from commands import command_pages
from modules import module_pages

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(\]\()(\.\./[^)#\s]+)")
GENERATED = {**command_pages(), **module_pages(ROOT / "src" / "unpoison")}


def on_config(config: Any) -> Any:
    """List the generated pages in the navigation, below the index of their folder, and the defenses that it lacks."""
    listed = str(config.nav)
    others = sorted(f"defenses/{page.name}" for page in (ROOT / "docs" / "defenses").glob("*.md"))
    defenses = next(section["Defenses"] for section in config.nav if "Defenses" in section)
    defenses.append({"The rest of the field": [page for page in others if f"'{page}'" not in listed]})
    reference = next(section["Reference"] for section in config.nav if "Reference" in section)
    for entry in reference:
        if isinstance(entry, dict):
            ((title, index),) = entry.items()
            folder = index.removesuffix("index.md")
            entry[title] = [index, *(path for path in GENERATED if path.startswith(folder) and path != index)]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the reference of the command line and of the Python modules."""
    from mkdocs.structure.files import File

    for path, text in GENERATED.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links to files outside `docs` lead to the repository, for the site does not have them."""

    def absolute(match: re.Match[str]) -> str:
        place = normpath(f"docs/{page.file.src_uri}/../{match[2]}")
        if place.startswith("docs/") or not (ROOT / place).exists():
            return match[0]
        return f"{match[1]}{config.extra['repository']}/blob/main/{place}"

    return LINK.sub(absolute, markdown)
