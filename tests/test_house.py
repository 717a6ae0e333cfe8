"""The page on the architecture says what is there: its picture is the contract's, its files exist."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "unpoison"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_picture_is_drawn_from_the_import_contract():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "draw_house.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_every_folder_is_in_the_picture_once():
    picture = (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")
    names = re.findall(r"<text x=[^>]*>([a-z]+)</text>", picture)
    assert sorted(names) == sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([a-z_/]+/[a-z_]+\.(?:py|md))`", PAGE))))
def test_every_file_that_the_page_names_exists(path: str):
    assert (PACKAGE / path).exists() or (ROOT / path).exists()


@pytest.mark.parametrize(("place", "budget"), [("README.md", 900), ("docs", 60_000)])
def test_the_words_of_the_documentation_stay_within_their_budget(place: str, budget: int):
    pages = [ROOT / place] if place.endswith(".md") else sorted((ROOT / place).rglob("*.md"))
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= budget


def test_a_class_name_means_one_thing():
    """Of public classes of modules; two adapters of frameworks share the name of the tool that they make."""
    places: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path.relative_to(PACKAGE).as_posix())
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert set(twice) <= {"ScreeningTool"}, twice
