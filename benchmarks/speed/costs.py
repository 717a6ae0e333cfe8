"""What each defense costs: calls, words to and from the model, seconds, processor seconds, memory; the papers' below.

python -m benchmarks costs evaluation-data/nq_poisoned.jsonl --limit 20

Every defense runs in a process of its own, so that its peak of memory is its own: "MB" is that peak less what the
process held before it had models, "GPU MB" the most that torch took of a GPU ("-" without one). Times are medians over
the questions, with ten passages each. The model is the extractive reader, which is instant: so seconds are what the
defense itself takes, and calls and words are what a language model would be paid for. `-g` and `-e` name others.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from unpoison.core.answers import Reply
from unpoison.models.prompts import Prompt
from unpoison.runtime.driver import Limits
from unpoison_lab.evaluation.contexts import Context, clean_contexts
from unpoison_lab.evaluation.datasets import load, load_passages
from unpoison_lab.evaluation.scenarios import Scenario
from unpoison_lab.evaluation.workbench import Workbench, sibling_corpus

DEFENSES = (
    "vanilla", "grada", "grada:variant=bm25", "grada:variant=ebd", "ragdefender", "trustrag:stages=1", "trustrag",
    "radar", "guard", "robustrag", "reliabilityrag", "instructrag", "astuterag", "madam", "discern", "vote",
)  # fmt: skip
PASSAGES = 10
PATIENT = Limits(deadline=3600)
"""A busy machine ends no measurement."""


class Counted:
    """A generator that counts what passes through it."""

    def __init__(self, generator: Any) -> None:
        self.name, self._generator = generator.name, generator
        self.calls = self.asked = self.replied = 0

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        reply: Reply = self._generator.generate(prompt, timeout=timeout)
        self.calls += 1
        self.asked += len(prompt.text().split())
        self.replied += len(reply.text.split())
        return reply


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="sample")
    parser.add_argument("-d", "--defense", action="append", help="may be repeated")
    parser.add_argument("-g", "--generator", default="extractive")
    parser.add_argument("-e", "--encoder", default="lexical")
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone:
        print(json.dumps(costs(arguments.alone, arguments)))
        return
    print(f"{arguments.limit} questions of {Path(arguments.data).name}, {PASSAGES} passages each; ", end="")
    print(f"generator {arguments.generator}, encoder {arguments.encoder}.\n")
    print("| defense | calls | words in | words out | s | processor s | screening s | MB | GPU MB |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for spec in arguments.defense or DEFENSES:
        print(row(spec, in_a_process(spec, arguments)), flush=True)
    print("\nWhat the papers print, on their machines:\n")
    print("| source | defense | model | unit | whole | defense alone | calls |\n|---|---|---|---|---|---|---|")
    for line in published():
        print(line)


def in_a_process(spec: str, arguments: argparse.Namespace) -> dict[str, float | None]:
    """The costs of one defense, measured where no other has been."""
    command = [sys.executable, "-m", "benchmarks", "costs", arguments.data, "--alone", spec]
    command += ["--limit", str(arguments.limit), "-g", arguments.generator, "-e", arguments.encoder]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)  # noqa: S603  this script itself
    found: dict[str, float | None] = json.loads(done.stdout)
    return found


def costs(spec: str, arguments: argparse.Namespace) -> dict[str, float | None]:
    """Per question: medians of the times, means of the counts, and the peak of memory."""
    examples = load(arguments.data).examples[: arguments.limit]
    corpus_file = sibling_corpus(arguments.data)
    corpus = load_passages(corpus_file, examples[0].dataset) if corpus_file else ()
    contexts = clean_contexts(examples, PASSAGES, corpus)
    before = peak_memory()
    with tempfile.TemporaryDirectory() as folder:
        return measured(spec, arguments, contexts, Workbench(Path(folder), limits=PATIENT), before)


def measured(
    spec: str, arguments: argparse.Namespace, contexts: Sequence[Context], bench: Workbench, before: int
) -> dict[str, float | None]:
    """The same, once the questions are there; `before` is the peak of memory until then."""
    scenario = Scenario(arguments.data, defense=spec, encoder=arguments.encoder, generator=arguments.generator)
    defense, plain = bench.defense(scenario), bench.architecture(scenario)
    counted = Counted(bench.generator(arguments.generator))
    for one in (defense, plain):
        if one is not None and one.models.generator is not None:
            one.models = replace(one.models, generator=counted)
    times: list[tuple[float, float, float]] = []
    for context in contexts:
        began, busy = time.perf_counter(), time.process_time()
        if defense.answers_itself:
            defense.answer(context.query, context.passages)
            screened = time.perf_counter()
        else:
            screening = defense.screen(context.query, context.passages)
            screened = time.perf_counter()
            if plain is not None and screening.kept:
                plain.answer(context.query, screening.read)
        times.append((time.perf_counter() - began, time.process_time() - busy, screened - began))
    whole, processor, alone = (median(column) for column in zip(*times, strict=True))
    questions = len(times)
    return {
        "calls": counted.calls / questions, "asked": counted.asked / questions, "replied": counted.replied / questions,
        "seconds": whole, "processor": processor, "screening": None if defense.answers_itself else alone,
        "memory": (peak_memory() - before) / 2**20, "gpu": gpu_memory(),
    }  # fmt: skip


def peak_memory() -> int:
    """The most bytes that this process has held."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def gpu_memory() -> float | None:
    """The most that torch took of a GPU, in MB; None without torch or without a GPU."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return float(torch.cuda.max_memory_allocated()) / 2**20


def row(spec: str, found: dict[str, float | None]) -> str:
    forms = {"calls": ".1f", "asked": ".0f", "replied": ".1f", "seconds": ".4f", "processor": ".4f", "screening": ".4f"}
    cells = [format(value, forms.get(name, ".0f")) if value is not None else "-" for name, value in found.items()]
    return f"| {spec} | {' | '.join(cells)} |"


def published() -> Iterator[str]:
    text = Path(__file__).with_name("published_costs.yaml").read_text(encoding="utf-8")
    for one in yaml.safe_load(text):
        values = (f"{one[name]:,}" if name in one else "-" for name in ("whole", "alone", "calls"))
        yield f"| {' | '.join((one['source'], one['defense'], one['of'], one['unit'], *values))} |"


if __name__ == "__main__":
    main()
