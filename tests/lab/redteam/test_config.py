"""What stands in a configuration: every slip is said before anything is sent."""

from __future__ import annotations

import pytest

from unpoison.errors import OptionError, UnpoisonError
from unpoison_lab.redteam.config import Config, build_target
from unpoison_lab.redteam.http_client import Hosts

BASE = "http://127.0.0.1:9"
TARGET = {
    "ask": {"url": f"{BASE}/ask", "body": {"question": "{question}"}, "answer": "$.answer"},
    "plant": {"url": f"{BASE}/documents", "body": {"text": "{text}", "mark": "{canary}"}, "id": "$.id"},
    "remove": {"method": "DELETE", "url": f"{BASE}/documents/{{id}}"},
}


def changed(kind: str, **values):
    return {**TARGET, kind: {**TARGET[kind], **values}}


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (changed("ask", anwser="$.a"), "no field of ask is named 'anwser'; did you mean 'answer'"),
        ({**TARGET, "aks": {}}, "no field of target is named 'aks'; did you mean 'ask'"),
        (changed("ask", url="127.0.0.1:8000/ask"), "must begin with http"),
        (changed("ask", url="http://user:pa55word@127.0.0.1/ask"), "without user, password"),
        (changed("ask", url="http://{question}/ask"), "or {place}"),
        (changed("ask", headers={"Authorization": "Bearer abc"}), r"write \${NAME}"),
        (changed("ask", body={"question": {"question": None}}), r"never mentions \{question\}; write it in quotes"),
        (changed("ask", body={"q": "{question} {txt}"}), r"\{txt\} is unknown; it may hold \{question\}"),
        (changed("ask", method="FETCH"), "ask.method must be one of 'GET'.*, got 'FETCH'"),
        (changed("ask", answer="answer"), r"'answer' is no path; write one such as \$.answer"),
        (changed("plant", body={"text": "text"}), r"plant never mentions \{text\}"),
        (changed("plant", id=None, body={"text": "{text}"}), "plant needs id"),
        (changed("remove", url=f"{BASE}/documents"), r"remove never mentions \{id\}"),
        (changed("ask", url="http://192.0.2.7/ask"), "not this machine.*--i-may-test 192.0.2.7"),
        (changed("ask", url="http://0.0.0.0/ask"), "not this machine"),
        (changed("ask", url="http://[::ffff:192.0.2.7]/ask"), "not this machine"),
        (changed("ask", url="http://${RAG_HOST}/ask"), r"\${RAG_HOST} is not set; put it into the environment"),
        ({"python": "no_such_module:rag"}, "No module named 'no_such_module'"),
        ({"python": "json:nothing"}, "has no attribute 'nothing'"),
        ({"python": "json:dumps"}, "is no target; give an object with ask, plant and remove"),
    ],
)
def test_every_slip_of_a_target_is_named(target, message):
    with pytest.raises(UnpoisonError, match=message):
        build_target(target, Hosts())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("targt: {}", "no field of the configuration is named 'targt'; did you mean 'target'"),
        ("target: {}\nquestions: q.jsonl", "needs target"),
        ("- a", "must be a mapping"),
        ("target: {ask: 1}\ntarget: {ask: 2}\nquestions: q", "duplicate key target"),
        ("target: [", "is not valid YAML"),
        ("target: {a: 1}\nquestions: q\nattacks: [poisonedrg]", "did you mean 'poisonedrag'"),
        ("target: {a: 1}\nquestions: q\nattacks: none", "none is no attack"),
        ("target: {a: 1}\nquestions: q\npoisons: [0]", "poisons must be at least 1, got 0"),
        ("target: {a: 1}\nquestions: q\nwait: {seconds: -1}", "wait.seconds must be at least 0, got -1"),
        ("target: {a: 1}\nquestions: q\nrehearse: maybe", "rehearse must be true or false"),
        ("target: {a: 1}\nquestions: [q]", r"questions must be a text, got \['q'\]"),
        ("target: {a: 1}\nquestions: q\nlimits: {timeout: true}", "limits.timeout must be a number, got True"),
        (
            "a: &a [x,x]\nb: &b [*a,*a]\n"
            + "\n".join(
                f"c{i}: &c{i} [*{'b' if not i else f'c{i - 1}'},*{'b' if not i else f'c{i - 1}'}]" for i in range(30)
            ),
            "anchors are not supported",
        ),
    ],
)
def test_every_slip_of_a_file_is_named(tmp_path, text, message):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(UnpoisonError, match=message):
        Config.load(path)


def test_only_this_machine_and_what_was_spelled_out():
    names = {"localhost": ["127.0.0.1", "::1"], "rag.example": ["192.0.2.7"], "sly.example": ["127.0.0.1", "192.0.2.8"]}
    hosts = Hosts(["RAG.example"], names.__getitem__)
    hosts.check("http://localhost:8000/ask")
    hosts.check("http://rag.EXAMPLE/ask")
    with pytest.raises(OptionError, match=r"--i-may-test sly\.example"):
        hosts.check("http://sly.example/")


def test_a_file_that_names_a_target_alone_plants_one_document_a_question_and_rehearses():
    config = Config.of({"target": {"ask": {}}})
    assert (config.questions, config.attacks, config.poisons) == ("questions.jsonl", ("poisonedrag",), (1,))
    assert (config.seed, config.limit, config.rehearse) == (0, None, True)
    assert (config.generator, config.encoder) == (None, None)
    for most in (1, 100):
        assert Config.of({"target": {"ask": {}}, "poisons": [most, most]}).poisons == (most,)
    for wrong in ({"poisons": [101]}, {"limit": 0}, {"seed": -1}, {"attacks": []}):
        with pytest.raises(UnpoisonError, match=next(iter(wrong))):
            Config.of({"target": {"ask": {}}, **wrong})


def test_questions_are_looked_for_beside_the_file(tmp_path):
    def source(questions: str) -> str:
        return Config.of({"target": {"a": 1}, "questions": questions}, tmp_path).source

    assert [source(name) for name in ("sample", "timeline")] == ["sample", "timeline"]
    assert source("q.jsonl") == str(tmp_path / "q.jsonl")
    assert source("poisonedrag:nq.json") == f"poisonedrag:{tmp_path / 'nq.json'}"
    (tmp_path / "a:b.jsonl").write_text("")
    assert source("a:b.jsonl") == str(tmp_path / "a:b.jsonl")
    (tmp_path / "c.yaml").write_text("target: {a: 1}")
    assert Config.load(tmp_path / "c.yaml").folder == tmp_path


def test_one_value_stands_for_a_list_and_each_attack_is_run_once():
    config = Config.of({"target": {"a": 1}, "poisons": 3, "attacks": ["pia", "poisonedrag", "pia"]})
    assert (config.poisons, config.attacks) == ((3,), ("pia", "poisonedrag"))
    assert Config.of({"target": {"a": 1}, "attacks": "pia"}).attacks == ("pia",)
