"""Every page is a jinja2 template of the folder `templates`: one layout, one style sheet, nothing from outside.

Everything a template writes is escaped, and invisible characters are removed, so no template can forget it.
The content security policy of a page allows its own style and script by their hashes and nothing else.
"""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from unpoison.utils.extras import install_command
from unpoison.utils.plain_text import excerpt, without_invisible

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["render", "resource"]


def render(template: str, /, **data: Any) -> str:
    """A page, or a piece of one.

    Args:
        template: A file of the folder.
        data: Its values; texts may be hostile. A missing name is an error.
    """
    return _environment().get_template(template).render(data)


@cache
def resource(name: str) -> str:
    """A file of the folder as text."""
    return files("unpoison.report").joinpath("templates", name).read_text(encoding="utf-8")


def _clean(value: object) -> object:
    """The output of a template expression: numbers and markup unchanged, everything else as harmless text."""
    return value if isinstance(value, (int, float)) or hasattr(value, "__html__") else without_invisible(str(value))


def _moment(time: datetime) -> str:
    """To the minute."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # here: commands without a page do not load it
    from markupsafe import Markup

    def exact(text: str) -> Markup:
        return Markup.escape(text.encode("utf-8", "replace").decode())

    environment = Environment(
        loader=FunctionLoader(resource),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_clean,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    environment.globals["install_command"] = install_command
    environment.globals["own_file"] = lambda name: Markup(resource(name))  # noqa: S704  ours, not a user's
    environment.filters |= {
        "digest": lambda text: f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}",
        "exact": exact,
        "quoted": json.dumps,  # ASCII that JSON.parse reads: harmless in the page's source too
        "moment": _moment,
        "excerpt": lambda value, limit: excerpt(str(value), limit),
        "thousands": "{:,}".format,
    }
    return environment
