"""Finds the documents behind a wrong answer of a running system by withholding them, and quarantines them."""
