"""Plausible typing and spelling errors of English words."""

from __future__ import annotations

import numpy as np

__all__ = ["typo"]

_MARKS = ".,;:!?()[]{}\"'"
_ROWS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")

_PAIRS = """absence/absense accept/acept achieve/acheive across/accross address/adress again/agian
    against/agianst almost/allmost already/allready also/aslo although/altough always/allways american/amercian
    among/amoung another/anohter apparent/apparant argument/arguement around/arround beautiful/beatiful because/becuase
    become/becom before/befor began/begain beginning/begining behind/behing believe/beleive between/betwen
    british/brittish business/buisness calendar/calender called/caled category/catagory century/centruy
    certain/certian character/charachter children/childern city/ciy college/collage committee/comittee
    company/compnay complete/compleate country/contry course/couse definitely/definately described/decribed
    different/diffrent during/durring early/ealry eight/eigth english/englsih environment/enviroment
    especially/especialy exist/exsist experience/experiance family/familly famous/famuos february/febuary first/frist
    following/folowing foreign/foriegn former/fomer friend/freind from/form general/genral government/goverment
    great/graet group/gruop guard/gaurd height/heigth history/histroy however/howver immediately/immediatly
    important/importent including/incuding independent/independant interest/intrest island/iland knowledge/knowlege
    known/konwn language/langauge large/lagre later/latter leave/leav library/libary located/loacted made/mad
    maintenance/maintainance many/mnay million/milion minute/minuet music/musci national/natinal necessary/neccessary
    never/nevr north/noth number/nubmer occasion/ocassion occurred/occured official/offical often/offen
    original/orignal other/ohter parliament/parliment people/poeple performance/performence place/palce
    played/plaied popular/populer population/popluation possible/posible president/presidant probably/probly
    produced/produed public/publick published/publised really/realy receive/recieve recommend/recomend
    record/recrod released/relased right/rigth river/rivr school/shcool season/seson second/secound
    separate/seperate series/seires should/shoud similar/similiar since/sicne single/singel south/sourth
    special/speical started/strated state/satte states/staes still/stil successful/succesful system/sytem
    their/thier there/ther these/thees third/thrid three/thre through/throught together/togther tomorrow/tommorow
    truly/truely under/undre united/untied university/univeristy until/untill usually/usualy version/verison
    village/villiage water/watter weather/wether where/were which/wich while/whlie with/wiht without/whitout
    world/wrold would/woudl write/wriet written/writen years/yaers"""
_MISSPELLINGS = dict(pair.split("/") for pair in _PAIRS.split())


def typo(word: str, rng: np.random.Generator) -> str:
    """The word with one error: a neighbouring key, a common misspelling, a cut end, or shuffled inner letters.

    Args:
        word: At least 3 characters, which no result goes below; punctuation around it stays.
        rng: Chooses.

    Returns:
        A different word; the given one only if no error applies (a word of three equal signs).
    """
    start = len(word) - len(word.lstrip(_MARKS))
    end = len(word.rstrip(_MARKS))
    core = word[start:end]
    errors = (_neighbour, _misspell, _cut, _shuffle_letters)
    for kind in rng.permutation(len(errors)):
        misspelt = errors[kind](core, rng)
        if misspelt != core:
            return word[:start] + misspelt + word[end:]
    return word


def _neighbour(word: str, rng: np.random.Generator) -> str:
    """One letter replaced by an adjacent key, its case kept."""
    positions = [i for i, letter in enumerate(word) if _adjacent(letter)]
    if not positions:
        return word
    position = positions[int(rng.integers(len(positions)))]
    near = _adjacent(word[position])
    letter = near[int(rng.integers(len(near)))]
    return word[:position] + (letter.upper() if word[position].isupper() else letter) + word[position + 1 :]


def _adjacent(letter: str) -> str:
    for r, row in enumerate(_ROWS):
        column = row.find(letter.lower())
        if column >= 0:
            beside = row[max(0, column - 1) : column] + row[column + 1 : column + 2]
            above = _ROWS[r - 1][column : column + 2] if r else ""
            below = _ROWS[r + 1][max(0, column - 1) : column + 1] if r + 1 < len(_ROWS) else ""
            return "".join(key for key in beside + above + below if key.isdigit() == letter.isdigit())
    return ""


def _misspell(word: str, _rng: np.random.Generator) -> str:
    misspelling = _MISSPELLINGS.get(word.lower(), word)
    return misspelling.capitalize() if misspelling != word and word[:1].isupper() else misspelling


def _cut(word: str, rng: np.random.Generator) -> str:
    """Up to three letters gone from the end or from the start, three left at least."""
    most = min(3, len(word) - 3)
    if most < 1:
        return word
    gone = int(rng.integers(1, most + 1))
    return word[gone:] if rng.integers(2) else word[:-gone]


def _shuffle_letters(word: str, rng: np.random.Generator) -> str:
    """min(40 % of the letters, 2) letters change places, never the first."""
    moved = min(int(0.4 * len(word)), 2)
    if moved < 2:
        return word
    positions = np.sort(1 + rng.permutation(len(word) - 1)[:moved])
    letters = list(word)
    letters[positions[0]], letters[positions[1]] = letters[positions[1]], letters[positions[0]]
    return "".join(letters)
