"""Runs flows: requests become model calls, checked, bounded and side by side."""
