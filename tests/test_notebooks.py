"""The notebooks run, and what is kept in them is what a run shows."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
TRY_IT = FOLDER / "try_it.ipynb"
"""To be edited, in Colab as well: nothing is kept in it, and no kernel is needed to run it."""


def printed(notebook) -> list[str]:
    outputs = (output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs)
    return [output["text"] for output in outputs if output.output_type == "stream"]


def pictures(notebook) -> int:
    return sum("image/png" in o.get("data", {}) for cell in notebook.cells for o in cell.get("outputs", ()))


@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path != TRY_IT], ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning", "ignore::ResourceWarning")
@pytest.mark.needs("nbformat", "ipykernel", "nbclient")
def test_a_notebook_shows_what_it_keeps(path):
    import nbformat

    spec = importlib.util.spec_from_file_location("run_notebooks", ROOT / "tools" / "run_notebooks.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    kept, shown = nbformat.read(path, as_version=4), tool.run(path)
    assert printed(kept) == printed(shown), "run `make notebooks` and look at what changed"
    assert pictures(kept) == pictures(shown) > 0


def test_links_of_notebooks_lead_somewhere():
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_the_notebook_to_try_it_runs_cell_by_cell(capsys):
    names = {}
    for cell in json.loads(TRY_IT.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), TRY_IT.name, "exec"), names)  # noqa: S102  our own notebook
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "agreed | The Vasa Museum is in the city of Stockholm."
    assert shown[1].startswith("DROP | The Vasa Museum is in Gothenburg.")
    assert shown[4] == "The ship sank in 1628. [removed] She was raised in 1961."
    assert [line[:4] for line in shown[5:]] == ["kept", "DROP"]
