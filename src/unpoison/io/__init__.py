"""Rows of files to queries and passages, and results back to files."""
