"""All that measures: attacks, evaluations, questions, red-team tests."""
