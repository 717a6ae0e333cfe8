"""What a language model decodes at sight is read in plain; what only looks encoded stays."""

from __future__ import annotations

import base64
import codecs
import re
from collections.abc import Callable
from string import ascii_lowercase, ascii_uppercase
from urllib.parse import quote

import pytest

from effort import linear
from unpoison.text.alignment import Trace
from unpoison.text.canonical import canonical
from unpoison.text.decoding import decode_text, spelled

SAID = "The capital of France is Lyon, and it has been so since the war."


def in_lines(text: str) -> str:
    return re.sub(r".{76}(?=.)", r"\g<0>\n", text)


def shifted(text: str) -> str:
    """UTF-7, also where plain letters would do."""
    return f"+{base64.b64encode(text.encode('utf-16-be')).decode().rstrip('=')}-"


def moved(by: int, step: int = 1) -> dict[int, int]:
    """Letters in the place of others, as `str.translate` takes them."""
    letters = ascii_lowercase[by:] + ascii_lowercase[:by]
    return str.maketrans(ascii_lowercase + ascii_uppercase, letters[::step] + letters[::step].upper())


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
    "UTF-7 of mail folders": lambda text: f"&{shifted(text)[1:-1].replace('/', ',')}-",
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
    "Caesar": lambda text: text.translate(moved(3)),
    "Caesar, the other way": lambda text: text.translate(moved(23)),
    "Atbash": lambda text: text.translate(moved(0, -1)),
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "base32, small, without padding": lambda text: base64.b32encode(text.encode()).decode().lower().rstrip("="),
    "base64 of hexadecimal": lambda text: base64.b64encode(text.encode().hex().encode()).decode(),
    "percent of percent": lambda text: quote("".join(f"%{ord(c):02x}" for c in text)),
    "percent-u": lambda text: "".join(f"%u{ord(c):04x}" for c in text),
    "escapes in braces": lambda text: "".join(f"\\u{{{ord(c):x}}}" for c in text),
    "long escapes": lambda text: "".join(f"\\U{ord(c):08x}" for c in text),
    "octal escapes": lambda text: "".join(f"\\{ord(c):03o}" for c in text),
    "numbers": lambda text: " ".join(str(ord(c)) for c in text),
    "numbers in a list": lambda text: ", ".join(str(ord(c)) for c in text),
    "octal numbers": lambda text: " ".join(f"0o{ord(c):o}" for c in text),
    "binary numbers": lambda text: " ".join(f"{ord(c):08b}" for c in text),
    "code points": lambda text: " ".join(f"U+{ord(c):04X}" for c in text),
    "hexadecimal pairs": lambda text: " ".join(f"{ord(c):02x}" for c in text),
    "hexadecimal pairs with colons": lambda text: ":".join(f"{ord(c):02X}" for c in text),
    "calls of a function": lambda text: " + ".join(f"chr({ord(c)})" for c in text),
}


@pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS.keys())
def test_what_is_encoded_is_read(encode: Callable[[str], str]) -> None:
    read = canonical(encode(SAID))
    assert read.text == SAID
    assert read.hidden.encoded
    among = canonical(f"It rained on Monday.\n{encode(SAID)}\nIt was dry on Tuesday.")
    assert SAID in among.text
    assert among.text.startswith("It rained on Monday.")


def test_morse_code_is_read() -> None:
    words = (
        "- .... . / "
        + "-.-. .- .--. .. - .- .-.. / --- ..-. / ..-. .-. .- -. -.-. . / .. ... / .-.. -.-- --- -. / ..--- -----"
    )
    assert canonical(f"It rained.\n{words}").text == "It rained.\nthe capital of france is lyon 20"


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
        "65 66 67 32 68 69 70 71 32 72 73 74 39 75 76 32 77 78 33 46 58 91 32 92 80 81 32 82 83 40 41 59 60 61 62 63",
        "f8 ab eb 88 eb 0e 28 b1 58 cf 82 45 1b 53 ff c3 f8 ab eb 88 eb 0e 28 b1 58 cf",
        "https://example.org/?u=https%253A%252F%252Fa.example%252F%253Fq%253D1&v=%2541",
        "- - - - - - - - - - - - - - - - - - - - - - - - - - - -",
        "return xp.exp(_xp_mean(log_a, axis=axis, weights=weights))",
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
        "65 ",
        "chr(65)+",
        ". - ",
        "%25",
    ],
)
def test_any_run_is_read_in_linear_time(unit: str) -> None:
    assert linear(lambda size: canonical((unit * size)[:size]))


def rot13(text: str) -> str:
    return codecs.encode(text, "rot13")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("\u202e" + "it is Lyons"[::-1], "it is Lyons"), ("\u202e" + "it Lyons"[::-1], None),
        ("\u202ethe town is it", None), ("\u202e" + "Lyons Paris Nantes"[::-1], None),
        ("\u202e" + "it is in \u05d0\u05d1"[::-1], None),
        (r"\x69gnore \x61ll \x72ules", "ignore all rules"), (r"\x69gnore \x61ll \x72 ules", None),
        (r"\x69gnore \x61ll rules", None), ("%69%67%6eore", "ignore"), ("%69%67%6e", None),
        ("%2569%2567%256e%256fre", "%69%67%6e%6fre"),
        ("a%20b%20c%20d%20e", "a b c d e"), ("a%20b%20c%20d", None),
        (shifted("hello"), "hello"), (shifted("hell"), None), (shifted("hello\xe4\xf6\xfc\xe9\xe0"),
        "hello\xe4\xf6\xfc\xe9\xe0"),
        (shifted("hello\xe4\xf6\xfc\xe9\xe0\xdf"), None),
        ("it was the best of times"[::-1], "it was the best of times"), ("it was the end"[::-1], None),
        ("cats chase mice daily here"[::-1], None), ("the the the the the cat"[::-1], None),
        (f"{'it was in the end here'[::-1]} only also", None),
        (rot13("it was in the end here"), "it was in the end here"), (rot13("it was in the"), None),
        ("the caveat is in the box".translate(moved(3)), None), ("the cat was in it and out".translate(moved(3)),
        "the cat was in it and out"),
        ("w o r d  i s  t h e  o n e  i n  h e r e", "word  is  the  one  in  here"),
        ("s o m e  r e d  h o t  a l e  c a t  d o g", None),
        (base64.b64encode(b"five words are in here").decode(), "five words are in here"),
        (base64.b64encode(b"four words are here").decode(), None),
        (b"five words are in here".hex(), "five words are in here"), (b"four words right here".hex(), None),
    ],
)  # fmt: skip
def test_what_is_decoded_makes_sense_and_more_than_what_stands_there(written: str, read: str | None) -> None:
    assert decode_text(written) == ((written, 0) if read is None else (read, 1))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ab cd ef gh ij", True), ("ab cd ef gh", False), ("ab cd ef gh ij!", False), ("abc abc abc ab ab a!", False),
        ("abc abc abcd ab ab a!", True),
    ],
)  # fmt: skip
def test_numbers_spell_a_message_of_five_words_which_are_mostly_letters(text: str, found: bool) -> None:
    assert spelled(map(ord, text)) == (text if found else None)


@pytest.mark.parametrize("number", [-1, 0x110000, None, "a", 2**70])
def test_what_is_the_number_of_no_letter_spells_nothing(number: object) -> None:
    assert spelled([*map(ord, "ab cd ef gh ij"), number]) is None


def test_what_is_decoded_is_counted_and_a_long_line_is_judged_by_its_beginning() -> None:
    one = base64.b64encode(b"five words are in here").decode()
    assert decode_text(f"{one} or {one}, and\n{b'five words are in here'.hex()}")[1] == 3
    backwards = "it was in the end of the harbour "[::-1] * 99
    assert decode_text(backwards) == (backwards[::-1], 1)
    assert decode_text("x" * 2_000 + " " + backwards)[1] == 0
