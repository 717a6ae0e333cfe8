"""Runs flows: turns requests into concurrent, bounded and validated model calls."""
