"""Detects prompt injections and removes them, with the text in their block that belongs to them.

Entry points: `detect` for one text and `detect_all`, which screenings, scans, incidents, memories, tool results and
readers share. `cutting` removes injections from passages, `redaction` from other texts, leaving the rest unchanged byte
for byte.
"""

from unpoison.injections.detector import STRONG, THRESHOLD, Detection, Injection, detect, detect_all, unjudged

__all__ = ["STRONG", "THRESHOLD", "Detection", "Injection", "detect", "detect_all", "unjudged"]
