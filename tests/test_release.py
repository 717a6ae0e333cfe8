"""What has to be true of a release: the same bytes twice, versions that agree, extras tried."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from needs import need
from unpoison import __version__

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def built(source: Path, target: Path, kind: str) -> Path:
    """A wheel or source archive of a folder, at a time that a release would give it."""
    need("hatchling")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1767225600"}
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(target)]
    subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True)
    (archive,) = target.iterdir()
    return archive


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The sources as another machine has them: other times, other permissions, other places."""
    folder = tmp_path_factory.mktemp("elsewhere")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", "NOTICE", ".gitignore"):
        shutil.copyfile(ROOT / name, folder / name)
    for number, path in enumerate(folder.rglob("*")):
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))
        if path.is_file():
            path.chmod(0o600)
    return folder


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_two_machines_build_the_same_bytes(kind, copy, tmp_path):
    here, there = (built(source, tmp_path / name, kind) for source, name in ((ROOT, "here"), (copy, "there")))
    assert here.name == there.name
    assert here.read_bytes() == there.read_bytes()
    assert here.stat().st_size < 42_000_000  # the injection model is 37 MB of it
    if kind == "wheel":
        names = zipfile.ZipFile(here).namelist()
        assert "unpoison/py.typed" in names
        assert all(
            name.startswith(("unpoison/", "unpoison_lab/", f"unpoison-{__version__}.dist-info/")) for name in names
        )
        assert not any(name.endswith((".gif", ".png")) for name in names)
        metadata = zipfile.ZipFile(here).read(f"unpoison-{__version__}.dist-info/METADATA").decode()
        for line in ("License-Expression: Apache-2.0", "Project-URL: Documentation, https://", "License-File: NOTICE"):
            assert line in metadata


def test_versions_agree():
    heading = re.search(r"^## (\S+) - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heading is not None
    assert heading[1] == __version__
    assert heading[2] == "unreleased" or re.fullmatch(r"\d{4}-\d\d-\d\d", heading[2])
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == __version__
    reader = ROOT / "packages" / "unpoison-reader"
    declared = tomllib.loads((reader / "pyproject.toml").read_text())["project"]["version"]
    assert f'__version__ = "{declared}"' in (reader / "src" / "unpoison_reader" / "__init__.py").read_text()


def test_the_four_papers_are_cited():
    document = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert [paper["title"].partition(":")[0] for paper in document["references"]] == [
        "GRADA",
        "Rescuing the Unpoisoned",
        "TrustRAG",
        "RADAR",
    ]
    assert all(paper["authors"] and paper["year"] and paper["url"] for paper in document["references"])


def test_the_workflow_gives_no_more_rights_than_needed_and_runs_every_python():
    document = yaml.safe_load((ROOT / ".github" / "workflows" / "check.yml").read_text())
    assert document["permissions"] == {"contents": "read"}
    tested = document["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert tested == [text.rpartition(" ")[2] for text in PYPROJECT["project"]["classifiers"] if ":: 3." in text]


def test_there_is_one_way_to_install() -> None:
    """The name is registered nowhere: whoever registers it would be installed by any other command."""
    pages = [ROOT / "README.md", *(p for folder in ("docs", "examples", "deploy") for p in (ROOT / folder).rglob("*"))]
    lines = [
        f"{page.relative_to(ROOT)}: {line.strip()}"
        for page in pages
        if page.is_file() and page.suffix in ("", ".md", ".yaml", ".yml", ".service", ".py", ".txt", ".toml")
        for line in page.read_text(encoding="utf-8").splitlines()
        if re.search(
            r"pip3? install [^\n]*(?<![\w./-])['\"]?unpoison(?:-reader)?\b(?!(?:-reader)?(?:\[[\w,]+\])? @ git\+)", line
        )
    ]
    assert not lines
