"""All that measures: attacks, evaluations, questions, red-team tests. Nothing outside but the commands uses it."""
