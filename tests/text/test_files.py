"""What bytes say: a text in any encoding; pictures, sounds, films and PDF files by their structure."""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import quote

import pytest

from unpoison.text.files import BASE64, TEXT, file_of, text_of

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
