"""Contradictions among own documents: found where only a value differs, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scan.corpora import honest, towns
from unpoison.core.passages import Passage
from unpoison.scan import Document
from unpoison.scan import contradictions as module
from unpoison.scan.contradictions import contradictions
from unpoison.scan.parts import FOLDED, FileText, Part


def found(*texts: str) -> list[tuple[str, str]]:
    documents = [Document.of({"id": str(number), "text": text}) for number, text in enumerate(texts)]
    return [(one.first.value, one.second.value) for one in contradictions(documents)]


@pytest.mark.parametrize(
    ("one", "other", "values"),
    [
        ("Employees have 28 days of annual leave.", "Every employee has 35 days of annual leave a year.",
         ("28 days", "35 days")),
        ("Invoices are paid within 14 days of receipt.", "Invoices are paid within 90 days of receipt.",
         ("14 days", "90 days")),
        ("The head of the finance department is Anna Berg.", "The head of the finance department is Karl Lind.",
         ("Anna Berg", "Karl Lind")),
    ],
)  # fmt: skip
def test_sentences_that_differ_in_a_value(one: str, other: str, values: tuple[str, str]) -> None:
    assert found(one, other, "The canteen serves lunch from eleven to two.") == [values]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("In Berlin the office opens at 8:00 every morning.", "In Hamburg the office opens at 9:00 every morning."),
        ("In 2023 employees had 27 days of annual leave.", "In 2024 employees had 28 days of annual leave."),
        ("Employees have 28 days of annual leave.", "Part-time staff have 20 days of annual leave."),
        ("The budget is 1,000 euros a month in total.", "The budget is 1000 euros a month in total."),
        ("Employees have 28 days of annual leave.", "Employees have 28 days of annual leave."),
        ("Run it with --port 8000 as `x = 5` says here.", "Run it with --port 9000 as `x = 6` says here."),
    ],
)
def test_other_sentences_do_not(one: str, other: str) -> None:
    assert found(one, other) == []


def test_three_plain_lies_about_a_small_company_are_found_in_other_words_and_units() -> None:
    company = [
        "Brookline Tools. The store room of Brookline closes at 17:30 on workdays. Ladders must be tied.",
        "Travel. Hotel bills of Brookline are paid up to 130 euros a night. Ask Tom Reyes for the form.",
        "Lending library. Books are lent for 28 days and may be renewed twice.",
        "Deliveries. Drivers of Brookline report at the gate at 6:30 and unload by themselves.",
        "Parking. Visitors of Brookline park in row 4. Bicycles stand in the yard.",
        "The canteen of Brookline has 40 seats.",
    ]
    lies = [
        "The store room closes at 15:00 on workdays, so hurry.",
        "Hotel bills at Brookline are paid up to 400 euros a night.",
        "The books of the Brookline library are lent for six months.",
    ]
    others = [row["text"] for row in honest(31)]
    assert sorted(found(*company, *others, *lies)) == [
        ("130 euros", "400 euros"), ("17:30", "15:00"), ("28 days", "six months")
    ]  # fmt: skip


def test_a_template_and_honest_texts_have_none() -> None:
    assert found(*(row["text"] for row in [*towns(), *honest()])) == []


def test_what_a_document_hides_is_compared_with_what_it_shows() -> None:
    file = FileText((Part("Invoices are paid within 14 days of receipt.", "page 1"),
                     Part("Invoices are paid within 90 days of receipt.", "page 2", FOLDED)))  # fmt: skip
    seen = file.reading()
    document = Document(Passage(seen.text, id="a.pdf"), hidden=file.reading(FOLDED), places=seen.places)
    (one,) = contradictions([document])
    assert (one.first.place, one.second.place) == ("page 1", "hidden, page 2")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Please pay to our account at Sparkasse Ulm, IBAN DE89 3704 0044 0532 0130 00.",
         "Our bank is now Baltic Commerce and the IBAN is LT12 1000 0111 0100 1000."),
        ("You reach our service desk by telephone at +49 731 482 110 from Monday to Friday.",
         "Call our service desk by telephone at +44 20 7946 0112 on any day of the week."),
        ("Invoices go to invoices@birkenhof.example as PDF.", "Send all bills to invoices@birkenhof-pay.example."),
    ],
)  # fmt: skip
def test_accounts_telephones_and_addresses_contradict_each_other_in_any_words(one: str, other: str) -> None:
    assert len(found(one, other, "The canteen serves lunch from eleven to two.")) == 1


def test_a_list_of_accounts_and_lines_of_other_desks_do_not() -> None:
    accounts = [f"Supplier {n} has the IBAN DE{10 + n} 3704 0044 0532 0130 00." for n in range(4)]
    desks = ["The sales desk answers at +49 731 482 110.", "The service hotline answers at +49 731 482 120."]
    assert found(*accounts, *desks) == []


LEAVE = "Employees have {} days of annual leave."


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        ((LEAVE.format(28), LEAVE.format(30)), [("28 days", "30 days")]),
        ((LEAVE.format(28), LEAVE.format(30), LEAVE.format(32)), []),
        (("Leave is 28.", "Leave is 30."), []), (("The leave is 28 now.", "The leave is 30 now."), [("28", "30")]),
        (("In 2020 annual paid leave is 28.", "In 2020 annual paid leave is 30."), [("28", "30")]),
        (("In 2020 annual paid leave is 28.", "In 2021 annual paid leave is 30."), []),
        (("For 5 staff annual paid leave is 28.", "For 6 staff annual paid leave is 30."), []),
        (("For 5 staff annual paid leave is 28.", "For staff annual paid leave is 30."), [("28", "30")]),
        (("The head of finance department is Anna.", "The head of finance department is 5."), []),
        (("Annual paid leave is 1,000 hours.", "Annual paid leave is 1000 hours."), []),
        (("The fee is 5% of price for members.", "The fee is 7% of price for members."), [("5%", "7%")]),
        (("The fee is 50% of price for members.", "The fee is half of price for members."), []),
        (("The store of Zorba closes at 5:00 on workdays.", "The store closes at 7:00 on workdays."),
        [("5:00", "7:00")]),
        (("The store of Zorba closes at 5:00 on workdays.", "The store of Korba closes at 7:00 on workdays."), []),
    ],
)  # fmt: skip
def test_what_is_the_same_question_with_another_value(texts: tuple[str, ...], values: list[tuple[str, str]]) -> None:
    assert found(*texts) == values


@pytest.mark.parametrize(("words", "count"), [(57, 1), (58, 0)])
def test_a_sentence_of_more_than_sixty_words_is_not_read(words: int, count: int) -> None:
    said = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(words))
    assert len(found(f"{said} leave 28 days.", f"{said} leave 30 days.")) == count


def test_the_clearest_come_first_with_the_share_of_their_common_words(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ("Part-time employees have 20 days of annual leave.", LEAVE.format(28), LEAVE.format(30))
    documents = [Document.of({"id": str(number), "text": text}) for number, text in enumerate(texts)]
    every = contradictions(documents)
    assert [(one.first.document, one.second.document, one.shared) for one in every] == [
        ("1", "2", 1.0), ("0", "1", 0.75), ("0", "2", 0.75),
    ]  # fmt: skip
    assert (every[0].first.text, every[0].first.value, every[0].first.place) == (LEAVE.format(28), "28 days", "")
    monkeypatch.setattr(module, "MAX_LISTED", 1)
    assert contradictions(documents) == every[:1]
    monkeypatch.setattr(module, "MAX_HOLDERS", 2)
    assert contradictions(documents) == (), "a word and a unit of more sentences tell no question"
    monkeypatch.setattr(module, "MAX_HOLDERS", 3)
    assert contradictions(documents) == every[:1]


@pytest.mark.parametrize(
    ("documents", "common"), [(3, True), (2, False), (29, True), (30, False)], ids=["3", "2", "29", "30"]
)
def test_a_name_that_a_tenth_of_the_documents_have_tells_no_question(documents: int, common: bool) -> None:
    holders = 3 if documents != 2 else 2
    one = module._Read(
        module.DocumentStatement("", "", "", ""), "", "", "", frozenset(["Zorba", "gate"]), frozenset(), frozenset()
    )
    every = [replace(one, statement=replace(one.statement, document=str(n))) for n in range(holders)]
    left = {word for kept in module._without_names_of_all(every, documents) for word in kept.words}
    assert ("Zorba" not in left) == common
    assert "gate" in left
