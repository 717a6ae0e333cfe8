"""Texts, looked at once for everything that judges them."""
