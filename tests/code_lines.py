"""Lines of code of a file, as the budgets count them."""

from __future__ import annotations

import ast
import io
import tokenize
from functools import cache
from pathlib import Path

__all__ = ["code_lines"]

NOTHING = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


@cache
def code_lines(path: Path) -> int:
    """Lines that hold code: no blanks, no comments, no docstrings."""
    text = path.read_text(encoding="utf-8")
    docstrings = set[int]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docstrings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOTHING:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)
