"""Checks documents or a running system: suspicious documents, sources, and which attacks succeed."""
