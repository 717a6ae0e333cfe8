r"""Tables as LaTeX for a paper: `booktabs` rules, every cell escaped, so that no name of a file or model is a command.

A document needs `\\\\usepackage{booktabs}`, and T1 fonts or a Unicode engine for names in other scripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from unpoison.report.document import Table
from unpoison.utils.plain_text import plain

__all__ = ["escape_latex", "latex_table"]

_COMMANDS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    '"': r"{\char34}",
    "[": "{[}",  # behind the end of a row a bracket would be read as a length
    "]": "{]}",
    "--": r"-{}-",
    "\u2192": r"$\to$",
    "\u00b1": r"$\pm$",
    "\u2264": r"$\leq$",
    "\u2265": r"$\geq$",
    "\u00d7": r"$\times$",
    "\u2212": "$-$",
    "\u2026": r"\ldots{}",
}
LONG = 48
"""Characters of a cell that are broken into lines."""

_SPECIAL = re.compile("|".join(map(re.escape, sorted(_COMMANDS, key=len, reverse=True))))


def escape_latex(text: str) -> str:
    """A text that LaTeX prints as it stands, on one line; characters that steer a terminal or turn text around go."""
    return _SPECIAL.sub(lambda match: _COMMANDS[match[0]], " ".join(plain(text).split()))


def latex_table(table: Table, label: str) -> str:
    r"""A `table` environment for each part of a table that fits on a page.

    Intervals stand small behind their figures, the best figures of a column are bold.

    Args:
        table: Its cells are texts, hostile ones too.
        label: Of `\\\\label`, behind `tab:`; letters, digits and hyphens. Further parts have `-2`, `-3`, ...
    """
    parts = []
    for number, columns in enumerate(table.parts, 1):
        name = label if number == 1 else f"{label}-{number}"
        caption = escape_latex(table.title) + ("" if number == 1 else " (continued)")
        head = _row(escape_latex(table.columns[column]) for column in (0, *columns))
        body = [_row(_cell(table, row, column) for column in (0, *columns)) for row in range(len(table.rows))]
        lines = [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}", rf"\label{{tab:{name}}}"]
        shape = "l" + "".join(_alignment(row[column] for row in table.rows) for column in columns)
        lines += [rf"\begin{{tabular}}{{{shape}}}", r"\toprule", head, r"\midrule", *body]
        parts.append("\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]))
    return "\n\n".join(parts) + "\n"


def _alignment(cells: Iterable[str]) -> str:
    """Figures stand right, words left, and long texts are broken into lines."""
    texts = list(cells)
    if max(map(len, texts), default=0) > LONG:
        return r"p{0.5\linewidth}"
    return "r" if all(re.match(r"[-+<]?[\d.]|-$|$", text) for text in texts) else "l"


def _row(cells: Iterable[str]) -> str:
    first, *others = cells
    return " & ".join([f"{{{first}}}", *others]) + r" \\"


def _cell(table: Table, row: int, column: int) -> str:
    value, bracket, interval = table.rows[row][column].partition(" [")
    text = escape_latex(value)
    if table.marks.get((row, column)) == "best":
        text = rf"\textbf{{{text}}}"
    return text + (rf" {{\scriptsize {escape_latex('[' + interval)}}}" if bracket else "")
