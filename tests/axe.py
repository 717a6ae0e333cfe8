"""What axe-core, the usual checker of accessibility, says of a page that is open in a `chromium.Tab`."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from chromium import Tab

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"], "resultTypes": ["violations"]}


def violations(tab: Tab) -> list[str]:
    """Each rule that is broken, with the first elements that break it; skips where axe-core is not installed."""
    found = find_spec("axe_core_python")
    if found is None or found.origin is None:
        pytest.skip("NO AXE: run: pip install axe-core-python")
    source = Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8")
    tab.evaluate(f"{source}; true")
    broken = tab.evaluate(
        f"axe.run(document, {json.dumps(RULES)}).then((found) => found.violations.map((rule) => [rule.id, "
        "rule.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`)]))"
    )
    return [f"{rule}: {where}" for rule, where in broken]
