"""Five lines that put the recommendation into somebody's own program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec

__all__ = ["FRAMEWORKS", "installed_framework", "snippet"]

FRAMEWORKS: Mapping[str, tuple[str, str]] = {
    "langchain": (
        "langchain_core",
        "from unpoison import Guard\n"
        "from unpoison.integrations.langchain import ScreenedRetriever, ScreeningCompressor\n\n"
        "screening = ScreeningCompressor({guard})\n"
        "retriever = ScreenedRetriever(retriever=retriever, screening=screening)  # around yours",
    ),
    "llamaindex": (
        "llama_index.core",
        "from unpoison import Guard\n"
        "from unpoison.integrations.llamaindex import ScreeningPostprocessor\n\n"
        "screening = ScreeningPostprocessor({guard})\n"
        "engine = index.as_query_engine(node_postprocessors=[screening])  # of your index",
    ),
    "haystack": (
        "haystack",
        "from unpoison import Guard\n"
        "from unpoison.integrations.haystack import Screen\n\n"
        'pipeline.add_component("screen", Screen({guard}))  # in yours\n'
        'pipeline.connect("retriever.documents", "screen.documents")\n'
        'pipeline.connect("screen.documents", "prompt.documents")',
    ),
    "python": (
        "unpoison",
        "from unpoison import Guard\n\n"
        "guard = {guard}\n"
        'screening = guard.screen(question, passages)  # each {{"text": ..., "source": ...}}\n'
        "texts = screening.texts  # what your model reads",
    ),
}
"""By its name: the module that shows that it is installed, and the lines."""


def installed_framework() -> str:
    """The first framework that is installed, `python` without one."""
    return next(name for name, (module, _) in FRAMEWORKS.items() if _is_installed(module))


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:  # the package above it is missing
        return False


def snippet(framework: str, policy: str, *, reader: bool) -> str:
    """The lines for a framework.

    Args:
        framework: A key of `FRAMEWORKS`.
        policy: Where the policy lies.
        reader: Whether the reader is recommended, as it is where it is installed.
    """
    generator = 'generator="reader", ' if reader else ""
    return FRAMEWORKS[framework][1].format(guard=f"Guard({generator}sources={json.dumps(policy)})")
