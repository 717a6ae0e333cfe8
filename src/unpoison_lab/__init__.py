"""The laboratory of unpoison: attacks, baselines, evaluations, questions, red-team tests, and their commands."""
