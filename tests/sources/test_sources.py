"""Policy and history together: what passages' sources weigh."""

from __future__ import annotations

import pickle  # noqa: TID251
import sqlite3
from datetime import date, timedelta
from pathlib import Path

import pytest

from unpoison import Passage, Sources
from unpoison.core.answers import Reply
from unpoison.errors import InputError, OptionError
from unpoison.sources.trust import FRESH

DAY = date(2026, 3, 1)


def at(day: date = DAY, **options: object) -> Sources:
    return Sources(**options, today=lambda: day)


def pages(*addresses: str) -> list[Passage]:
    return [Passage("text", source=address) for address in addresses]


def test_without_policy_and_history_every_source_weighs_one() -> None:
    sources = Sources()
    assert not sources.informed
    for standing in sources.standings("who?", pages("https://cnn.com/", "https://evil.com", "")):
        assert (standing.level, standing.trust) == ("unknown", 1.0)
    assert sources.trust("cnn.com") == 1.0


def test_a_policy_says_whom_to_believe() -> None:
    sources = Sources(
        {
            "trusted": ["https://handbook.example/**"],
            "known": ["*.docs.example", "docs/hr/**"],
            "open": ["wiki.docs.example"],
            "blocked": ["https://handbook.example/drafts/**"],
        }
    )
    levels = {
        "https://handbook.example/leave": "trusted",
        "https://handbook.example/drafts/leave": "blocked",
        "https://handbook.example/drafts/../leave": "trusted",
        "https://a.docs.example/": "known",
        "https://wiki.docs.example/": "open",
        "docs/hr/a/leave.md": "known",
        "docs/hr/../it/leave.md": "fresh",
        "docs/hr/%2e%2e/it/leave.md": "unknown",
        "https://handbook.example.evil.com/": "fresh",
        "https://handbook.example@evil.com/": "fresh",
        "https://evil.com/https://handbook.example/": "fresh",
    }
    assert sources.informed
    found = sources.standings("who?", pages(*levels))
    assert {source: standing.level for source, standing in zip(levels, found)} == levels
    assert sources.trust("handbook.example") == 1.0
    assert sources.trust("evil.com") == FRESH


def test_a_source_weighs_more_the_more_other_questions_it_was_retrieved_for() -> None:
    sources = at()
    rows = [{"question": f"question {i}?", "passages": [{"text": "t", "url": "https://cnn.com/"}]} for i in range(8)]
    sources.learn(rows)
    assert sources.informed
    assert sources.trust("cnn.com") == pytest.approx(8 / 12)
    assert sources.trust("cnn.com", "question 3?") == pytest.approx(7 / 11)
    assert sources.trust("evil.com") == FRESH
    [standing] = sources.standings("Question 3", pages("https://edition.cnn.com/x"))
    assert standing == ("cnn.com", "seen", pytest.approx(7 / 11), 7, DAY)


def test_planting_for_the_question_at_hand_buys_nothing() -> None:
    sources = at().learn([{"query": "other?", "passages": [{"text": "t", "source": "https://cnn.com/"}]}])
    for _ in range(50):
        sources.record("Who won the cup?", {"evil.com": "agreed"})
        sources.record("the cup, who won", {"evil.com": "agreed"})
    [standing] = sources.standings("Who won the cup?", pages("https://evil.com/1"))
    assert (standing.level, standing.trust, standing.questions) == ("fresh", FRESH, 0)


def test_an_origin_stays_fresh_for_as_long_as_the_policy_says() -> None:
    sources = at(policy={"fresh": 30})
    for i in range(10):
        sources.record(f"question {i}", {"cnn.com": "seen"})
    assert sources.trust("cnn.com") == FRESH
    later = Sources({"fresh": 30}, sources.history, today=lambda: DAY + timedelta(30))
    assert later.trust("cnn.com") == pytest.approx(10 / 14)
    back = Sources({"fresh": 30}, sources.history, today=lambda: DAY - timedelta(3000))
    back.record("one more", {"cnn.com": "seen"})
    assert back.trust("cnn.com") == FRESH
    assert later.history.past(["cnn.com"])["cnn.com"].first_day == DAY


def test_a_history_that_cannot_be_used_stops_nothing(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no database, " * 100)
    other = tmp_path / "other.db"
    sqlite3.connect(other).execute("CREATE TABLE t (a)")
    newer = tmp_path / "newer.db"
    Sources(history=newer).record("q", {"cnn.com": "seen"})
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    for path, says in ((text, "no SQLite file"), (other, "no history of sources"), (newer, "has schema 9"),
                       (tmp_path / "none" / "h.db", "cannot be used")):  # fmt: skip
        sources = Sources({"known": ["cnn.com"]}, path)
        known, fresh = sources.standings("who?", pages("https://cnn.com/", "https://evil.com/"))
        assert (known.level, fresh.level) == ("known", "fresh")
        sources.record("who?", {"cnn.com": "seen"})
        [note] = sources.notes
        assert note.startswith("screening continues without a history: ") and says in note
        assert not Sources(None, path).informed


def test_what_an_option_was_given_becomes_sources(tmp_path: Path) -> None:
    file = tmp_path / "sources.yaml"
    file.write_text("known: [docs.example]\nhistory: h.db\n")
    sources = Sources.of(file)
    assert sources is not None and Sources.of(sources) is sources and Sources.of(None) is None
    assert sources.trust("docs.example") == 0.8
    sources.record("q", {"cnn.com": "seen"})
    assert (tmp_path / "h.db").exists()
    with pytest.raises(OptionError, match="cannot be read"):
        Sources.of(str(tmp_path / "none.yaml"))
    with pytest.raises(OptionError, match="history of sources must be the path of a file"):
        Sources(history="a\0b")


def test_logs_and_saved_screenings_say_what_was_dropped() -> None:
    log = {"audit": 1, "query_hash": "q1", "passages": [{"source": "https://a.com", "kept": True},
           {"source": "https://a.com", "kept": False}, {"source": "https://b.com", "kept": False}]}  # fmt: skip
    saved = {"query": "q2", "passages": [{"text": "t", "url": "https://a.com"}, {"text": "t", "url": "https://b.com"}],
             "screening": {"verdicts": [{"index": 1, "kept": False}, {"index": 0, "kept": True}]}}  # fmt: skip
    rows = at().learn([log, saved]).history.rows()
    assert {row.origin: (row.questions, row.dropped) for row in rows} == {"a.com": (2, 0), "b.com": (2, 2)}


class Words:
    """A generator that says what stands behind "answer:" in a passage."""

    name = "words"

    def generate(self, prompt: object, **_: object) -> Reply:
        return Reply(
            str(prompt).rpartition("answer:")[2].split()[0].strip("'\",.)") if "answer:" in str(prompt) else ""
        )


def test_agreement_tells_who_says_what_others_say() -> None:
    def row(number: int) -> dict[str, object]:
        texts = {"a.com": "Oslo", "b.com": "Oslo", "c.com": "Oslo", "lies.com": "Bergen"}
        passages = [{"text": f"answer: {text}", "url": f"https://{host}/"} for host, text in texts.items()]
        return {"question": f"Where is thing{number}?", "passages": [*passages, passages[-1], {"text": "answer: Bonn"}]}

    sources = at().learn(map(row, range(8)), "agreement", Words())
    assert sources.trust("a.com") == pytest.approx(8 / 12)
    assert sources.trust("lies.com") == pytest.approx(8 / 12 * 2 / 10)
    with pytest.raises(OptionError, match="pass a generator"):
        sources.learn([], "agreement")
    with pytest.raises(OptionError, match="method must be one of seen, agreement, got 'guess'"):
        sources.learn([], "guess")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="row 1: a row needs 'query'"):
        sources.learn([{"passages": []}], "agreement", Words())


def test_what_was_dropped_for_a_question_does_not_make_a_source_known():
    sources = Sources({"known": ["docs.example"]})
    for number in range(12):
        sources.record(f"question number {number}", {"evil.example": "dropped", "seen.example": "seen"})
    assert sources.trust("evil.example") == FRESH
    assert sources.trust("seen.example") == 0.75
    (standing,) = sources.standings("another", [Passage("x", source="https://evil.example/")])
    assert (standing.level, standing.questions) == ("fresh", 12)


def test_what_would_be_if_a_source_stood_elsewhere() -> None:
    policy = {"known": ["https://handbook.example/**"], "blocked": ["https://handbook.example/drafts/**"]}
    sources = Sources(policy)
    asked = pages("https://handbook.example/leave", "https://handbook.example/drafts/leave", "https://new.example/")
    supposed = sources.suppose({"handbook.example": "open", "new.example": "trusted"})
    assert [one.level for one in supposed.standings("q", asked)] == ["open", "open", "trusted"]
    assert not supposed.blocks(asked[1])
    assert sources.suppose({"new.example": "blocked"}).blocks(asked[2])
    assert [one.level for one in sources.standings("q", asked)] == ["known", "blocked", "fresh"]
    assert supposed.history is sources.history
    again = pickle.loads(pickle.dumps(supposed))  # noqa: S301
    assert [one.level for one in again.standings("q", asked)] == ["open", "open", "trusted"]
