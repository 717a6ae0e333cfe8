"""Some of the documents of a running system: the passages that it shows for a few questions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b

from unpoison.bench.evaluation.contexts import text_key
from unpoison.bench.redteam.reply_fields import source_of
from unpoison.bench.redteam.targets import Answered
from unpoison.scan.documents import Document
from unpoison.text.canonical import canonical
from unpoison.text.sentences import sentences
from unpoison.types import Passage

__all__ = ["MAX_ASKED", "collect_documents", "passages_of"]

MAX_ASKED = 30
"""Questions that are asked to see documents."""

MAX_DOCUMENTS = 200
MAX_PASSAGES = 100
"""Of one reply."""

MAX_CHARACTERS = 200
"""Of a question that is made from a passage."""


def collect_documents(
    ask: Callable[[str], Answered],
    seeds: Sequence[str],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[list[Document], int]:
    """Ask the seeds, and then for the first sentence of every passage that they brought, which brings its neighbours.

    Args:
        ask: The system.
        seeds: First questions.
        progress: Called with the questions asked, and the most that are.

    Returns:
        The documents, each text once, and how many questions were asked.
    """
    waiting, documents, asked = deque(seeds), dict[str, Document](), 0
    while waiting and asked < MAX_ASKED + len(seeds) and len(documents) < MAX_DOCUMENTS:
        progress(asked, MAX_ASKED + len(seeds))
        reply, asked = ask(waiting.popleft()), asked + 1
        for passage in passages_of(reply):
            key = text_key(passage.text)
            if key and key not in documents:
                documents[key] = Document(passage)
                waiting.extend(_question(passage.text))
    return list(documents.values()), asked


def passages_of(reply: Answered) -> Iterator[Passage]:
    """What the system showed, each named by its text; with a source where the system names one."""
    texts, names = (reply.passages or ())[:MAX_PASSAGES], reply.ids or ()
    for position, text in enumerate(texts):
        name = names[position] if len(names) == len(reply.passages or ()) else ""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        yield Passage(text, id=f"{name or 'passage'}-{digest}", source=source_of(name))


def _question(text: str) -> Iterator[str]:
    read = canonical(text[:4000]).text
    for start, end in sentences(read)[:1]:
        yield " ".join(read[start:end].split())[:MAX_CHARACTERS]
