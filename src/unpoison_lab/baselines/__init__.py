"""Published defenses for comparison, one file each; `unpoison.load_defense` finds them by their names."""
