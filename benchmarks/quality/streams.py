"""RADAR with and without its memory, and static defenses adapted in the paper's two ways, over time.

    python -m benchmarks streams
    python -m benchmarks streams --data radar-dynamic:dynamic.json --generator openai:gpt-4o-mini --nli cross:NAME

The methods of `docs/results.md`; `unpoison evaluate --stream timeline` measures any others in the same way. `unneeded`
is the share of right answers that are lost although the truth has not changed; `followed` the share of genuine changes
that are answered rightly before the next one, `lag` the mean number of steps until then; `bytes` what is kept for a
question at the end. 95 % Wilson intervals.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from unpoison.bench.evaluation.adaptations import Method
from unpoison.bench.evaluation.streams import run_study
from unpoison.bench.evaluation.timelines import DATED
from unpoison.bench.report.over_time import as_markdown, page

METHODS = {
    "vanilla, each step": Method("vanilla", "nothing"),
    "vanilla, cumulative": Method("vanilla", "passages"),
    "vanilla, history": Method("vanilla", "answer"),
    "trustrag, cumulative": Method("trustrag", "passages"),
    "trustrag, history": Method("trustrag", "answer"),
    "radar, static": Method("radar", "nothing"),
    "radar, cumulative": Method("radar", "passages"),
    "radar, history": Method("radar", "answer"),
    "radar, dynamic": Method("radar", "beliefs"),
    "radar, dynamic, fallback=abstain": Method("radar:fallback=abstain", "beliefs"),
    "radar, dynamic, reference": Method("radar:mode=reference", "beliefs"),
}

DRAWN = ("vanilla, each step", "vanilla, history", "radar, static", "radar, history", "radar, dynamic")
"""The methods in the pictures."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="timeline", help="the built-in sample, radar-dynamic:FILE, or a file")
    parser.add_argument("--generator", default="extractive")
    parser.add_argument("--nli", default="lexical")
    parser.add_argument("--dated", action="store_true", help="tell the time of a question, as the released code does")
    parser.add_argument("--limit", type=int, help="the first N questions only")
    parser.add_argument("--html", type=Path, help="write the page with its pictures into this file")
    options = parser.parse_args()
    study = run_study(
        DATED + options.data if options.dated else options.data,
        METHODS,
        generator=options.generator,
        nli=options.nli,
        limit=options.limit,
    )
    print(as_markdown(study), end="")
    if options.html:
        options.html.write_text(page(study, drawn=DRAWN), encoding="utf-8")


if __name__ == "__main__":
    main()
