"""False alarms of `prompt_injection` on texts of yours, in which nobody attacks: what Guard would cut, in 10,000 words.

    python -m benchmarks injection_alarms /usr/share/doc docs/
    python -m benchmarks injection_alarms .venv --glob '*.dist-info/METADATA' --show 20

Any file that is UTF-8 counts, packed with gzip or not, whole paragraphs at a time. Everything goes through
`Guard.screen`, with no other check on. Files come in the order of a hash of their names, each content once.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from unpoison import Guard
from unpoison.types import Verdict

PASSAGE = 1200
"""Characters of a passage, about."""

TOGETHER = 50
"""Passages of one call."""

MAX_BYTES = 2 * 2**20
"""Of a file that is read."""


class Alarm(NamedTuple):
    """A passage in which Guard would cut."""

    probability: float
    words: int
    file: Path
    reason: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--glob", default="*", help="names of the files that are read")
    parser.add_argument("--words", type=int, default=1_000_000, help="of each folder, at most")
    parser.add_argument("--show", type=int, default=0, help="of each folder, so many of the likeliest")
    arguments = parser.parse_args()
    guard = Guard(hidden="keep", gibberish="keep", crafted="keep")
    print("| texts | files | words | alarms per 10,000 words | words lost per 10,000 |\n|---|---|---|---|---|")
    for folder in arguments.folders:
        files, passages, words = 0, list[tuple[Path, str]](), 0
        for file, text in texts(folder, arguments.glob):
            if words > arguments.words:
                break
            files, words = files + 1, words + len(text.split())
            passages.extend((file, part) for part in parts(text))
        alarms = list(alarms_of(guard, passages))
        per, lost = 10_000 / max(words, 1), sum(alarm.words for alarm in alarms)
        print(f"| {folder} | {files:,} | {words:,} | {len(alarms) * per:.2f} | {lost * per:.1f} |", flush=True)
        for alarm in sorted(alarms, reverse=True)[: arguments.show]:
            print(f"{alarm.probability:.2f} {alarm.words} words of {alarm.file}: {alarm.reason}")


def texts(folder: Path, glob: str) -> Iterator[tuple[Path, str]]:
    """The files of a folder that are text, in their order."""
    known = set[bytes]()
    for file in sorted(folder.rglob(glob), key=lambda file: hashed(str(file.relative_to(folder)).encode())):
        if not file.is_file() or file.is_symlink() or file.stat().st_size > MAX_BYTES:
            continue
        try:
            data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            text = data.decode()
        except (OSError, EOFError, UnicodeDecodeError):
            continue
        if "\0" not in text and hashed(data) not in known:
            known.add(hashed(data))
            yield file, text


def hashed(data: bytes) -> bytes:
    return blake2b(data, digest_size=8).digest()


def parts(text: str) -> Iterator[str]:
    """Paragraphs, short ones together; of a long one its lines."""
    part = ""
    for paragraph in text.split("\n\n"):
        for line in [paragraph] if len(paragraph) <= PASSAGE else paragraph.splitlines():
            if part and len(part) + len(line) > PASSAGE:
                yield part
                part = ""
            part += line + "\n"
        part += "\n"
    if part.strip():
        yield part


def alarms_of(guard: Guard, passages: list[tuple[Path, str]]) -> Iterator[Alarm]:
    """The passages of which something would go, and how many words."""
    for begin in range(0, len(passages), TOGETHER):
        some = passages[begin : begin + TOGETHER]
        screening = guard.screen("", [text for _, text in some])
        for (file, text), verdict, probability in zip(
            some, screening.verdicts, screening.evidence["prompt_injection"], strict=True
        ):
            if not verdict.kept or verdict.cuts:
                yield Alarm(float(probability), lost(text, verdict), file, verdict.reason)


def lost(text: str, verdict: Verdict) -> int:
    """Words that nobody would read."""
    cuts = [text[span.start : span.end] for span in verdict.cuts] if verdict.kept else [text]
    return sum(len(cut.split()) for cut in cuts)


if __name__ == "__main__":
    main()
