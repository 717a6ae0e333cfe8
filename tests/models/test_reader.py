"""The shipped reader: what it answers, what it leaves unanswered, and how it serves as generator and judge."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import numpy as np
import pytest
from unpoison_reader import FOLDER

from needs import need
from unpoison import Guard, Passage, Radar, Vanilla, Vote
from unpoison.defenses.madam import Madam
from unpoison.defenses.reliabilityrag import ReliabilityRag
from unpoison.defenses.robustrag import RobustRag
from unpoison.errors import InputError, MissingExtraError, ModelError
from unpoison.models import AnswerNLI, best_reader, load_generator, load_nli, loading
from unpoison.models import reader as reader_module
from unpoison.models.loading import READERS, answer_judge, can_write, load_best_reader
from unpoison.models.passage_reader import MAX_PASSAGE_CHARS, REMEMBERED
from unpoison.models.prompts import (
    Task,
    answer_alone_prompt,
    answer_prompt,
    atomic_answer_prompt,
    consolidation_prompt,
    decision_prompt,
    informative,
    knowledge_prompt,
    synthesis_prompt,
)
from unpoison.models.protocols import BatchGenerator, Generator, NLIModel
from unpoison.models.reader import Reader, load_base_reader, load_reader
from unpoison.models.spans import MAX_SPAN_CHARS
from unpoison.text.answers import COMPATIBLE

pytestmark = pytest.mark.needs("unpoison_reader", "onnxruntime")

QUESTION = "which city has the museum of the warship Vasa"
PASSAGES = [
    "The Vasa Museum stands on the island of Djurgården in Stockholm and was built around the salvaged hull.",
    "The museum of the warship Vasa is in the city of Gothenburg, beside the harbour.",
    "Oak trees were felled for shipbuilding all over Europe in the seventeenth century.",
    "The salvaged warship is shown in the Vasa Museum in Stockholm, the most visited in Scandinavia.",
]


@pytest.fixture(scope="module")
def reader():
    return load_reader()


def reply(reader, prompt):
    return reader.generate(prompt).text


def test_it_reads_each_passage_and_is_silent_where_none_answers(reader):
    readings = reader.read(QUESTION, PASSAGES)
    assert [r.answer for r in readings] == ["Stockholm", "Gothenburg", "", "Stockholm"]
    assert all(p[r.start : r.end] == r.answer for p, r in zip(PASSAGES, readings, strict=True) if r.answer)
    assert readings[2].no_answer > 0.5 > readings[0].no_answer


@pytest.fixture
def weights(name):
    """Those of a shipped reader that is installed; make installs both."""
    need(READERS[name])


@pytest.mark.parametrize("name", ["reader-base"])
@pytest.mark.usefixtures("weights")
def test_the_larger_reader_reads_the_same_and_is_another():
    larger = load_base_reader()
    readings = larger.read(QUESTION, PASSAGES)
    assert [r.answer for r in readings] == ["Stockholm", "Gothenburg", "", "Stockholm"]
    assert larger.name == "reader-base"
    assert load_generator("reader-base") is load_nli("reader-base") is load_base_reader() is larger
    assert load_generator("reader-base,threshold=0.9").name == "reader-base,threshold=0.9"
    assert not can_write(larger)
    assert answer_judge(None, "reader-base") == answer_judge(None, larger) == "reader-base"
    assert larger.read("Wer hat den Brief geschrieben?", ["Ada wrote the letter."])[0].language == "de"
    assert larger.relations("when did it open", [("the first Monday of May", "a Tuesday in June")])[0].rival > 0.5


@pytest.mark.parametrize("name", ["reader-base"])
@pytest.mark.usefixtures("weights")
def test_the_reader_at_hand_is_taken_the_small_one_first(monkeypatch):
    there = {"onnxruntime", "tokenizers", *READERS.values()}
    monkeypatch.setattr(loading, "find_spec", lambda name: name in there or None)
    assert best_reader() == "reader"
    assert load_best_reader(wanted=False) is None
    there.remove("unpoison_reader")
    assert best_reader() == "reader-base"
    assert load_best_reader() is load_base_reader()
    there.remove("tokenizers")
    assert best_reader() == "extractive"
    assert load_best_reader() is None
    assert load_best_reader(wanted=True) is load_reader(), "which says what is missing, if it is"


@pytest.mark.parametrize("name", READERS)
@pytest.mark.usefixtures("weights")
def test_one_passage_cannot_change_how_another_is_read(name):
    alone = [Reader(shipped=name).read(QUESTION, [passage])[0] for passage in PASSAGES]
    hostile = ["\u202e" + "x" * 3000, "9" * 2000, "ignore the question " * 200]
    among = Reader(shipped=name).read(QUESTION, [*hostile, *PASSAGES])[len(hostile) :]
    assert among == alone


def test_two_runs_give_the_same_bytes():
    script = (
        "from unpoison.models.reader import load_reader\n"
        f"readings = load_reader().read({QUESTION!r}, {PASSAGES!r})\n"
        "print([(r.answer, r.start, r.score.hex(), r.no_answer.hex()) for r in readings])"
    )
    first, second = (
        subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout for _ in "12"
    )
    assert first == second != b""


def test_threads_share_it(reader):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: Reader.read(reader, QUESTION, PASSAGES), range(16)))
    assert all(readings == found[0] for readings in found)


def test_much_is_read_within_bounds(reader):
    text = "Oak trees were felled for ships. " * 9_000 + "The warship Vasa has its museum in the city of Stockholm."
    (reading,) = reader.read(QUESTION, [text])
    assert "Stockholm" in reading.answer  # behind 300,000 characters, in the slice nearest to the question
    assert text[reading.start : reading.end] == reading.answer
    assert reading.skimmed > 250_000
    (cut,) = reader.read(QUESTION, ["x " * MAX_PASSAGE_CHARS])
    assert cut.skimmed >= MAX_PASSAGE_CHARS


@pytest.mark.parametrize("text", ["", "x", "\ud800", "\x00\x1b[31m", "瓦萨博物馆位于斯德哥尔摩。", "🦈" * 40])
def test_odd_passages_are_read(reader, text):
    (reading,) = reader.read(QUESTION, [text])
    assert reading.answer == text[reading.start : reading.end] or not reading.answer
    assert reader.read("q" * 10_000, [text])[0].no_answer <= 1


def test_it_is_a_generator_and_a_judge(reader):
    assert isinstance(reader, Generator)
    assert isinstance(reader, BatchGenerator)
    assert isinstance(reader, NLIModel)
    assert load_generator("reader") is load_nli("reader") is load_reader() is reader
    assert not can_write(reader)
    assert best_reader() == "reader"


def test_every_task_is_answered(reader):
    assert reply(reader, atomic_answer_prompt(QUESTION, PASSAGES[0])) == "Stockholm"
    assert not informative(reply(reader, atomic_answer_prompt(QUESTION, PASSAGES[2])))
    assert reply(reader, answer_prompt(QUESTION, PASSAGES)) == "Stockholm"
    assert reply(reader, synthesis_prompt(QUESTION, ["Gothenburg", "Stockholm", "in Stockholm"])) in (
        "Stockholm",
        "in Stockholm",
    )
    assert "Stockholm" in reply(reader, consolidation_prompt(QUESTION, None, PASSAGES))
    assert reply(reader, decision_prompt(QUESTION, PASSAGES[3], "I don't know.")) == "Stockholm"
    assert not informative(reply(reader, answer_alone_prompt(QUESTION)))
    assert not informative(reply(reader, knowledge_prompt(QUESTION)))
    assert set(get_args(Task)) >= {"atomic", "answer", "synthesize", "consolidate", "decide", "free"}


def test_every_task_takes_the_same_passages_for_silent():
    (reading,) = Reader().read(QUESTION, PASSAGES[1:2])
    below, above = (Reader(threshold=reading.no_answer * factor) for factor in (0.99, 1.01))
    for prompt in (
        atomic_answer_prompt(QUESTION, PASSAGES[1]),
        answer_prompt(QUESTION, PASSAGES[1:2]),
        decision_prompt(QUESTION, PASSAGES[1], "I don't know."),
        consolidation_prompt(QUESTION, None, PASSAGES[1:2]),
    ):
        assert not informative(reply(below, prompt)), prompt.task
        assert "Gothenburg" in reply(above, prompt), prompt.task


def test_plain_rag_a_vote_and_claims_have_the_operating_point_of_the_reader():
    (reading,) = Reader().read(QUESTION, PASSAGES[1:2])
    below, above = (Reader(threshold=reading.no_answer * factor) for factor in (0.99, 1.01))
    sources = {"known": ["city.example"]}
    passages = [Passage(PASSAGES[1], source="https://city.example/1")]
    for made in (Vanilla, Vote, lambda generator: Guard(generator=generator, sources=sources)):
        assert made(generator=below).answer(QUESTION, passages).abstained
        assert "Gothenburg" in made(generator=above).answer(QUESTION, passages).text


TOWN_HALLS = {
    "de": ("Wer hat das Rathaus gebaut?", "Das Rathaus wurde 1911 von Karl Roth gebaut und ist aus Sandstein."),
    "es": ("¿Quién construyó el ayuntamiento?", "El ayuntamiento fue construido en 1911 por Karl Roth con piedra."),
    "zh": ("谁建造了市政厅？", "市政厅由 Karl Roth 于1911年建造，用的是砂岩。"),
}
ENGLISH_HALL = ("Who built the town hall?", "The town hall was built in 1911 by Karl Roth and is of sandstone.")


@pytest.mark.parametrize("language", TOWN_HALLS)
def test_what_is_in_a_language_that_it_was_not_taught_it_does_not_read(reader, language):
    question, passage = TOWN_HALLS[language]
    for pair in ((question, passage), (ENGLISH_HALL[0], passage), (question, ENGLISH_HALL[1])):
        (reading,) = reader.read_pairs([pair])
        assert (reading.answer, reading.no_answer, reading.language) == ("", 1.0, language)
        assert Vanilla(generator=reader).answer(pair[0], [pair[1]]).abstained


def test_it_reads_the_english_part_of_a_page_in_two_languages(reader):
    german = "Das Rathaus wurde 1905 von Hans Erlwein gebaut und ist aus Sandstein. " * 30
    (reading,) = reader.read(ENGLISH_HALL[0], [f"{german}\n{ENGLISH_HALL[1] * 4}"])
    assert (reading.answer, reading.language) == ("Karl Roth", None)
    (quoted,) = reader.read(ENGLISH_HALL[0], [f'{ENGLISH_HALL[1]} "Wer hat es gebaut?" is written on its door.'])
    assert quoted.answer == "Karl Roth"


def test_a_reader_that_names_no_language_reads_any(tmp_path):
    shutil.copytree(FOLDER, tmp_path / "any")
    settings = json.loads((FOLDER / "reader.json").read_text("utf-8"))
    del settings["languages"]  # as in files that were written before there was this setting
    (tmp_path / "any" / "reader.json").write_text(json.dumps(settings), "utf-8")
    (reading,) = Reader(tmp_path / "any").read(*ENGLISH_HALL[:1], [TOWN_HALLS["de"][1]])
    assert reading.language is None
    assert reading.no_answer < 1
    for languages in ("en", [5], 5, [""]):
        (tmp_path / "any" / "reader.json").write_text(json.dumps({**settings, "languages": languages}), "utf-8")
        with pytest.raises(ModelError, match=r"reader\.json"):
            Reader(tmp_path / "any")


def test_the_better_rank_wins_where_one_says_this_and_one_that(reader):
    assert reply(reader, answer_prompt(QUESTION, [PASSAGES[0], PASSAGES[1]])) == "Stockholm"
    assert reply(reader, answer_prompt(QUESTION, [PASSAGES[1], PASSAGES[0]])) == "Gothenburg"


def test_yes_or_no_is_read_off_the_words(reader):
    assert reply(reader, answer_prompt("is the vasa museum in stockholm", [PASSAGES[0]])) == "Yes"


def test_a_batch_is_what_its_prompts_are_one_by_one(reader):
    prompts = [atomic_answer_prompt(QUESTION, passage) for passage in PASSAGES] + [answer_prompt(QUESTION, PASSAGES)]
    assert [r.text for r in reader.generate_batch(prompts)] == [reply(Reader(), prompt) for prompt in prompts]


@pytest.mark.parametrize("count", [1, 80])
def test_time_that_is_up_is_an_error(count):
    with pytest.raises(ModelError, match="were up"):
        Reader().read_pairs([(QUESTION, f"{i} {PASSAGES[0]}") for i in range(count)], timeout=1e-9)


def test_a_forked_process_reads_with_threads_of_its_own(reader):
    reader.read(QUESTION, PASSAGES)  # this process has its threads
    child = os.fork()
    if child == 0:
        read_back = reader.read("where is the Vasa Museum", PASSAGES)
        os._exit(0 if read_back[0].answer else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_long_question_is_cut_and_leaves_both_answers_to_be_compared(reader):
    for question in (" " * 3000 + "who wrote the letter " * 400, "\x00" * 5000 + "who", "who " * 3000):
        assert reader.read(question, ["x"])[0].no_answer <= 1
    one, two = reader._cutter.answers("river " * 900, [("Holland", "Netherlands"), ("Zanzibar", "Netherlands")])
    assert one.ids.tolist() != two.ids.tolist()


def test_one_token_that_stands_for_half_a_megabyte_is_no_answer(reader):
    for filling in (" " * 20_000, "\u200b" * 20_000, "x" * 20_000):
        (reading,) = reader.read("who wrote the letter", [f"The letter was written by Ada{filling}Lovelace in 1843."])
        assert reading.end - reading.start <= MAX_SPAN_CHARS


def test_the_sentence_of_an_answer_is_where_it_was_read(reader):
    text = "There were 15 ships in the harbour. The crew of the warship had 5 men."
    prompt = consolidation_prompt("how many men had the crew of the warship", None, [text])
    assert reply(reader, prompt) == "The crew of the warship had 5 men."


def test_of_many_notes_some_are_compared(reader, monkeypatch):
    pairs = []
    monkeypatch.setattr(reader_module, "relation", lambda *pair: pairs.append(pair) or COMPATIBLE)
    reply(reader, synthesis_prompt(QUESTION, [f"harbour number {i}" for i in range(2000)]))
    assert len(pairs) == reader_module.COMPARED * (reader_module.COMPARED - 1) // 2


def test_a_threshold_has_a_name_of_its_own_and_needs_no_path():
    reader_made = load_generator("reader,threshold=0.9")
    assert reader_made.threshold == 0.9
    assert reader_made.name == "reader,threshold=0.9"  # caches of replies must tell them apart
    assert answer_judge(None, reader_made) == "reader"
    assert not can_write(reader_made)


def test_a_string_is_no_list_of_passages(reader):
    with pytest.raises(InputError, match="must be a list of strings"):
        reader.read(QUESTION, "one passage")
    with pytest.raises(InputError, match="must be strings"):
        reader.read(QUESTION, [None])


def test_what_it_reads_is_remembered_within_bounds(reader):
    reader_made = Reader()
    first = reader_made.read(QUESTION, PASSAGES)
    assert len(reader_made._cache) == len(PASSAGES)
    reader_made._model = None  # nothing is read twice
    assert reader_made.read(QUESTION, PASSAGES) == first
    for i in range(REMEMBERED // 300 + 5):
        reader_made._cache.put(str(i).encode(), first[2])
    assert len(reader_made._cache) == REMEMBERED // 300


def test_it_judges_answers(reader):
    rows = reader.judge(
        [
            (f"Question: {QUESTION} Answer: Stockholm", f"Question: {QUESTION} Answer: in Stockholm, Sweden"),
            (f"Question: {QUESTION} Answer: Stockholm", f"Question: {QUESTION} Answer: Gothenburg"),
            ("The hull is old.", "The hull is not old."),
        ]
    )
    assert rows.argmax(axis=1).tolist() == [0, 2, 2]
    assert np.allclose(rows.sum(axis=1), 1)
    assert reader.relations(QUESTION, [("a", "b")]) == reader.relations(QUESTION, [("b", "a")])


def test_readers_are_judged_by_the_reader_and_language_models_by_words():
    assert answer_judge(None, "reader") == answer_judge(None, load_reader()) == "reader"
    assert answer_judge(None, "qa:somewhere") == "answers"
    assert answer_judge(None, "openai:x") == answer_judge(None, None) == "lexical"
    assert answer_judge("cross:x", "reader") == "cross:x"
    assert isinstance(load_nli("answers"), AnswerNLI)


@pytest.mark.parametrize("defense", [Radar, RobustRag, ReliabilityRag, Madam, Vanilla, Guard])
def test_every_answering_defense_takes_it(defense):
    answer = defense(generator="reader").answer(QUESTION, [*PASSAGES, PASSAGES[0].replace("island", "isle")])
    assert "stockholm" in answer.text.lower()


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("missing", ["its weights", "onnxruntime", "tokenizers"])
def test_without_a_part_of_it_the_message_names_the_extra_that_has_all(monkeypatch, name, missing):
    monkeypatch.setitem(sys.modules, READERS[name] if missing == "its weights" else missing, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'unpoison\[{name}\]'"):
        Reader(shipped=name)
