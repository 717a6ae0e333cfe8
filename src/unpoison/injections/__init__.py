"""Detects prompt injections and removes them, with the text in their block that belongs to them.

Entry point: `Detector`, which screenings, scans, incidents, memories, tool results and readers share. `cutting` removes
injections from passages, `redaction` from other texts, leaving the rest unchanged byte for byte.
"""

from unpoison.injections.detector import DETECTOR, STRONG, THRESHOLD, Detection, Detector, Injection

__all__ = ["DETECTOR", "STRONG", "THRESHOLD", "Detection", "Detector", "Injection"]
