"""Pages of strangers, made safe for Python's HTML parser."""

from __future__ import annotations

__all__ = ["escape_open_tags"]


def escape_open_tags(markup: str) -> str:
    """The page, with `<` as a letter where no tag and no comment that begins there ever ends.

    The parser would look for the end from each of them anew, which takes hours for a megabyte; and it raises at some
    `<![`, which for HTML begins a comment like any other `<!`.
    """
    markup = markup.replace("<![", "<! [")
    last = markup.rfind("-->") + 1
    markup = markup[:last] + markup[last:].replace("<!--", "&lt;!--")
    last = markup.rfind(">") + 1
    return markup[:last] + markup[last:].replace("<", "&lt;")
