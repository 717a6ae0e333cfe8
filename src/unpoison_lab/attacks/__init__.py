"""Published attacks, one file each, for measuring defenses on your own data.

An attack crafts passages for a `Target`; whether they are retrieved, screened out or believed is for
`unpoison_lab.evaluation` to measure. `docs/attacks.md` has the table of all of them.
"""

from unpoison.core.registry import register

register("attacks", "unpoison_lab.attacks.base:Attack", {})
