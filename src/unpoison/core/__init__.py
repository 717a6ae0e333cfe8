"""Passages, verdicts, screenings, answers and the reasons they carry: what every other folder speaks of."""
