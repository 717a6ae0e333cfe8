"""Small faults that a test ought to notice: one swapped comparison, one shifted constant, one dropped statement.

`changes(tree)` lists every fault that can be put into a module, in the order of its text; calling one puts it in.
Annotations, docstrings, decorators, error messages and `__all__` are left alone: no behaviour hangs on them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

__all__ = ["Change", "changes"]

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.MatMult: ast.Mult,
}  # fmt: skip
_PAIRS = (
    ("min", "max"), ("any", "all"), ("argmin", "argmax"), ("minimum", "maximum"), ("nanmin", "nanmax"),
    ("floor", "ceil"), ("zeros", "ones"), ("mean", "median"), ("tril", "triu"), ("log", "sqrt"),
    ("startswith", "endswith"), ("lstrip", "rstrip"), ("intersection", "union"), ("logical_and", "logical_or"),
)  # fmt: skip
NAMES = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}


class Change(NamedTuple):
    """One fault: the line it is on, what it is in words, and the call that puts it into the tree."""

    line: int
    text: str
    apply: Callable[[], None]


def changes(tree: ast.Module) -> list[Change]:
    """All faults that fit into a module.

    Args:
        tree: The parsed module. A change is put into this very tree, so parse anew for each of them.

    Returns:
        Changes in the order of the text: the same source gives the same list.
    """
    ignored = set(_ignored(tree))
    found: list[Change] = []
    for node in ast.walk(tree):
        if node not in ignored:
            found += _of(node)
    return sorted(found, key=lambda change: (change.line, change.text))


def _ignored(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            parts += node.decorator_list
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts.append(node.returns)
        if isinstance(node, ast.arg | ast.AnnAssign):
            parts.append(node.annotation)
        if isinstance(node, ast.Raise | ast.JoinedStr):
            parts.append(node)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            parts.append(node)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            parts.append(node)
        for part in parts:
            if part is not None:
                yield from ast.walk(part)


def _of(node: ast.AST) -> Iterator[Change]:
    """The faults of one node; each branch is one kind."""
    if isinstance(node, ast.Compare):
        yield from _compared(node)
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATIONS:
        if not _is_text(node):
            yield _operator(node, OPERATIONS[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield _operator(node, ast.And() if isinstance(node.op, ast.Or) else ast.Or())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield _sign(node)
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(node.test, ast.Compare | ast.UnaryOp):
        yield _set(node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield _set(node, "attr", NAMES[node.attr])
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in NAMES:
        yield _set(node, "id", NAMES[node.id])
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield from _statements(block)


def _compared(node: ast.Compare) -> Iterator[Change]:
    for i, operator in enumerate(node.ops):
        if type(operator) in COMPARISONS:
            yield _replaced(node, node.ops, i, COMPARISONS[type(operator)]())
        if isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
            turned = ast.Gt() if isinstance(operator, ast.Lt | ast.LtE) else ast.Lt()
            yield _replaced(node, node.ops, i, turned)


def _constants(node: ast.Constant) -> Iterator[Change]:
    value = node.value
    if isinstance(value, bool):
        yield _set(node, "value", not value)
    elif isinstance(value, int):
        yield _set(node, "value", value + 1)
    elif isinstance(value, float):
        # Inside the unit interval the mirror image, as when two thresholds are taken for each other.
        yield _set(node, "value", round(1 - value, 9) if 0 < value < 1 and value != 0.5 else value * 2 + 0.25)


def _statements(block: list[ast.stmt]) -> Iterator[Change]:
    """Calls for their effect, `continue` and `break` can be forgotten."""
    for i, statement in enumerate(block):
        effect = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        if effect or isinstance(statement, ast.Continue | ast.Break):
            yield _replaced(statement, block, i, ast.Pass())


def _is_text(node: ast.BinOp | ast.AugAssign) -> bool:
    """Whether an operand is a literal text: joined with `-`, it fails at once and tells nothing of the tests."""
    operands = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
    return any(
        isinstance(operand, ast.JoinedStr) or (isinstance(operand, ast.Constant) and isinstance(operand.value, str))
        for operand in operands
    )


def _operator(node: ast.BinOp | ast.AugAssign | ast.BoolOp, operator: ast.operator | ast.boolop) -> Change:
    return _set(node, "op", operator)


def _sign(node: ast.UnaryOp) -> Change:
    """`-x` and `~x` become `+x`, `not x` becomes `not not x`."""
    if isinstance(node.op, ast.Not):
        return _set(node, "operand", ast.UnaryOp(ast.Not(), node.operand))
    if isinstance(node.op, ast.Invert):
        return _set(node, "operand", ast.UnaryOp(ast.Invert(), node.operand))
    return _set(node, "op", ast.UAdd())


def _set(node: ast.stmt | ast.expr, field: str, value: object) -> Change:
    before = getattr(node, field)

    def apply() -> None:
        setattr(node, field, value)

    return _described(node, apply, lambda: setattr(node, field, before))


def _replaced(node: ast.stmt | ast.expr, items: list, position: int, item: ast.AST) -> Change:
    before = items[position]

    def apply() -> None:
        items[position] = item

    # A dropped statement is described by itself, for its own node does not change.
    if isinstance(before, ast.stmt):
        return Change(node.lineno, f"without {_short(before)}", apply)
    return _described(node, apply, lambda: items.__setitem__(position, before))


def _described(node: ast.stmt | ast.expr, apply: Callable[[], None], undo: Callable[[], None]) -> Change:
    before = _short(node)
    apply()
    after = _short(node)
    undo()
    return Change(node.lineno, f"{before} -> {after}", apply)


def _short(node: ast.AST) -> str:
    """The first line of a node's source, at most 70 characters."""
    text = ast.unparse(ast.fix_missing_locations(node)).splitlines()[0]
    return text if len(text) <= 70 else f"{text[:67]}..."
