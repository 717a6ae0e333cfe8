"""Run the notebooks of examples/notebooks and keep what they show.

    python tools/run_notebooks.py            # all of them, in place

Counters, times and identifiers are left out, so that a run changes a file only where its outputs changed.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "notebooks"


def run(path: Path) -> nbformat.NotebookNode:
    """The notebook with the outputs of a run in its own folder.

    Raises:
        CellExecutionError: A cell failed.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=600, resources={"metadata": {"path": str(path.parent)}}, record_timing=False
    )
    client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count = None
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = None
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(run(path), path)
        print(path.name)
