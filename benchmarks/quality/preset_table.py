"""A paper's table as it stands in the docs: published numbers beside measured ones, and the measured cells.

python -m benchmarks preset_table trustrag-table-6 evaluation-data -e minilm

The run is kept in `build/presets/NAME` and goes on where it was stopped. Times, problems and the manifest are left out:
`unpoison evaluate --preset NAME DATA --report NAME.html` shows them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from unpoison.bench.evaluation.presets import load_preset
from unpoison.bench.evaluation.runner import Runner
from unpoison.bench.report import Report, as_markdown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("data", type=Path)
    parser.add_argument("-e", "--encoder", default="lexical")
    parser.add_argument("-g", "--generator")
    parser.add_argument("--nli")
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    models = {"encoder": arguments.encoder, "generator": arguments.generator, "nli": arguments.nli}
    preset = load_preset(arguments.name, data=arguments.data, **models)

    def progress(done: int, total: int, _doing: str) -> None:
        print(f"\r{done:,} of {total:,}", end="", file=sys.stderr, flush=True)

    folder = arguments.folder or Path("build/presets") / arguments.name
    run = Runner(folder, preset.scenarios, progress=progress).run()
    text = as_markdown(Report.of(run, preset=preset))
    lead, _, rest = text.partition("\n## ")
    print("\n".join(lead.splitlines()[2:]))
    for section in rest.split("\n## "):
        if not section.startswith(("Time and cost", "Problems", "Manifest", "Differences")):
            print(f"\n## {section.strip()}")


if __name__ == "__main__":
    main()
