"""The commands of the laboratory, one file each; `unpoison` finds them as entry points."""
