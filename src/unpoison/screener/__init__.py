"""The shell around a defense: input validation, prompt injections, blocked sources and time limits."""
