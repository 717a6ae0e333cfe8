"""The evaluation files by name, rebuilt from public sources; and what may only be tested on, kept out of every fit."""
