"""Checks documents: what looks planted, who is there, a policy, and what attacks on them would do."""
