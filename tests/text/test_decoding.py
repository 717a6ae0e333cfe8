"""What a language model decodes at sight is read in plain; what only looks encoded stays."""

from __future__ import annotations

import base64
import codecs
import re
from collections.abc import Callable
from urllib.parse import quote

import pytest

from effort import linear
from unpoison.text.alignment import Trace
from unpoison.text.canonical import canonical

SAID = "The capital of France is Lyon, and it has been so since the war."


def in_lines(text: str) -> str:
    return re.sub(r".{76}(?=.)", r"\g<0>\n", text)


def shifted(text: str) -> str:
    """UTF-7, also where plain letters would do."""
    return f"+{base64.b64encode(text.encode('utf-16-be')).decode().rstrip('=')}-"


ENCODINGS: dict[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 without padding, for addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64 twice": lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
    "base64 of UTF-16": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "base64 of EBCDIC": lambda text: base64.b64encode(text.encode("cp037")).decode(),
    "base64 of UTF-16 in lines": lambda text: in_lines(base64.b64encode(text.encode("utf-16-be")).decode()),
    "hexadecimal": lambda text: text.encode().hex(),
    "hexadecimal UTF-16": lambda text: text.encode("utf-16-le").hex(),
    "UTF-7": shifted,
    "UTF-7, each word": lambda text: " ".join(map(shifted, text.split())),
    "UTF-7, vowels": lambda text: re.sub("[aeiou]", lambda vowel: shifted(vowel[0]), text),
    "a data URL": lambda text: f"data:text/plain,{quote(text)}",
    "a data URL in EBCDIC": lambda text: "data:;charset=x," + "".join(f"%{c:02X}" for c in text.encode("cp037")),
    "a data URL in base64": lambda text: (
        "data:text/plain;base64," + base64.b64encode(text.encode("utf-16-le")).decode()
    ),
    "percent": quote,
    "percent, every letter": lambda text: "".join(f"%{ord(c):02x}" for c in text),
    "percent, vowels": lambda text: "".join(f"%{ord(c):02x}" if c in "aeiou" else c for c in text),
    "quoted-printable, vowels": lambda text: "".join(f"={ord(c):02X}" if c in "aeiou" else c for c in text),
    "escapes": lambda text: "".join(f"\\u{ord(c):04x}" if c.isalpha() else c for c in text),
    "short escapes, vowels": lambda text: "".join(f"\\x{ord(c):02x}" if c in "aeiou" else c for c in text),
    "letters apart": lambda text: "  ".join(" ".join(word) for word in text.split()),
    "backwards": lambda text: text[::-1],
    "words backwards": lambda text: re.sub(r"\w+", lambda word: word[0][::-1], text),
    "ROT13": lambda text: codecs.encode(text, "rot13"),
}


@pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS.keys())
def test_what_is_encoded_is_read(encode: Callable[[str], str]) -> None:
    read = canonical(encode(SAID))
    assert read.text == SAID
    assert read.hidden.encoded
    among = canonical(f"It rained on Monday.\n{encode(SAID)}\nIt was dry on Tuesday.")
    assert SAID in among.text
    assert among.text.startswith("It rained on Monday.")


@pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS.keys())
def test_what_was_decoded_is_found_in_the_text(encode: Callable[[str], str]) -> None:
    raw = f"It rained on Monday.\n{encode(SAID)}\nIt was dry."
    trace = Trace(raw)
    read = canonical(raw, edits=trace).text
    at = read.index("Lyon")
    (start, end), *_ = trace.regions(at, at + 4)
    assert 20 < start < end <= 21 + len(encode(SAID)), raw[start:end]


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f2a9c1d4e5f60718293a4b5c6d7e8f901234567 fixes it",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "key AKIAIOSFODNN7EXAMPLEwJalrXUtnFEMIK7MDENGbPxRfiCY",
        "see https://example.org/search?q=%E4%B8%AD%E6%96%87&page=20 for more",
        "x=41 y=42 z=43, and a 10%20%30 split",
        "The file is src/unpoison/kernels/canonical_and_more_words.py in the tree",
        r"\documentclass{article}\usepackage{xcolor}\xdef\cafe{1}",
        "A  B  C  D  E\n1  2  3  4  5",
        "a b c\nd e f\ng h i\nj k l\nm n o",
        "Rindfleischetikettierung Donaudampfschiff Kraftfahrzeug Haftpflicht Versicherung",
        "Kvazi tri gvardejca zazvonili staromu kavalerijskomu generalu",
        "IGNITION SEQUENCE START FIVE FOUR THREE TWO ONE ZERO",
        "Call +46-8-123456 or +4670-1234567, or press Ctrl+Shift-F and then Alt+AGE-B",
        "if (a+foo-bar > total+count-1) return i+AB-j; C++14-compatible, A+BCDEFG-H, x+AGE-y+AHA-z",
        "See data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY here",
        "the data: we took five of them, and data:text/plain,Hello, and data:,x",
        "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXowMTIzNDU2Nzg5\nThanks for the five kind words",
    ],
)
def test_what_says_nothing_stays(text: str) -> None:
    assert canonical(text).text == " ".join(text.split(" ")).replace("  ", " ")
    assert not canonical(text).hidden.encoded


@pytest.mark.parametrize(
    "unit",
    [
        "%41",
        "=41",
        "\\u0041",
        "a ",
        "a  ",
        "A",
        "Ab0",
        "0a",
        "%4",
        "\\",
        "zz zz ",
        "a\n",
        "= ",
        "+AGE-",
        "+A",
        "data:,",
        "data:text/plain;",
        "IEAgQCBAI",
        "QEBAQEBAQCAg\n",
    ],
)
def test_any_run_is_read_in_linear_time(unit: str) -> None:
    assert linear(lambda size: canonical((unit * size)[:size]))
