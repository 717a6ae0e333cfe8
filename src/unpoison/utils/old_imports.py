"""Old imports: a module that moved is found where it lives now, with a warning that says where."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any
from warnings import warn

__all__ = ["MOVED", "MovedModules", "answer_old_imports", "new_places"]

MOVED = {
    "algorithms.tfidf": ("algorithms.concentration",),
    "answers": ("core.answers",),
    "at_rest": ("scan",),
    "attacks": ("bench.attacks",),
    "attacks.budget": ("bench.attacks.base",),
    "attacks.gradients": ("bench.attacks.hotflip",),
    "attacks.orders": ("bench.attacks.prompt_injection",),
    "beliefs.memory": ("beliefs.store",),
    "beliefs.postgres": ("beliefs.sql",),
    "beliefs.sqlite": ("beliefs.sql",),
    "bench.attacks.ambiguous": ("bench.attacks.prompt_injection",),
    "bench.attacks.clause": ("bench.attacks.clean_passages",),
    "bench.attacks.conditional": ("bench.attacks.prompt_injection",),
    "bench.attacks.copies": ("bench.attacks.published",),
    "bench.attacks.mixed": ("bench.attacks.disperse",),
    "bench.attacks.pad": ("bench.attacks.wrapper",),
    "bench.attacks.pia": ("bench.attacks.prompt_injection",),
    "bench.attacks.shape": ("bench.attacks.wrapper",),
    "bench.attacks.suppress": ("bench.attacks.clean_passages",),
    "bench.attacks.swap": ("bench.attacks.clean_passages",),
    "bench.attacks.synonym": ("bench.attacks.paraphrase",),
    "bench.attacks.title": ("bench.attacks.wrapper",),
    "bench.evaluation.owners": ("bench.evaluation.injection",),
    "bench.redteam.trials": ("bench.redteam.results", "bench.redteam.targets"),
    "bench.report.charts": ("report.charts",),
    "bench.report.document": ("report.document",),
    "checks": ("utils.checks",),
    "claims": ("core.verdicts",),
    "cli.evaluate_options": ("cli.evaluate",),
    "cli.help": ("cli.options",),
    "cli.serve_options": ("cli.serve",),
    "client": ("serve.client",),
    "codec": ("core.codec",),
    "contests": ("core.verdicts",),
    "core.belief": ("core.answers",),
    "core.claims": ("core.verdicts",),
    "driver": ("runtime.driver",),
    "evaluation": ("bench.evaluation",),
    "evaluation.matching": ("bench.evaluation.matchers",),
    "evaluation.worsening": ("bench.evaluation.regressions",),
    "files": ("io.files",),
    "io.delimited": ("io.file_rows",),
    "io.parquet": ("io.files",),
    "kernels": ("algorithms", "text"),
    "kernels.demands": ("text.imperatives",),
    "kernels.encoded": ("text.decoding",),
    "kernels.look_alikes": ("text.homoglyphs",),
    "kernels.near_copies": ("text.near_duplicates",),
    "kernels.pagerank": ("algorithms.centrality",),
    "kernels.plurality": ("algorithms.votes",),
    "kernels.tfidf": ("algorithms.concentration",),
    "models.answer_spans": ("models.questions",),
    "models.lexical_nli": ("models.lexical",),
    "models.styles": ("models.prompts",),
    "passages": ("core.passages",),
    "prompts": ("models.prompts",),
    "questions": ("bench.questions",),
    "rag": ("architectures.rag",),
    "reasons": ("core.reasons",),
    "redteam": ("bench.redteam",),
    "registry": ("core.registry",),
    "rendering": ("report.rendering",),
    "report.html_page": ("report.pages",),
    "requests": ("models.requests",),
    "rows": ("io.rows",),
    "scan.audit_page": ("scan.audit_report",),
    "scan.groups": ("scan.collection",),
    "scan.imperatives": ("scan.signs",),
    "scan.onset": ("scan.audit_store",),
    "scan.units": ("scan.documents",),
    "screenings": ("core.screenings",),
    "serve.admission": ("serve.middleware",),
    "serve.inspector": ("serve.playground",),
    "serve.windows": ("serve.bounds",),
    "serve.workers": ("serve.sockets",),
    "service": ("serve",),
    "service.admission": ("serve.middleware",),
    "service.windows": ("serve.bounds",),
    "service.workers": ("serve.sockets",),
    "sources.patterns": ("sources.policy",),
    "sources.retrievals": ("sources.history",),
    "spans": ("core.verdicts",),
    "styles": ("models.prompts",),
    "tracing": ("utils.tracing",),
    "utils.locks": ("utils.files",),
    "utils.old_options": ("utils.checks",),
    "utils.private": ("utils.files",),
    "verdicts": ("core.verdicts",),
    "wire": ("serve.client",),
    "wordings": ("models.prompts",),
}
"""Folders and modules of `unpoison` that went elsewhere or were merged, and where what was in them may be."""


def new_places(module: str) -> tuple[str, ...]:
    """Where a module that had this full name lives now, and where what it held may be; empty if it never had it."""
    package, _, old = module.partition(".")
    kept = old
    while kept and kept not in MOVED:
        kept = kept.rpartition(".")[0]
    if package != "unpoison" or not kept:
        return ()
    inner = old[len(kept) + 1 :]
    places = (".".join(part for part in (package, room, inner) if part) for room in MOVED[kept])
    return tuple(now for place in places for now in new_places(place) or (place,) if _exists(now))


class MovedModules(MetaPathFinder, Loader):
    """Asked last, when no module has the name: `unpoison.kernels.mincut` answers for `unpoison.algorithms.mincut`."""

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if new_places(fullname) else None

    def exec_module(self, module: ModuleType) -> None:
        places = new_places(module.__name__)
        warn(f"{module.__name__} is {' and '.join(places)} now; import from there", DeprecationWarning, stacklevel=6)

        def find_name(name: str) -> Any:
            for place in places:
                if name in dir(home := import_module(place)):
                    return getattr(home, name)
                if not name.startswith("__") and _exists(f"{place}.{name}"):
                    return import_module(f"{place}.{name}")
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        module.__dict__["__getattr__"] = find_name


def answer_old_imports() -> None:
    """Put the finder behind all others, once."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # what should hold it is no package
        return False
