"""What bytes say: a text in any encoding; pictures, sounds, films and PDF files by their structure."""

from __future__ import annotations

from base64 import b64encode
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from needs import need
from unpoison.text import files
from unpoison.text.files import BASE64, TEXT, decode, file_of, octets_of, readings_of, text_of

ENGLISH = "The harbour of Varberg was built in 1902, and the city has run it since then."
RUSSIAN = "Гавань в Варберге была построена в 1902 году, и с тех пор ею управляет город."
NOISE = bytes(range(256)) * 9


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp037", "latin-1"])
def test_english_is_read_in_every_encoding(coding: str) -> None:
    for value in (ENGLISH.encode(coding), b64encode(ENGLISH.encode(coding)).decode(), ENGLISH.encode(coding).hex()):
        file = file_of(value, None)
        assert file is not None
        assert file.kind == TEXT
        assert any(ENGLISH in text for text in file.texts)


@pytest.mark.parametrize("coding", ["cp1251", "koi8-r", "utf-16-be", "utf-8"])
def test_other_letters_are_read(coding: str) -> None:
    file = file_of(RUSSIAN.encode(coding), None)
    assert file is not None
    assert RUSSIAN in file.texts


def test_a_line_in_another_encoding_is_read_beside_plain_ones() -> None:
    file = file_of(f"{ENGLISH}\n".encode() * 99 + RUSSIAN.encode("cp1251"), None)
    assert file is not None
    assert RUSSIAN in file.texts


def test_a_text_is_written_back_as_it_came() -> None:
    for head in ("", "data:text/plain;base64,"):
        file = file_of(head + b64encode(ENGLISH.encode("cp037")).decode(), None)
        assert file is not None
        assert file.written("Gone.") == head + b64encode("Gone.".encode("cp037")).decode()


@pytest.mark.parametrize(
    ("data", "said", "unread"),
    [
        (b"GIF89a" + NOISE + b";", "image/gif", False),
        (b"GIF89a" + NOISE, "image/gif", True),
        (b"GIF89a" + NOISE + b";", "text/plain", True),
        (b"\xff\xfb" + NOISE, "audio/mpeg", False),
        (b"\xff\xfb" + NOISE, "", True),
        (b"%PDF-1.7 obj" + NOISE + b"startxref 9 %%EOF", "", False),
        (b"%PDF-1.7 obj" + NOISE, "", True),
        (b"PK\x03\x04" + NOISE, "application/zip", True),
        (NOISE, "application/octet-stream", True),
    ],
)
def test_a_file_is_shown_if_it_is_what_it_is_said_to_be(data: bytes, said: str, unread: bool) -> None:
    file = file_of(b64encode(data).decode(), said)
    assert file is not None
    assert (file.kind != TEXT, file.unread) == (True, unread)


def test_what_is_printed_between_binary_data_is_read() -> None:
    for coding in ("ascii", "cp037"):
        file = file_of(NOISE + ENGLISH.replace("1902", "").encode(coding) + NOISE, "")
        assert file is not None
        assert any("and the city has run it since then." in text for text in file.texts)


@pytest.mark.parametrize("coding", ["utf-8", "utf-16", "cp037", "utf-7"])
def test_a_data_url_may_be_written_in_percents(coding: str) -> None:
    """Few of them too, of which the canonical text decodes none."""
    for text in (ENGLISH, "Hello again, dear."):
        for url in ("data:text/plain,", "data:,", "DATA:text/plain;charset=x,"):
            file = file_of(url + quote(text.encode(coding)), None)
            assert file is not None
            assert any(text in said for said in file.texts)
            assert (file.kind, file.plain) == (TEXT, True)
            assert file.written("Gone.").startswith(url)


def test_words_tokens_and_bytes_are_told_apart() -> None:
    assert file_of("plainwords", None) is None
    assert file_of(ENGLISH, None) is None
    assert file_of(f"data: {ENGLISH}", None) is None
    assert file_of(f"data:of the year, {ENGLISH}", None) is None
    assert file_of("9f86d081884c7d659a2feaa0c55ad015" * 2, None) is None
    assert BASE64.fullmatch(f"{'A' * 76}\n" * 3)
    assert not BASE64.fullmatch("two words")
    assert text_of(NOISE) is None
    assert text_of("a\0b".encode("utf-16-le")) == "ab"


@pytest.mark.parametrize(
    ("raw", "text", "notes"),
    [
        (f"é{ENGLISH}".encode(), f"é{ENGLISH}", ()),
        (ENGLISH.encode("utf-8-sig"), ENGLISH, ()), (ENGLISH.encode("utf-16"), ENGLISH, ()),
        (ENGLISH.encode("utf-32"), ENGLISH, ()),
        (b"\xef\xbb\xbfa\xff b\xff", "a\ufffd b\ufffd", ("not utf-8-sig", "2")),
        (f'<?xml version="1.0" encoding="koi8-r"?>{RUSSIAN}'.encode("koi8-r"), RUSSIAN, ()),
        (f'<meta charset="cp1251">{RUSSIAN}'.encode("cp1251"), RUSSIAN, ()),
        ("content-type: text/plain; charset=iso-8859-1\n“café”".encode("cp1252"), "“café”", ()),
        (b"<meta charset=ascii>caf\xe9", "café", ()),
        (b'<meta charset="utf-8">caf\xe9 and tea', "café and tea", ("declares utf-8 wrongly", "guessed: cp1252")),
        ('<meta charset="klingon">café'.encode(), "café", ("declares klingon wrongly",)),
        (RUSSIAN.encode("koi8-r") * 3, RUSSIAN, ("guessed: koi8_r",)),
        ("Le café du port à Göteborg".encode("cp1252"), "Le café du port à Göteborg", ("guessed: cp1252",)),
        ("Zażółć gęślą jaźń; się nie wie, że będzie można. ".encode("cp1250") * 5, "będzie można",
         ("guessed: cp1250",)),
        ("港は1902年に造られた。".encode("iso2022_jp"), "港は1902年に造られた。", ()),
        ("항구는 1902년에 지어졌고".encode("iso2022_kr"), "항구는 1902년에 지어졌고", ()),
        (ENGLISH.encode("utf-16-le"), ENGLISH, ("guessed: utf_16_le",)), (b"", "", ()),
        (b"\x1b[31mred", "\x1b[31mred", ()),
        (b"x" * 4000 + b'<meta charset="cp1251">\xe9', "й", ()),
        (b"x" * 4096 + b'<meta charset="cp1251">\xe9', "é", ("guessed: cp1252",)),
    ],
)  # fmt: skip
def test_a_file_is_read_by_its_mark_its_declaration_its_escapes_or_a_guess(
    raw: bytes, text: str, notes: tuple[str, ...]
) -> None:
    if any("guessed" in note for note in notes):
        need("charset_normalizer")
    found, said = decode(raw)
    assert text in found
    assert len(said) == (len(notes) if "not utf-8-sig" not in notes else 1)
    assert all(note in " ".join(said) for note in notes)


@pytest.mark.needs("charset_normalizer")
@pytest.mark.parametrize("end", [b"\n", b" "])
def test_a_long_file_is_guessed_from_its_first_foreign_letters_cut_where_no_character_is(
    monkeypatch: pytest.MonkeyPatch, end: bytes
) -> None:
    seen = list[bytes]()
    monkeypatch.setattr(
        "charset_normalizer.from_bytes", lambda raw: seen.append(raw) or SimpleNamespace(best=lambda: None)
    )
    monkeypatch.setattr(files, "MAX_GUESSED", 1_100)
    decode(b"a" * 3_000 + b"\xe9" + b"b" * 30 + end + b"c" * 90)
    assert seen == [b"a" * 1_000 + b"\xe9" + b"b" * 30], "1,000 characters before it, at a multiple of four"
    decode(b"a" * 3_002 + b"\xe9" + b"b" * 90)
    assert seen[1:] == [b"a" * 1_002 + b"\xe9" + b"b" * 90], "short enough"
    decode(b"\0a" * 700 + b"\xe9\xe9" + b"\0 " * 90)
    assert len(seen[2]) == 1_100, "of two bytes each, which no space ends"


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"aab\xff", "aab\ufffd"), (b"ab\xff", "ab\ufffd"), (b"aa\xff\xff", None), (b"", ""), (b"a\0\0b", "ab"),
     (b"\x01\x02a", None), (b"\x01ab", "\x01ab")],
)  # fmt: skip
def test_bytes_are_a_text_if_two_thirds_of_it_are(data: bytes, text: str | None) -> None:
    assert text_of(data) == text


@pytest.mark.parametrize(
    ("encoded", "octets"),
    [("aGVsbG8", b"hello"), ("aGVsbG8==", b"hello"), ("aGV sb\nG8", b"hello"), ("aGVsb", b"hel"),
     ("_-__", b"\xff\xef\xff"), ("", b"")],
)  # fmt: skip
def test_base64_is_read_whatever_stands_between_and_at_its_end(encoded: str, octets: bytes) -> None:
    assert octets_of(encoded) == octets


@pytest.mark.parametrize(("length", "plain"), [(60, None), (64, True), (996, True), (1000, False), (1004, False)])
def test_base64_alone_is_a_file_from_a_length_on_and_later_no_text_as_it_stands(
    length: int, plain: bool | None
) -> None:
    encoded = b64encode(ENGLISH.encode() * 10).decode()[:length]
    file = file_of(encoded, None)
    assert (file and file.plain) == plain
    assert file is None or (file.kind, file.named, file.unread) == (TEXT, False, False)


@pytest.mark.parametrize(("length", "found"), [(996, False), (1000, True)])
def test_other_base64_alone_is_a_file_only_where_it_is_long(length: int, found: bool) -> None:
    file = file_of(b64encode(bytes(range(128, 256)) * 9).decode()[:length], None)
    assert (file is not None) == found


@pytest.mark.parametrize("said", ["", "text/plain", "image"])
def test_base64_that_is_said_to_be_a_file_is_one_however_short(said: str) -> None:
    for text in (ENGLISH, "Hi."):
        file = file_of(b64encode(text.encode()).decode(), said)
        assert file is not None
        assert (file.kind, file.texts[0], file.plain, file.named, file.unread) == (TEXT, text, False, True, False)


def test_what_a_data_url_says_beside_its_content_is_read_and_not_written_back() -> None:
    note = "note=Ignore%20this"
    encoded = file_of(f"data:text/plain;{note};base64,{b64encode(ENGLISH.encode()).decode()}", None)
    plain = file_of(f"data:text/plain;{note},abc", None)
    assert encoded is not None
    assert plain is not None
    assert (encoded.texts, plain.texts) == ((ENGLISH, ";note=Ignore this"), ("abc", ";note=Ignore this"))
    assert (encoded.plain, encoded.named, plain.plain) == (False, True, True)
    assert encoded.written("Gone.") == f"data:text/plain;base64,{b64encode(b'Gone.').decode()}"
    assert plain.written("G o") == "data:text/plain,G%20o"


def test_hexadecimal_digits_and_bytes_are_written_back_as_such() -> None:
    digits, octets = file_of(f"0x{ENGLISH.encode().hex()}", None), file_of(ENGLISH.encode(), None)
    assert digits is not None
    assert octets is not None
    assert (digits.texts[0], digits.written("Go")) == (ENGLISH, "476f")
    assert (octets.texts, octets.written("Go"), octets.plain) == ((ENGLISH,), "Go", False)


def test_random_bytes_have_no_reading_and_a_text_has_all_that_make_sense() -> None:
    assert readings_of(bytes(range(256)) * 3) == []
    assert RUSSIAN in readings_of(RUSSIAN.encode("koi8-r"))
    assert len(readings_of(RUSSIAN.encode("koi8-r"))) > 1
