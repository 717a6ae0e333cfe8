"""RADAR with and without its memory, and static defenses adapted in the paper's two ways, over time.

    python benchmarks/streams.py
    python benchmarks/streams.py --data radar-dynamic:dynamic.json --generator openai:gpt-4o-mini --nli cross:NAME

Every question is asked at each of its times, without poison and with one poisoned passage in the place of the first
or the last one at every step: a false claim (`poison`) or an order (`injection`). `unneeded` is the share of right
answers that are lost although the truth has not changed; `followed` the share of genuine changes that are answered
rightly before the next one, `lag` the mean number of steps until then; `bytes` what is kept for a question at the end.
95 % Wilson intervals.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from unpoison import Radar, TrustRag, Vanilla
from unpoison.beliefs import MemoryBeliefs
from unpoison.evaluation.adaptations import Answerer, CumulativeSnapshot, EachStep, LightweightHistory, Remembering
from unpoison.evaluation.intervals import Estimate
from unpoison.evaluation.report.charts import label, legend, svg
from unpoison.evaluation.report.figures import Lines, Point, Series
from unpoison.evaluation.streams import StreamResult, run_stream
from unpoison.evaluation.timelines import load_timelines
from unpoison.models import CachedGenerator, load_generator, load_nli

ATTACKS: dict[str, tuple[str | None, int | None]] = {
    "none": (None, None),
    "poison, first": ("radar-incorrect-context", 1),
    "poison, last": ("radar-incorrect-context", None),
    "injection, first": ("pia", 1),
    "injection, last": ("pia", None),
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
    parser.add_argument("--html", type=Path, help="draw accuracy and attack success by step into this file")
    options = parser.parse_args()
    timelines = load_timelines(options.data)[: options.limit]
    generator, nli = CachedGenerator(load_generator(options.generator)), load_nli(options.nli)

    methods: dict[str, Callable[[], Answerer]] = {
        "vanilla, each step": lambda: EachStep(Vanilla(generator=generator)),
        "vanilla, cumulative": lambda: CumulativeSnapshot(Vanilla(generator=generator)),
        "vanilla, history": lambda: LightweightHistory(Vanilla(generator=generator)),
        "trustrag, cumulative": lambda: CumulativeSnapshot(TrustRag(generator)),
        "trustrag, history": lambda: LightweightHistory(TrustRag(generator)),
        "radar, static": lambda: EachStep(Radar(generator, nli)),
        "radar, cumulative": lambda: CumulativeSnapshot(Radar(generator, nli)),
        "radar, history": lambda: LightweightHistory(Radar(generator, nli)),
        "radar, dynamic": lambda: Remembering(Radar(generator, nli, MemoryBeliefs())),
        "radar, dynamic, fallback=abstain": lambda: Remembering(
            Radar(generator, nli, MemoryBeliefs(), fallback="abstain")
        ),
        "radar, dynamic, reference": lambda: Remembering(
            Radar(generator, nli, MemoryBeliefs(), mode="reference", fallback="all")
        ),
    }
    steps = sum(len(timeline) for timeline in timelines)
    changes = sum(timeline.changed(i) for timeline in timelines for i in range(len(timeline)))
    print(f"Data: {options.data}, {len(timelines)} questions, {steps} steps, {changes} genuine changes.")
    print(f"Generator: {options.generator}. NLI: {options.nli}. Encoder: lexical.\n")
    print("| attack | method | accuracy | ASR | unneeded | followed | lag | bytes |")
    print("|---|---|---|---|---|---|---|---|")
    pictures = list[Lines]()
    for attack, (name, position) in ATTACKS.items():
        results = {}
        for method, make in methods.items():
            results[method] = run_stream(make(), timelines, attack=name, position=position, with_date=options.dated)
            print(f"| {attack} | {method} | {' | '.join(cells(results[method]))} |", flush=True)
        pictures += [
            Lines(f"{what}, attack: {attack}", "step", what, series(results, measure))
            for what, measure in (("accuracy", StreamResult.accuracy), ("attack success", StreamResult.attack_success))
            if name is not None or what == "accuracy"
        ]
    if options.html:
        options.html.write_text(page(pictures), encoding="utf-8")


def page(pictures: list[Lines]) -> str:
    style = files("unpoison").joinpath("data", "report.css").read_text(encoding="utf-8")
    names = legend((method, hue) for hue, method in enumerate(DRAWN))
    drawn = "".join(f"<h2>{label(figure.title)}</h2>{svg(figure)}" for figure in pictures)
    head = f"<!doctype html><meta charset=utf-8><title>Answers over time</title><style>{style}</style>"
    return f"{head}<h1>Answers over time</h1>{names}{drawn}"


def cells(result: StreamResult) -> list[str]:
    lag = result.mean_lag()
    return [
        percent(result.accuracy()),
        percent(result.attack_success()),
        percent(result.unneeded_changes()),
        percent(result.followed()),
        "-" if lag is None else f"{lag:.2f}",
        f"{statistics.mean(result.stored):.0f}" if result.stored else "-",
    ]


def percent(found: Estimate) -> str:
    return f"{100 * found.value:.0f} ({100 * found.low:.0f}-{100 * found.high:.0f})"


def series(
    results: dict[str, StreamResult], measure: Callable[[StreamResult, int | None], Estimate]
) -> tuple[Series, ...]:
    def point(result: StreamResult, step: int) -> Point:
        found = measure(result, step)
        return Point(step, found.value, found.low, found.high, len(result.stored))

    return tuple(
        Series(method, hue, tuple(point(results[method], step) for step in range(results[method].steps)))
        for hue, method in enumerate(DRAWN)
    )


if __name__ == "__main__":
    main()
