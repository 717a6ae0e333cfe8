"""Install every extra alone into an empty environment, and do with it what it is for.

    python tools/try_extras.py dist                   # all of them: some gigabytes, torch among them
    python tools/try_extras.py dist reader redis
    python tools/try_extras.py --list                 # the names, as JSON

`dist` is the folder that `make dist` filled. No server is started and no model is downloaded.
Leaves with 1 when one fails.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

PASSAGES = '["The letter was written by Ada in 1843.", "Ada wrote the letter.", "The sea is cold."]'
SCREEN = f"print(len(unpoison.{{}}.screen('who wrote the letter', {PASSAGES}).kept), 'kept')"

SMOKE = {
    "": SCREEN.format("Guard()"),
    "torch": "from unpoison.models import transformers, sentence_transformers, classifiers; import torch; "
    "import transformers, sentence_transformers; print(torch.__version__)",
    "reader": f"from unpoison.models import Reader; print(Reader().read('who wrote the letter', {PASSAGES})[0].answer)",
    "reader-base": "from unpoison.models import load_generator; "
    f"print(load_generator('reader-base').read('who wrote the letter', {PASSAGES})[0].answer)",
    "offline": SCREEN.format("Grada(encoder='minilm')"),
    "openai": "from unpoison.models import OpenAIGenerator; print(OpenAIGenerator('m', api_key='k').name)",
    "anthropic": "from unpoison.models import AnthropicGenerator; print(AnthropicGenerator('m', api_key='k').name)",
    "parquet": "import pyarrow as pa, pyarrow.parquet as pq; from unpoison.io.files import source_of; "
    "pq.write_table(pa.table({'query': ['q'], 'passages': [['a', 'b']]}), 'x.parquet'); "
    "print(len(list(source_of(open('x.parquet', 'rb'), 'x.parquet', None))), 'row')",
    "files": "import docx, openpyxl, pypdf; from unpoison.utils.extras import require; "
    "print(require('pypdf', 'PDF').__version__)",
    "reference": SCREEN.format("RagDefender(mode='reference')"),
    "redis": "import redis; from unpoison.beliefs import redis as store; print(redis.__version__)",
    "postgres": "import psycopg; from unpoison.beliefs import PostgresBeliefs; print(psycopg.pq.version())",
    "serve": "from unpoison.serve import create_app; "
    "print(len(create_app({'guard': lambda: unpoison.Guard()}).routes), 'routes')",
    "mcp": "import mcp; from unpoison.serve.mcp import create_server; print('tools')",
    "otel": "from unpoison.utils import tracing; tracing.export_spans(); print('exported')",
    "faiss": "import faiss; from unpoison.retrieval.faiss import FaissStore; FaissStore(); print(faiss.__version__)",
    "qdrant": "from unpoison.retrieval.qdrant import QdrantStore; import qdrant_client; "
    "print(qdrant_client.QdrantClient(':memory:').get_collections())",
    "pgvector": "from unpoison.retrieval.pgvector import PgvectorStore; import psycopg; print(psycopg.__version__)",
    "chroma": "from unpoison.retrieval.chroma import ChromaStore; import chromadb; "
    "print(ChromaStore('', 'docs', new=True, client=chromadb.EphemeralClient()).name)",
    "langchain": "from unpoison.integrations import langchain; from unpoison.agents import langchain as tools; "
    "print(langchain.__all__, tools.__all__)",
    "llamaindex": "from unpoison.integrations import llamaindex; print(llamaindex.__all__)",
    "haystack": "from unpoison.integrations import haystack; print(haystack.__all__)",
    "openai-agents": "from unpoison.agents import openai_agents; print(openai_agents.__all__)",
    "pydantic-ai": "from unpoison.agents import pydantic_ai; print(pydantic_ai.__all__)",
    "ray": "import ray, ray.data; print(ray.__version__)",
    "redteam": "import httpx; from unpoison.bench.redteam import Config; print(httpx.__version__)",
}
"""Extra -> a line of Python that fails without it; "" is the core."""


def main(arguments: list[str]) -> int:
    if arguments == ["--list"]:
        print(json.dumps([extra for extra in SMOKE if extra]))
        return 0
    folder, *extras = arguments
    wheels = list(Path(folder).resolve().glob("unpoison-[0-9]*.whl"))
    if len(wheels) != 1 or not set(extras) <= set(SMOKE):
        print(f"{folder} needs one wheel of unpoison, and the extras are {', '.join(SMOKE)}", file=sys.stderr)
        return 2
    failed = [extra for extra in extras or SMOKE if not works(extra, wheels[0])]
    print(f"failed: {', '.join(failed)}" if failed else "all work")
    return int(bool(failed))


def works(extra: str, wheel: Path) -> bool:
    """Install and try one, in a folder that is gone afterwards."""
    begun = time.perf_counter()
    with TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=True)
        python = str(Path(scratch, "Scripts" if sys.platform == "win32" else "bin", "python"))
        wanted = f"{wheel}[{extra}]" if extra else str(wheel)
        install = [python, "-m", "pip", "install", "--quiet", "--find-links", str(wheel.parent), wanted]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            code = f"import unpoison; {SMOKE[extra]}"
            done = subprocess.run(
                [python, "-W", "ignore", "-c", code], cwd=scratch, capture_output=True, text=True, check=False
            )
    told = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines() or [""]
    name = extra or "the core"
    print(
        f"{'ok  ' if done.returncode == 0 else 'FAIL'} {name:<12}{time.perf_counter() - begun:6.0f} s  {told[-1]}",
        flush=True,
    )
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
