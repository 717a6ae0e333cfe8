"""Prompt injections: found, cut out with what is under their voice, and reported.

`Detector` is the door: every surface (screenings, scans, incidents, memories, tool results, readers) asks the same one.
`cutting` removes what it finds from passages, `redaction` from other texts, byte for byte.
"""

from unpoison.injections.detector import DETECTOR, STRONG, THRESHOLD, Detection, Detector, Injection

__all__ = ["DETECTOR", "STRONG", "THRESHOLD", "Detection", "Detector", "Injection"]
