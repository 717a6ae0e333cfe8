"""Gibberish: found at each place, not seen in what people and programs write, the same alone and in company."""

from __future__ import annotations

import numpy as np
import pytest

from unpoison.text.gibberish import PART, THRESHOLD, WINDOW, gibberish, network
from unpoison.text.pieces import tokens

MADE = (
    "balthazar grit nationwide submissions quay balance folklore interest paso dexter assumptionsly wharton mg towers",
    "hike height factors leading bible elite hindifies extensionple meditationity guided counseling miner stakes armed",
    "america employment cookie korea fascistef did chassisete britain afterwards permanentlyede influenced "
    "abandon cilb",
    "flu however genusari multiple wars soft volkswagen labs provides copiedgar mon towers diseases il enter fall greg",
)
"""Written for this test; not of the fit."""

BEFORE = (
    "The harbour of the old town was built in 1874, after two fires had destroyed most of the warehouses. Ships from "
    "the north still land there in spring, and the market behind the church is open until late in the evening."
)
AFTER = "Visitors find a small museum in the former customs house, which shows maps, tools and letters of the time."

HARMLESS = {
    "prose": f"{BEFORE} {AFTER}",
    "lower case": f"{BEFORE} {AFTER}".lower(),
    "code": "def screen(self, query: str, passages: Sequence[Passage]) -> Screening:\n    for index, passage "
    "in enumerate(passages):\n        if not passage.text.strip():\n            raise ValueError(f'{index}: "
    "empty')\n    return Screening(tuple(verdicts), kept=tuple(i for i, v in enumerate(verdicts) if v.kept))",
    "log": "2024-03-11 09:14:22,118 INFO [worker-3] billing.InvoiceJob: started id=48213 retries=0\n"
    "2024-03-11 09:14:23,901 WARN [worker-1] mail.Queue: slow consumer host=mx2.internal lag=1204ms\n"
    "2024-03-11 09:14:25,004 ERROR [worker-3] billing.InvoiceJob: timeout after 30s id=48213",
    "table": "| Region | Stores | Revenue | Change |\n|---|---|---|---|\n| Northern Europe | 214 | 38.2 | +4 "
    "% |\n| Southern Europe | 187 | 29.9 | -2 % |\n| Asia Pacific | 301 | 51.7 | +11 % |\n| Latin America | "
    "96 | 12.4 | 0 % |",
    "names": "Amelia Hartwell, Jonas Lindqvist, Priya Raghunathan, Tomasz Zielinski, Chinedu Okafor, Mei-Ling "
    "Zhou, Siobhan O'Reilly, Mateo Fernandez, Aroha Ngata, Yusuf Demir, Ingrid Solberg, Katarzyna Nowak, "
    "Bram de Vries",
    "addresses": "Hartwell Ltd, 14 Quay Street, Bristol BS1 4DJ\nLindqvist AB, Storgatan 22, 411 38 "
    "Gothenburg\nOkafor & Sons, 7 Allen Avenue, Ikeja, Lagos\nZhou Trading, 118 Nanjing Road, Shanghai 200003",
    "references": "[1] Carlini, N. and Wagner, D. (2017). Towards evaluating the robustness of neural "
    "networks. In IEEE Symposium on Security and Privacy, pp. 39-57.\n[2] Ebrahimi, J., Rao, A., Lowd, D. "
    "and Dou, D. (2018). HotFlip: White-box adversarial examples for text classification. In Proceedings of "
    "ACL, pp. 31-36.",
    "hashes": "d41d8cd98f00b204e9800998ecf8427e  empty.txt\n9e107d9d372bb6826bd81d3542a419d6  fox.txt\n"
    "e4d909c290d0fb1ca068ffaddf22cbd0  full-stop.txt\n5eb63bbbe01eeed093cb22bb8f5acdc3  hello.txt",
    "formulae": "f(x) = \\frac{1}{\\sigma \\sqrt{2 \\pi}} e^{-\\frac{(x - \\mu)^2}{2 \\sigma^2}}, so that "
    "\\int f(x) dx = 1 and E[X] = \\mu; with a = 2b + c and n \\leq k we get \\sum_{i=1}^{n} x_i = n \\bar{x}",
    "configuration": "[server]\nhost = 0.0.0.0\nport = 8080\nworkers = 4\nlog_level = info\n\n[database]\nurl "
    "= postgresql://app@db.internal/app\npool_size = 10\nssl_mode = require\nconnect_timeout = 5",
    "products": "Bosch GSR 12V-15 cordless drill driver, 2 x 2.0 Ah batteries, L-BOXX, blue\nMakita DHP482Z "
    "18V LXT combi drill, body only\nDeWalt DCD796N brushless hammer drill 18V XR, bare unit, 70 Nm",
    "keywords": "harbour, museum, customs house, warehouses, shipping, spring market, maps, tools, letters, "
    "fishing, old town, church, ferry, lighthouse, tourism, opening hours, tickets, guided tours, exhibitions",
    "chat": "lol ok brb gotta grab food, u coming later or nah?? btw did u see what she posted omg i cant "
    "even haha anyway hmu when ur free, prob gonna be at the usual spot around 8ish",
    "poem": "Grey is the tide at the mouth of the river,\nGrey are the gulls in the reeds where they cry;\n"
    "Slow goes the boat with its lantern a-shiver,\nSlow goes the moon through the smoke of the sky.",
    "scanned": "Tlie harb0ur of the oid town was bui1t in 1874, aftcr two fircs had destr0yed most of tbe "
    "warehouses. Ships frorn the north stil1 land therc in spring, and tlie market behiud the church is opcn "
    "unti1 late.",
    "German": "Die Rechtsschutzversicherungsgesellschaften veröffentlichten gestern ihre "
    "Jahresabschlussberichte; die Donaudampfschifffahrtsgesellschaft dagegen verschob ihre Hauptversammlung "
    "auf den kommenden Donnerstag.",
    "Finnish": "Kaupungin vanha satama rakennettiin kahden suuren tulipalon jälkeen, ja pohjoisesta tulevat "
    "laivat saapuvat sinne yhä keväisin, kun jäät ovat sulaneet ja tori kirkon takana avataan uudelleen.",
    "Turkish": "Eski şehrin limanı, depoların çoğunu yok eden iki büyük yangından sonra inşa edildi; kuzeyden "
    "gelen gemiler ilkbaharda hâlâ oraya yanaşıyor ve kilisenin arkasındaki pazar akşama kadar açık kalıyor.",
    "Vietnamese": "Bến cảng của khu phố cổ được xây dựng sau hai trận hỏa hoạn lớn, và tàu thuyền từ phương "
    "bắc vẫn cập bến ở đó vào mùa xuân, khi khu chợ phía sau nhà thờ mở cửa đến tối muộn.",
    "Hindi in Latin letters": "Yaar kal main office nahi aa paunga kyunki ghar pe kuch kaam hai, tum please "
    "boss ko bata dena ki main work from home karunga aur shaam tak report bhej dunga, theek hai na?",
    "Russian": "Гавань старого города была построена после двух пожаров, уничтоживших большую часть складов, "
    "и корабли с севера до сих пор приходят туда весной.",
    "Chinese": "旧城的港口建于一八七四年，当时两场大火烧毁了大部分仓库。春天仍有北方的船只停靠。",
    "Japanese": "旧市街の港は、二度の火事で倉庫の大半が焼けたあと、一八七四年に建てられた。春には船が着く。",
    "Korean": "옛 시가지의 항구는 두 번의 화재로 창고 대부분이 불탄 뒤에 지어졌고, 봄이면 지금도 북쪽에서 "
    "배가 들어온다.",
    "Arabic": "بني ميناء المدينة القديمة بعد حريقين كبيرين دمرا معظم المستودعات، وما زالت السفن القادمة من "
    "الشمال ترسو فيه.",
    "Hindi": "पुराने शहर का बंदरगाह दो बड़ी आग के बाद बनाया गया था, और उत्तर से आने वाले जहाज़ आज भी वसंत में वहाँ आते हैं।",
    "two languages": "Der Hafen was built in 1874 (siehe Abbildung 3): after two Brände most of the "
    "Lagerhäuser were lost.",
    "a few words": "Opening hours: Monday to Friday, 9 to 5.",
}


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize(
    ("before", "after"), [("", ""), (f"{BEFORE} ", ""), ("", f" {AFTER}"), (f"{BEFORE} ", f" {AFTER}")]
)
def test_found_wherever_it_stands(made: str, before: str, after: str) -> None:
    text = f"{before}{made}{after}"
    found = gibberish(text)
    assert found.probability >= THRESHOLD
    assert found.start < len(before) + len(made)
    assert found.end > len(before)
    assert len(tokens([text[found.start : found.end]], np.zeros(2461, np.uint8)).start) == WINDOW


@pytest.mark.parametrize("kind", HARMLESS)
def test_what_people_and_programs_write_is_none(kind: str) -> None:
    assert gibberish(HARMLESS[kind]).probability < THRESHOLD


def test_nothing_added_elsewhere_clears_it() -> None:
    """The stretches that begin in front of what is added stay as they are."""
    short = gibberish(f"{MADE[0]} {BEFORE}").probability
    for added in (AFTER, AFTER * 50, *HARMLESS.values()):
        assert gibberish(f"{MADE[0]} {BEFORE} {added}").probability >= short


def test_numbers_are_whole_and_their_sums_exact() -> None:
    """So every machine computes the same, in any order."""
    weights = network()
    parts = (weights.known, weights.first, weights.last, weights.shape, weights.build, weights.near, weights.near_bias)
    for part in (*parts, weights.deep, weights.deep_bias, weights.top):
        assert (part == np.round(part)).all()
    words = np.maximum(np.abs(weights.known).max(0), np.abs(weights.first).max(0) + np.abs(weights.last).max(0))
    vectors = words + np.abs(weights.shape).max(0) + np.abs(weights.build).max(0)
    sums = np.einsum("d,kdh->h", vectors, np.abs(weights.near)) + np.abs(weights.near_bias)
    assert sums.max() < 2**24
    assert (255 * WINDOW * np.abs(weights.deep).sum(0) + np.abs(weights.deep_bias)).max() < 2**53
    assert np.log2(weights.divisor) % 1 == np.log2(weights.deep_divisor) % 1 == 0
    assert (np.diff(weights.words.astype(object)) > 0).all()


def test_products_are_so_small_that_blas_takes_one_thread() -> None:
    """OpenBLAS wakes others for more than 2^18 multiplications, which wait for the next product at full speed."""
    weights = network()
    assert PART * weights.near.size <= 2**18
    assert PART * weights.deep.size <= 2**18


FOREIGN_TEXTS = (
    "Sommige gebieden zijn geschikt voor een gemengd bedrijf als ze verschillende soorten land tot hun beschikking "
    "hebben. Gemengde bedrijven Op een gemengd bedrijf worden zowel gewassen verbouwd als dieren gehouden.",
    "w czasach kontaktu z europejczykami pod koniec XV w. Po odkryciu lądu było inaczej niż wcześniej, a kroniki z "
    "tego okresu mówią o tym tylko krótko.",
)


@pytest.mark.parametrize("text", FOREIGN_TEXTS)
def test_rare_words_of_another_language_are_none(text):
    assert gibberish(text).probability < THRESHOLD


@pytest.mark.parametrize("text", FOREIGN_TEXTS)
@pytest.mark.parametrize("made", MADE[1::2])
def test_a_strong_attack_inside_another_language_is_found(text, made):
    assert gibberish(f"{text} {made}").probability >= THRESHOLD


@pytest.mark.parametrize(
    "text",
    [
        "यह background job वही है जो queue worker specification में define की गई है और हर user request के बाद चलता है।",
        "इस mobile app का payment gateway integration complete होने पर order status automatically update हो जाता है।",
    ],
)
def test_hindi_that_mixes_in_english_words_is_none(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < gibberish(text).probability < THRESHOLD
    monkeypatch.setattr("unpoison.text.gibberish.FOREIGN", 0.0)
    assert gibberish(text).probability > THRESHOLD
