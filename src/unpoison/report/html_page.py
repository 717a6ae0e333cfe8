"""The frame of every page: one file that asks the network for nothing, with its own style and at most one script.

The content security policy allows the page's own style and script by their hashes and nothing else.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

__all__ = ["html_page", "resource"]


def html_page(title: str, body: str, *, style: str, script: str = "", data: str = "", attributes: str = "") -> str:
    """A whole page.

    Args:
        title: Of the window, escaped.
        body: HTML; whatever is hostile in it is escaped.
        style: The style sheet; see `resource`.
        script: The page's own script; without one no script runs.
        data: HTML between the body and the script, such as a block of JSON that the script reads.
        attributes: Of the `body` element, with a space in front.
    """
    allowed = f"script-src '{_digest(script)}'; " if script else ""
    policy = f"default-src 'none'; style-src '{_digest(style)}'; {allowed}base-uri 'none'; form-action 'none'"
    running = f"{data}\n<script>{script}</script>\n" if script else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>unpoison: {title}</title>\n<style>{style}</style>\n</head>\n"
        f"<body{attributes}>\n{body}\n{running}</body>\n</html>\n"
    )


@cache
def resource(*names: str) -> str:
    """Files of the package's own data as one text."""
    return "".join(files("unpoison").joinpath("data", name).read_text(encoding="utf-8") for name in names)


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
