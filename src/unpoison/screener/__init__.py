"""Runs a defense: input validation, prompt injections, blocked sources and time limits."""
