"""Poison at rest: in an index (scan, ingest, quarantine), in a log (audit), behind an answer (trace)."""
