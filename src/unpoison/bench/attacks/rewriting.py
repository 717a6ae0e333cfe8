"""Rewriting a text without a language model: synonyms from a small table, sentence order and openings, typos."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unpoison.bench.attacks.base import contains_answer
from unpoison.models.sentences import STOP_WORDS, split

__all__ = ["Rewritten", "paraphrase_text", "sentences", "typo", "with_synonyms"]

_GROUPS = """accounts/reports/descriptions accurate/correct/exact agree/concur also/likewise amount/quantity ancient/old
annual/yearly answer/reply appear/emerge appeared/emerged area/region/zone author/writer award/prize
awarded/granted band/group became/turned began/started begin/start believed/thought big/large/sizeable
book/volume born/delivered build/construct building/edifice built/constructed/erected called/named/termed
capital/seat captured/seized century/epoch certain/sure character/figure chief/main/principal child/youngster
city/town/metropolis claim/assertion claims/asserts collected/gathered common/usual/frequent
company/firm/enterprise complete/full completed/finished confirmed/verified/attested considered/regarded/deemed
contains/holds/includes country/nation/state created/made/devised current/present/existing date/day
dead/deceased decided/resolved defeated/beat designed/planned/conceived details/particulars developed/evolved
died/perished difficult/hard directed/led discovered/found/uncovered early/initial earlier/previous/prior
effect/impact ended/concluded/closed enough/sufficient entire/whole established/founded/instituted
event/occasion evidence/proof exact/precise experts/specialists/authorities famous/renowned/celebrated/noted
fast/quick/rapid featured/showcased fight/battle film/movie/picture final/last first/initial followed/succeeded
foreign/overseas formed/shaped former/previous found/located further/additional game/match gave/granted
given/granted grew/expanded held/kept help/aid high/tall historic/historical home/residence house/dwelling
huge/enormous/vast idea/notion important/significant/major increase/rise increased/rose information/data
job/position joined/entered journal/periodical killed/slain kind/type/sort known/recognised language/tongue
largest/biggest later/subsequent/afterwards launched/introduced leader/head leading/foremost learn/discover
listed/recorded/registered listing/register little/small located/situated/based long/lengthy main/primary/chief
maker/producer many/numerous/several matter/question/issue meaning/sense method/procedure/technique
modern/contemporary moved/shifted/relocated movie/film music/tunes near/close/beside needed/required
new/recent/novel next/following note/remark number/figure/count obtained/acquired/gained
official/formal/authorised often/frequently oldest/earliest only/solely opened/inaugurated
origin/source/beginning original/initial outside/beyond part/portion people/persons/folk
performed/played/presented period/era person/individual place/spot/location played/performed
popular/well-liked/favoured position/post/role possible/feasible power/force present/current price/cost
produced/made/manufactured published/issued/printed question/query quickly/swiftly/rapidly quiz/trivia
reached/attained readers/audiences real/genuine/actual received/obtained recent/latest record/entry
records/files/archives recorded/registered/documented released/issued/published remains/stays report/account
reports/accounts reviewed/examined/assessed rich/wealthy river/stream road/route said/stated/declared
scene/setting season/series selected/chosen/picked separate/distinct series/sequence settled/decided/resolved
several/various/multiple shown/displayed significant/notable similar/alike/comparable simple/plain/basic
singer/vocalist situated/located sold/marketed song/tune/track source/reference sources/references
south/southern speak/talk special/particular starred/appeared stated/declared stories/tales story/tale/narrative
strong/powerful/robust study/investigation subject/topic/theme successful/prosperous summaries/digests
surprised/astonished taken/seized team/squad/side term/expression today/nowadays tour/trip town/settlement
travel/journey true/factual/genuine turned/became type/kind/variety updated/revised/refreshed
usually/normally/typically version/edition/variant victory/win/triumph war/conflict/hostilities whole/entire
wide/broad widely/broadly withdrawn/retracted won/secured/gained word/term work/labour works/publications
world/globe written/penned/authored wrote/penned wrong/mistaken/incorrect year/twelvemonth young/youthful"""

_TABLE: dict[str, tuple[str, ...]] = {}
for _group in _GROUPS.split():
    _members = tuple(_group.split("/"))
    for _word in _members:
        _TABLE.setdefault(_word, tuple(m for m in _members if m != _word))

_OPENINGS = (
    "As it turns out,",
    "According to the same accounts,",
    "Put differently,",
    "It has been established that",
    "For the record,",
    "By all indications,",
    "It is worth adding that",
    "On closer inspection,",
)


class Rewritten(NamedTuple):
    """A rewritten text, how many words were replaced, and how many content words could have been."""

    text: str
    replaced: int
    content: int


def with_synonyms(text: str, keep: Sequence[str], rng: np.random.Generator, rate: float) -> Rewritten:
    """Replace a share of the content words by synonyms, words of the kept texts never.

    Args:
        text: The text.
        keep: Texts whose words stay, such as the question and the wrong answer.
        rng: Chooses words and synonyms.
        rate: Share of all content words to replace, in [0, 1]; the table may know fewer.
    """
    kept = {word.lower() for phrase in keep for sentence in split(phrase) for word in sentence.words}
    parts, start = [], 0
    content, choices = 0, []
    for sentence in split(text):
        at = text.index(sentence.text, start)
        start = at + len(sentence.text)
        for word, offset in zip(sentence.words, sentence.starts, strict=True):
            lowered = word.lower()
            if lowered in STOP_WORDS or lowered in kept:
                continue
            content += 1
            if lowered in _TABLE:
                choices.append((at + offset, word))
    wanted = min(len(choices), round(rate * content))
    end = 0
    for k in sorted(rng.permutation(len(choices))[:wanted].tolist()):
        at, word = choices[k]
        options = _TABLE[word.lower()]
        synonym = options[int(rng.integers(len(options)))]
        parts += [text[end:at], synonym.capitalize() if word[0].isupper() else synonym]
        end = at + len(word)
    return Rewritten("".join([*parts, text[end:]]), wanted, content)


def paraphrase_text(text: str, keep: Sequence[str], rng: np.random.Generator) -> str:
    """The sentences in another order, some with another opening; the given text when that would lose a kept phrase."""
    parts = sentences(text)
    order = rng.permutation(len(parts))
    written = []
    for k in order:
        part = parts[k]
        if len(parts) == 1 or rng.random() < 0.5:
            opening = _OPENINGS[int(rng.integers(len(_OPENINGS)))]
            first, _, rest = part.partition(" ")
            part = (
                f"{opening} {first.lower() if first.lower() in STOP_WORDS and first != 'I' else first} {rest}".strip()
            )
        written.append(part)
    rewritten = " ".join(written)
    return rewritten if all(contains_answer(rewritten, k) for k in keep if contains_answer(text, k)) else text


def sentences(text: str) -> list[str]:
    """The sentences of a text as written."""
    return [sentence.text for sentence in split(text)]


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
