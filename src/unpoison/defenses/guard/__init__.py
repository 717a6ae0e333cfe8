"""Guard: four checks of a text, each with one threshold and one cost, then the evidence of claims and sources.

`guard.py` reads like the method: `hidden`, `prompt_injection`, `gibberish`, `crafted`, then claims and sources.
"""

from unpoison.defenses.guard.guard import Guard

__all__ = ["Guard"]
