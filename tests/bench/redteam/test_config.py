"""What stands in a configuration: every slip is said before anything is sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from documents import ROOT
from unpoison.bench.redteam import Config, Hosts, Secrets, build_target
from unpoison.bench.redteam.http_calls import Ask
from unpoison.bench.redteam.http_target import HttpTarget
from unpoison.errors import OptionError, UnpoisonError

BASE = "http://127.0.0.1:9"
TARGET = {
    "ask": {"url": f"{BASE}/ask", "body": {"question": "{question}"}, "answer": "$.answer"},
    "plant": {"url": f"{BASE}/documents", "body": {"text": "{text}", "mark": "{canary}"}, "id": "$.id"},
    "remove": {"method": "DELETE", "url": f"{BASE}/documents/{{id}}"},
}
NOWHERE = Secrets({})


def changed(kind: str, **values):
    return {**TARGET, kind: {**TARGET[kind], **values}}


def built(target, environment=(), hosts=None) -> HttpTarget:
    return build_target(target, secrets=Secrets(dict(environment)), hosts=hosts or Hosts())


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (changed("ask", anwser="$.a"), "no field of ask is named 'anwser'; did you mean 'answer'"),
        ({**TARGET, "aks": {}}, "no field of target is named 'aks'; did you mean 'ask'"),
        ({"ask": TARGET["ask"]}, "target needs plant"),
        (changed("ask", url="127.0.0.1:8000/ask"), "ask.url must begin with http"),
        (changed("ask", url="http://user:pa55word@127.0.0.1/ask"), "without user, password"),
        (changed("ask", url="http://{question}/ask"), "or {place}"),
        (changed("ask", url=f"{BASE}/ask?api_key=abcdef"), "secret in plain text"),
        (changed("ask", headers={"Authorization": "Bearer abc"}), r"write \${NAME}"),
        (changed("ask", headers={"Host": "x"}), "cannot be set"),
        (changed("ask", headers=["X-Team: red"]), r"ask.headers must be a mapping, got \['X-Team: red'\]"),
        (changed("ask", headers={"X Team": "red"}), "'X Team' is no name of a header"),
        (changed("ask", headers={"X-Team": True}), "ask.headers.X-Team must be a text, got True"),
        (changed("ask", url="http://[::1/ask"), "ask.url must begin with http"),
        (changed("ask", url=8000), "ask.url must be a text, got 8000"),
        (changed("plant", file="{text}"), "plant.file must be a mapping with field, name, content"),
        (changed("plant", file={"content": "{text}"}, body="{canary}"), "plant.body must map names to texts"),
        (changed("plant", file={"text": "{text}"}), "no field of plant.file is named 'text'"),
        (
            changed("ask", body={"question": "{question}", "password": "hunter22"}),
            "ask.body.password looks like a secret",
        ),
        (changed("ask", body={"question": {"question": None}}), r"never mentions \{question\}; write it in quotes"),
        (changed("ask", body={"q": "{question} {txt}"}), r"\{txt\} is unknown; it may hold \{question\}"),
        (changed("ask", method="FETCH"), "ask.method must be one of 'GET'.*, got 'FETCH'"),
        (changed("ask", answer="answer"), r"ask.answer must be a path such as \$.answer"),
        (changed("ask", answer="$.a[?(@.b)]"), "cannot be read from its character"),
        (changed("ask", answer="$..a"), "cannot be read from its character 2 on"),
        (changed("plant", body={"text": "text"}), r"plant never mentions \{text\}"),
        (changed("plant", id=None, body={"text": "{text}"}), "plant needs id"),
        (changed("remove", url=f"{BASE}/documents"), r"remove never mentions \{id\}"),
        ({**TARGET, "find": {"url": f"{BASE}?c={{canary}}", "items": "$.a", "id": "$.id"}}, "find needs canary"),
        (changed("ask", url="http://192.0.2.7/ask"), "not this machine.*--i-may-test 192.0.2.7"),
        (changed("ask", url="http://0.0.0.0/ask"), "not this machine"),
        (changed("ask", url="http://[::ffff:192.0.2.7]/ask"), "not this machine"),
        (changed("ask", url="http://${RAG_HOST}/ask"), r"\${RAG_HOST} is not set; put it into the environment"),
        ({"python": "a:b", "stor": "c:d"}, "no field of a target with python is named 'stor'; did you mean 'store'"),
        ({"python": "no_such_module:rag"}, "there is no module 'no_such_module'"),
        ({"python": "json:nothing"}, "'json' has no 'nothing'"),
        ({"python": "json:dumps"}, "where are documents planted"),
        ({"corpus": "sample", "generatr": "x"}, "did you mean 'generator'"),
    ],
)
def test_every_slip_of_a_target_is_named(target, message):
    with pytest.raises(UnpoisonError, match=message):
        built(target)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("targt: {}", "no field of the configuration is named 'targt'; did you mean 'target'"),
        ("target: {}\nquestions: q.jsonl", "needs target"),
        ("target: {ask: 1}", "needs questions"),
        ("- a", "must be a mapping"),
        ("target: {ask: 1}\ntarget: {ask: 2}\nquestions: q", "'target' is given twice"),
        ("target: [", "is no YAML"),
        ("target: {a: 1}\nquestions: q\nattacks: [poisonedrg]", "did you mean 'poisonedrag'"),
        ("target: {a: 1}\nquestions: q\nattacks: none", "none is no attack"),
        ("target: {a: 1}\nquestions: q\npoisons: [0]", "poisons must be at least 1, got 0"),
        ("target: {a: 1}\nquestions: q\nlimits: {in_flght: 2}", "did you mean 'in_flight'"),
        ("target: {a: 1}\nquestions: q\nlimits: {rate: 0}", "limits.rate must be above 0"),
        ("target: {a: 1}\nquestions: q\nwait: {seconds: -1}", "wait.seconds must be at least 0, got -1"),
        ("target: {a: 1}\nquestions: q\nrehearse: maybe", "rehearse must be true or false"),
        ("target: {a: 1}\nquestions: [q]", r"questions must be a text, got \['q'\]"),
        ("target: {a: 1}\nquestions: q\nseed: true", "seed must be a whole number, got True"),
        ("target: {a: 1}\nquestions: q\nlimits: {timeout: true}", "limits.timeout must be a number, got True"),
        ("target: {a: 1}\nquestions: q\nlimits: {timeout: .inf}", "limits.timeout must be"),
        ("target: {a: 1}\nquestions: q\nlimits: 3", "limits must be a mapping with in_flight, rate, budget, timeout"),
        ("target: {a: 1}\nquestions: q\nattacks: []", "the configuration needs attacks"),
        ("target: {a: 1}\nquestions: q\n1: x", "no field of the configuration is named '1'"),
        (
            "a: &a [x,x]\nb: &b [*a,*a]\n"
            + "\n".join(
                f"c{i}: &c{i} [*{'b' if not i else f'c{i - 1}'},*{'b' if not i else f'c{i - 1}'}]" for i in range(30)
            ),
            "more than 10,000 members",
        ),
    ],
)
def test_every_slip_of_a_file_is_named(tmp_path, text, message):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(UnpoisonError, match=message):
        Config.load(path)


def test_the_example_of_the_documentation_is_read(tmp_path):
    text = (Path(__file__).parents[3] / "docs" / "redteam.md").read_text()
    example = text.split("```yaml\n", 1)[1].split("```", 1)[0]
    (tmp_path / "c.yaml").write_text(example)
    config = Config.load(tmp_path / "c.yaml")
    assert build_target(config.target, secrets=Secrets({"RAG_TOKEN": "abcdef"}), hosts=Hosts())
    assert (config.attacks, config.poisons) == (("poisonedrag",), (1,))


PAGE = (ROOT / "docs" / "redteam.md").read_text()
EXAMPLES = PAGE.split("### A first configuration")[1].split("### Bounds")[0].split("```yaml\n")[1:]


@pytest.mark.parametrize("example", [text.split("```")[0] for text in EXAMPLES])
def test_every_example_of_the_documentation_makes_a_target(example):
    values = {"RAG_API_KEY": "key", "RAG_USER": "me", "RAG_PASSWORD": "password"}
    written = yaml.safe_load(example)
    assert built({**TARGET, **written.get("target", written)}, values)


def test_a_journal_goes_on_only_where_the_same_is_measured(tmp_path):
    values = {"target": {"python": "x:y"}, "questions": "questions.jsonl"}
    config = Config.of(values, tmp_path)
    assert config.digest() == Config.of(values, tmp_path).digest()
    assert config.digest() == config.with_bounds(rate=1.0).digest()
    others = [{"limit": 3}, {"seed": 7}, {"attacks": ["pia"]}, {"poisons": [3]}, {"questions": "others.jsonl"}]
    assert config.digest() not in {Config.of({**values, **other}, tmp_path).digest() for other in others}


def test_what_is_filled_in_is_data_whatever_it_holds():
    nasty = 'a"},{"b": "${RAG_TOKEN} {question} {id}\n\\ ../../x?y#z'
    request = Ask.read(
        {"url": f"{BASE}/{{question}}/x", "body": {"q": ["{question}", {"r": "<{question}>"}], "n": 1}, "answer": "$"},
        "ask",
    )
    filled = request.fill({"question": nasty}, Secrets({"RAG_TOKEN": "value-of-it"}))
    assert json.loads(filled.content) == {"q": [nasty, {"r": f"<{nasty}>"}], "n": 1}
    assert filled.url.startswith(f"{BASE}/a%22")
    assert filled.url.endswith("/x")
    assert filled.url.count("/") == 4
    assert "value-of-it" not in f"{filled.url}{filled.content!r}"


def test_a_header_never_breaks_a_request():
    with pytest.raises(OptionError, match="a character that no header can"):
        built(changed("ask", headers={"X-Key": "${K}"}), {"K": "a\r\nEvil: 1"})


def test_a_multipart_upload_and_ids_of_our_own():
    target = built(
        {**TARGET, "plant": {"url": f"{BASE}/upload", "file": {"field": "document"}, "body": {"id": "{uuid}"}}}
    )
    description = target.describe("plant", {"text": "planted", "canary": "unpoison-1", "uuid": "1"})
    assert "the file 'unpoison-1.txt': planted" in description
    assert target.own_ids("unpoison-abc") == ["unpoison-abc"]  # {canary} is the file's name


def test_only_this_machine_and_what_was_spelled_out():
    names = {"localhost": ["127.0.0.1", "::1"], "rag.example": ["192.0.2.7"], "sly.example": ["127.0.0.1", "192.0.2.8"]}
    prompted = []

    def resolve(name):
        prompted.append(name)
        return names[name]

    hosts = Hosts(["RAG.example"], resolve)
    assert hosts.addresses("localhost") == ("127.0.0.1", "::1")
    assert hosts.addresses("rag.EXAMPLE") == ("192.0.2.7",)
    with pytest.raises(OptionError, match=r"--i-may-test sly\.example"):
        hosts.addresses("sly.example")
    names["rag.example"] = ["169.254.169.254"]  # the name changes its mind
    assert hosts.addresses("rag.example") == ("192.0.2.7",)
    assert prompted.count("rag.example") == 1
    with pytest.raises(OptionError, match="no server's address"):
        Hosts(["meta.example"], lambda name: ["169.254.169.254"]).addresses("meta.example")
