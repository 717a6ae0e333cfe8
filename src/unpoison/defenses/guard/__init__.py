"""Guard: four checks of a text, each with one meaning, one threshold and one price, and what claims and sources say.

`guard.py` reads like the method: `hidden`, `prompt_injection`, `gibberish`, `crafted`, then who says what.
"""

from unpoison.defenses.guard.guard import Guard

__all__ = ["Guard"]
