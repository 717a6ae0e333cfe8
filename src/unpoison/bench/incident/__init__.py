"""From one wrong answer to a repaired index: reproduce it, find the documents behind it by withholding, repair, report.

from unpoison.bench.incident import Case, investigate, undo
"""

from __future__ import annotations

from unpoison.bench.incident.case import Case, case_of_log
from unpoison.bench.incident.investigation import Settings, investigate
from unpoison.bench.incident.results import Incident, Verdict
from unpoison.bench.incident.undo import undo

__all__ = ["Case", "Incident", "Settings", "Verdict", "case_of_log", "investigate", "undo"]
