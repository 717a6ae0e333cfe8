"""The English words that the rules of `facts` know."""

from __future__ import annotations

__all__ = [
    "ABBREVIATIONS",
    "BE",
    "BEFORE_A_NUMBER",
    "CLAUSES",
    "CODE",
    "DETERMINERS",
    "IMPERATIVES",
    "LINKED",
    "LOOSE",
    "MODAL",
    "NO_UNITS",
    "OPENING",
    "PEOPLE",
    "ROUGHLY",
    "UNITS",
    "VAGUE",
    "VERBS",
    "WITHIN_NAMES",
]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ABBREVIATIONS = _words("e.g. i.e. etc. vs. no. dr. mr. mrs. ms. st. approx. inc. ltd.")
"""What ends with a full stop and ends no sentence."""

BE = _words("is are was were")
MODAL = _words("must can may will should shall could might")
DETERMINERS = _words("the a an each every all our your any most some no")
BEFORE_A_NUMBER = _words("within after in for at to every by on over under from until than of up most least only")
ROUGHLY = _words("about around approximately roughly exactly nearly almost")
PEOPLE = _words("contact owner manager head director author founder ceo president lead maintainer chair editor officer")

VAGUE = _words(
    "it this that these those they there he she we you i one what which who here its their his her my such both among"
)
"""What no subject may hold: it means something that stands elsewhere."""

OPENING = _words(
    "if when while after before because although in on for as at by with imagine note see since until during despite "
    "unlike likewise but and so or then also thus however"
)
"""How no subject begins."""

LINKED = _words("but and so or then because also thus however therefore otherwise that's still instead")
"""How a sentence begins that goes on with the one before it."""

IMPERATIVES = _words(
    "see open go check run read note tip warning example make provide imagine click visit try remember"
)
"""How a sentence or an entry begins that tells its reader to do something."""

WITHIN_NAMES = _words("of the and in for on at to by with de la le du van von der den & vs.")
"""Small words that stand inside names."""

CLAUSES = _words("that which who and for with where but when because so while as")
"""Where a definition ends."""

LOOSE = _words("in of on at by to from a an the or its their most more very award winning")
"""What no definition ends with."""

UNITS = _words("percent kg g mg km m cm mm mb gb tb kb ms s kwh kw mw l ml euro people feet")
"""Units without a plural s."""

NO_UNITS = _words("and or to by of in on at for as from per is are was but")
CODE = frozenset("{}<>|=\\_*/")

_REGULAR = """
    expire last take cost weigh support store keep allow require need contain hold default run listen start end open
    accept limit return retry wait send receive include cover offer employ serve handle delete remove rotate renew
    measure earn pay charge provide produce scale sleep stop live own operate span consist begin become retain back
    check time ship arrive reply respond grow rise fall close use
"""
VERBS = {f"{verb}s": verb for verb in _REGULAR.split()} | {"has": "have", "reaches": "reach", "processes": "process"}
"""The third person singular, and the verb that a question has after "does"."""
