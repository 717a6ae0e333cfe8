"""One's own documents, checked: what lies there, who is in it, and which attacks about them get through.

from unpoison.bench.check import Check

check = Check.read("docs/")
check.run()
print(check.result().headline)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unpoison.utils.lazy import lazy_names

if TYPE_CHECKING:
    from unpoison.bench.check.check import Check
    from unpoison.bench.check.live import SystemCheck
    from unpoison.bench.check.results import CheckResult, Outcome

__all__ = ["Check", "CheckResult", "Outcome", "SystemCheck"]

__getattr__ = lazy_names(
    __name__, {"Check": "check", "CheckResult": "results", "Outcome": "results", "SystemCheck": "live"}
)
