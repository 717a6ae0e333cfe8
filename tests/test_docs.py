"""The code that the documentation shows runs and prints what is shown, and the names that it shows exist."""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

import documents
from unpoison import models
from unpoison.core import registry
from unpoison.defenses.base import ScreeningOptions
from unpoison.models import ExtractiveReader, FakeEncoder

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NEEDS_A_MODEL = (
    *("OpenAIGenerator", "AnthropicGenerator", "TransformersGenerator"),
    *("CrossEncoderNLI", "Rerank(", "minilm", "my_llm"),
)


OWN = r"https://(?:raw\.githubusercontent|github)\.com/unpoison/unpoison"
"""Where the project lives; a README on a package page has no folder to be relative to."""

YOURS = {"query", "passages", "generator", "encoder", "clean_texts", "my_llm"}
"""Names that a snippet may use without making them; docs/quickstart.md says what they are."""


def blocks(page: Path) -> list[documents.Block]:
    return [block for block in documents.blocks(page) if block.language == "python" and not block.title]


PACKAGES = {
    "integrations.langchain": "langchain_core",
    "langchain_core": "langchain_core",
    "integrations.llamaindex": "llama_index.core",
    "integrations.haystack": "haystack",
    "agents.langchain": "langchain",
    "agents.openai_agents": "agents.run",
    "agents.pydantic_ai": "pydantic_ai",
    "qdrant:": "qdrant_client",
}
"""What a snippet mentions -> the package that it needs, which `make test` does not install."""


NOT_IN_TABLES = {"shell", "generator", "cross_encoder", "retriever"}
"""Arguments that a page describes in its text."""


def shown(page: Path, block: documents.Block, number: int) -> Any:
    packages = [package for mention, package in PACKAGES.items() if mention in block.text]
    marks = [pytest.mark.needs(*packages)] if packages else []
    return pytest.param(page, block, id=f"{page.stem}-{number}", marks=marks)


SHOWN = [shown(page, block, i) for page in PAGES for i, block in enumerate(blocks(page))]


@pytest.mark.parametrize(("page", "block"), SHOWN)
def test_every_snippet_begins_with_its_imports_and_makes_what_it_uses(page: Path, block: documents.Block) -> None:
    tree = ast.parse(block.text)
    assert isinstance(tree.body[0], ast.Import | ast.ImportFrom), f"{page.name}: a snippet without its import"
    nodes = list(ast.walk(tree))
    defined = {
        (name.asname or name.name).split(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    defined |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)}
    defined |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    defined |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    assert used - defined - set(dir(builtins)) <= YOURS, f"{page.name} uses names that it does not make"


@pytest.mark.parametrize(("page", "block"), SHOWN)
def test_every_name_that_is_imported_exists(page: Path, block: documents.Block) -> None:
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                assert hasattr(importlib.import_module(node.module), name.name), f"{page.name} imports {name.name}"


NO_MODULES = {
    "ablations",
    "attacks",
    "calls",
    "checks",
    "commands",
    "cross_encoders",
    "encoders",
    "generators",
    "injection_models",
    "nli",
}
"""What stands behind `unpoison.` and is no module: groups of entry points, and the suffix of a file."""


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_every_dotted_name_of_a_page_exists(page: Path) -> None:
    for name in sorted(set(re.findall(r"\bunpoison((?:\.[A-Za-z_]\w*)+)", page.read_text(encoding="utf-8")))):
        if name.removeprefix(".") not in NO_MODULES:
            assert exists("unpoison" + name), f"{page.name} names unpoison{name}"


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or a name in one; a module whose extra is not installed counts by its file."""
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        module = ".".join(parts[:i])
        try:
            if importlib.util.find_spec(module) is None:
                continue
        except ModuleNotFoundError:
            continue
        try:
            found = importlib.import_module(module)
        except ImportError:
            return True
        return i == len(parts) or (i == len(parts) - 1 and hasattr(found, parts[-1]))
    return False


OFFLINE = [case for case in SHOWN if not any(name in case.values[1].text for name in NEEDS_A_MODEL)]


def printing(case: Any) -> Any:
    """What prints is compared to the letter, so it must be the same on every processor."""
    page, block = case.values
    return pytest.param(page, block, id=case.id, marks=[*case.marks, *([pytest.mark.seeded] if block.printed else [])])


@pytest.mark.parametrize(("page", "block"), [printing(case) for case in OFFLINE])
def test_what_needs_no_model_runs_and_prints_what_is_shown(
    page: Path,
    block: documents.Block,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {
        "query": "where do the sharks play",
        "passages": ["The Sharks play at the SAP Center.", "The arena opened in 1993.", "Sharks swim in the sea."],
        "generator": ExtractiveReader(),
        "encoder": FakeEncoder(),
    }
    exec(compile(block.text, str(page), "exec"), names)  # noqa: S102  our own documentation
    if block.printed:
        printed = capsys.readouterr().out
        assert documents.prints_as_shown(printed, block.printed), f"{page.name} shows another output than\n{printed}"


def test_output_is_compared_and_not_only_run() -> None:
    assert documents.prints_as_shown("kept 4 of 5\n  0.93 why \n", "kept 4 of 5\n  ... why")
    assert documents.prints_as_shown("one\ntwo\nthree\n", "one\n...\nthree\n")
    assert not documents.prints_as_shown("kept 4 of 5\n", "kept 3 of 5\n")
    assert not documents.prints_as_shown("one\ntwo\n", "one\n")
    assert sum(bool(case.values[1].printed) for case in SHOWN) >= 5


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"


def test_the_readme_works_on_a_package_page() -> None:
    """Its links are whole addresses, and those into this project lead to files that are here."""
    text = (ROOT / "README.md").read_text()
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert [link for link in links if not link.startswith("https://")] == []
    own = [re.fullmatch(rf"{OWN}/(?:blob/)?main/([^#]+)(#.*)?", link) for link in links if "unpoison/unpoison" in link]
    assert len(own) > 10
    assert [match[1] for match in own if match and not (ROOT / match[1]).exists()] == []
    assert all(own)


def test_every_model_string_of_the_documentation_is_known() -> None:
    text = (ROOT / "docs" / "models.md").read_text()
    for name in ("lexical", "minilm"):
        assert f"`{name}`" in text
        assert models.load_encoder


TABLE = re.compile(r"(?:`([\w-]+)`:\n\n)?\| option \| default.*\n\|[-| ]+\n((?:\|.*\n)+)")


def option_tables() -> list[Any]:
    """Every table of options: the kind and name that it is about, and the options in it with their defaults."""
    found = []
    for kind in ("defenses", "attacks"):
        for page in sorted((ROOT / "docs" / kind).glob("*.md")):
            for match in TABLE.finditer(page.read_text(encoding="utf-8")) if page.stem != "index" else ():
                rows = [row.strip("|").split("|") for row in match[2].splitlines()]
                options = {name: row[1].strip().strip("`") for row in rows for name in re.findall(r"`(\w+)`", row[0])}
                found.append(pytest.param(kind, match[1] or page.stem, options, id=f"{kind}-{match[1] or page.stem}"))
    return found


@pytest.mark.parametrize(("kind", "name", "options"), option_tables())
def test_a_table_of_options_has_those_that_there_are(kind: str, name: str, options: dict[str, str]) -> None:
    parameters = registry.parameters(registry.find(kind, name))
    shared = set(ScreeningOptions.__annotations__)
    assert set(options) - set(parameters) - shared == set()
    assert set(parameters) - set(options) - shared - NOT_IN_TABLES == set()
    for option, shown in options.items():
        default = parameters[option].default if option in parameters else None
        if isinstance(default, bool | int | float):
            assert shown == str(default).lower(), option


def test_every_module_that_a_page_names_is_there() -> None:
    """`algorithms/centrality.py` stands in one of the two packages, in the tests or at the root."""
    places = [ROOT / folder for folder in ("", "src", "src/unpoison", "src/unpoison_lab", "tests")]
    pages = [*PAGES, ROOT / "CONTRIBUTING.md"]
    named = {
        (page.name, name)
        for page in pages
        for name in re.findall(r"[`\s]((?:\w+/)+\w+\.py)\b", page.read_text(encoding="utf-8"))
    }
    assert len(named) > 60
    assert [one for one in sorted(named) if not any((place / one[1]).is_file() for place in places)] == []


def test_one_page_says_how_this_version_is_installed() -> None:
    """Others name the extra; before a release `pip install 'unpoison[...]'` cannot work."""
    sources = [*PAGES, *sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "packages").glob("*/README.md"))]
    home = {ROOT / "docs" / "quickstart.md", ROOT / "src" / "unpoison" / "utils" / "extras.py"}
    assert [path.name for path in sources if "unpoison[" in path.read_text(encoding="utf-8") and path not in home] == []
