"""Passages, verdicts, screenings, answers and their reasons; one codec for all of them."""
