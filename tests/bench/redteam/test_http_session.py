"""Systems behind a login, with conversations, jobs and pieces: each call has what its requests need, and no other's."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench.redteam.conftest import Quick
from bench.redteam.running_system import TRUTH, serve_system
from unpoison.bench.redteam import Document
from unpoison.errors import TargetError, UnpoisonError

QUESTION = "When was the town hall of Alderbridge built?"
PASSWORD = {"RAG_PASSWORD": "correct horse battery"}


def document(text: str = "The town hall of Alderbridge was built in 1600.") -> Document:
    return Document(text, "unpoison-1b47ba60-f662-4202-9ce8-d7d74ca69755")


THREAD = [
    {"url": "BASE/threads", "body": {}, "take": {"thread": "$.thread.id"}},
    {"url": "BASE/threads/{thread}/ask", "body": {"question": "{question}", "session": "{uuid}"}, "answer": "$.answer"},
]


def test_every_question_has_a_thread_cookies_and_a_uuid_of_its_own(system, target):
    """In a thread that two questions share, the second would be answered as the first."""
    asked = target(ask=THREAD)
    assert asked.ask(QUESTION).answer == TRUTH
    assert asked.ask("Who sings?").answer == "I don't know."
    assert [len(questions) for questions in system.threads.values()] == [1, 1]
    sessions = {json.loads(body)["session"] for body in system.bodies("/threads/")}
    assert len(sessions) == 2
    assert all(len(session) == 36 for session in sessions)


LOGIN = {
    "url": "BASE/login",
    "body": {"user": "me", "password": "${RAG_PASSWORD}"},
    "take": {"token": "$.access_token"},
}
PRIVATE = {"url": "BASE/private/ask", "body": {"question": "{question}"}, "answer": "$.answer"}
BEARER = {"headers": {"Authorization": "Bearer {token}"}, "login": LOGIN, "ask": PRIVATE}


def test_a_login_is_sent_once_and_its_token_with_every_request(system, target):
    asked = target(PASSWORD, **BEARER)
    assert [asked.ask(QUESTION).answer for _ in range(3)] == [TRUTH] * 3
    assert system.logins == 1
    assert "Authorization" not in system.requests[0][2]


def test_questions_at_the_same_time_share_a_login(system, target):
    asked = target(PASSWORD, **BEARER)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(asked.ask, [QUESTION] * 16))
    assert {answered.answer for answered in answers} == {TRUTH}
    assert system.logins == 1


def test_a_refused_token_is_replaced_and_the_request_sent_once_more(system, target):
    system.token_uses = 2
    asked = target(PASSWORD, **BEARER)
    assert [asked.ask(QUESTION).answer for _ in range(5)] == [TRUTH] * 5
    assert system.logins == 3
    system.token_uses = 0
    system.tokens.clear()
    with pytest.raises(TargetError, match="ask was answered with status 401"):
        asked.ask(QUESTION)
    assert system.logins == 4  # a system that refuses every token is not asked for ever


def test_a_form_that_redirects_logs_in_by_its_cookie(system, target):
    form = {"url": "BASE/login?form", "form": {"user": "mé & co", "password": "${RAG_PASSWORD}"}}
    assert target(PASSWORD, login=form, ask=PRIVATE).ask(QUESTION).answer == TRUTH
    assert system.requests[0][3] == "user=m%C3%A9+%26+co&password=correct+horse+battery"


@pytest.mark.parametrize("expires", [50, "$.expires_in"])
def test_a_login_that_expires_is_renewed_before_it_is_refused(system, target, expires):
    clock = Quick()
    asked = target(PASSWORD, clock=clock, **{**BEARER, "login": {**LOGIN, "expires": expires}})
    asked.ask(QUESTION)
    clock.passed = 49.0
    asked.ask(QUESTION)
    assert system.logins == 1
    clock.passed = 101.0
    asked.ask(QUESTION)
    assert system.logins == 2


def test_passwords_tokens_and_cookies_are_in_no_message_and_in_no_answer(system, target):
    asked = target({"RAG_PASSWORD": "wrong-pa55word"}, **BEARER)
    with pytest.raises(TargetError, match="403") as refused:
        asked.ask(QUESTION)
    assert "wrong-pa55" not in str(refused.value)
    assert "${RAG_PASSWORD}" in str(refused.value)
    asked = target(PASSWORD, **BEARER)
    system.said = "your token is token-of-login-2-abcdef"
    assert asked.ask(QUESTION).answer == "your token is ${token}"
    system.token_uses = 0
    system.tokens.clear()
    with pytest.raises(TargetError, match="401") as refused:
        asked.ask(QUESTION)
    assert "token-of-login" not in str(refused.value)
    assert "token-of-login" not in asked.describe("ask", {"question": "q"})
    assert "Bearer {token}" in asked.describe("ask", {"question": "q"})


def test_no_log_has_a_cookie_or_a_token(system, target, caplog):
    """The library below writes the headers of every reply into its log."""
    with caplog.at_level("DEBUG"):
        assert target(PASSWORD, **BEARER).ask(QUESTION).answer == TRUTH
        assert target(ask=THREAD).ask(QUESTION).answer == TRUTH
    assert "httpcore" in {record.name.partition(".")[0] for record in caplog.records}
    assert not [text for text in ("token-of-login", "-cookie", "correct horse") if text in caplog.text]


def test_a_login_that_gives_the_same_token_again_is_a_login(system, target):
    """What is hidden in messages is not hidden from the requests that need it."""
    system.token_uses = 1
    asked = target(PASSWORD, **BEARER)
    asked.ask(QUESTION)
    system.logins, system.token_uses = 0, 5
    assert asked.ask(QUESTION).answer == TRUTH


ADDED = {"url": "BASE/add?job", "body": {"text": "{text}", "mark": "{canary}"}, "take": {"job": "$.job.id"}}
JOB = {
    "method": "GET",
    "url": "BASE/jobs/{job}",
    "value": "$.status",
    "equals": ["done", "completed"],
    "fails": "failed",
    "id": "$.ids[*]",
}


def test_planting_in_stages(system, target):
    staged = [
        {"url": "BASE/add", "body": {"text": "{text}", "mark": "{canary}"}},
        {"url": "BASE/upsert", "id": "$.ids[*]"},
    ]
    planted = target(plant=staged)
    handles = planted.plant([document()])
    assert system.documents.keys() == {"town-0", *handles}
    assert planted.remove(handles) == []
    assert system.documents.keys() == {"town-0"}


def test_a_job_is_polled_until_it_is_done_and_gives_the_ids_of_the_pieces(system, target):
    system.piece = 20
    handles = target(plant=[ADDED, JOB]).plant([document()])
    assert len(handles) == 3
    assert system.jobs["job-1"]["looks"] == 2


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (JOB, "plant: \\$.status is \\['failed'\\], which means that it failed"),
        (
            {**JOB, "fails": [], "equals": "never"},
            "not done within 60 s: \\$.status is \\['failed'\\] and not 'never'; raise limits.timeout",
        ),
        ({**JOB, "url": "BASE/nowhere/{job}"}, "status 404"),
    ],
)
def test_a_job_that_does_not_end_well_may_have_planted(system, target, job, message):
    """A refusal of the last step says nothing of the first: it must not be taken for "nothing was planted"."""
    system.broken_job = True
    with pytest.raises(TargetError, match=message) as failed:
        target(plant=[ADDED, job], clock=Quick()).plant([document()])
    assert not failed.value.refused


def test_a_refused_first_step_has_planted_nothing(system, target):
    with pytest.raises(TargetError, match="status 404") as failed:
        target(plant=[{**ADDED, "url": "BASE/nowhere"}, JOB]).plant([document()])
    assert failed.value.refused


class Slow(Quick):
    """Every request takes four minutes."""

    def __init__(self, system):
        super().__init__()
        self.system = system

    def now(self) -> float:
        return self.passed + 240 * len(self.system.requests)


NEVER = {"method": "GET", "url": "BASE/jobs/{job}", "value": "$.status", "equals": "never", "id": "$.ids[*]"}


def test_all_requests_of_a_call_share_its_time(system, target):
    with pytest.raises(TargetError, match=r"^plant was not done within 600 s: .* and not 'never'; raise limits"):
        target(plant=[ADDED, NEVER], timeout=600, clock=Slow(system)).plant([document()])
    assert system.jobs["job-1"]["looks"] == 2
    with pytest.raises(TargetError, match=r"^ask was not done within 200 s; raise limits.timeout") as failed:
        target(ask=THREAD, timeout=200, clock=Slow(system)).ask(QUESTION)
    assert list(system.threads.values()) == [[]], "the second request was sent although no time was left"
    assert failed.value.retryable


def test_a_reply_that_never_comes_ends_with_the_time_of_the_call(system, target):
    """The message has the seconds of the whole call, not what the others left of them."""
    clock, system.replies = Quick(), 2
    clock.sleep = lambda seconds, until=None: setattr(clock, "passed", 59.9)
    with pytest.raises(TargetError, match=r"^plant was not done within 60 s: .*'running'.* not 'never'") as failed:
        target(plant=[ADDED, NEVER], clock=clock).plant([document()])
    assert not failed.value.refused
    assert not failed.value.retryable, "the job may still be done: planted again, it would be there twice"


def test_a_value_that_is_not_there_is_named(target):
    first = {**THREAD[0], "take": {"thread": "$.thread.name"}}
    with pytest.raises(TargetError, match=r"ask.take.thread: \$.thread.name leads to nothing"):
        target(ask=[first, THREAD[1]]).ask(QUESTION)


FIND = {"url": "BASE/documents?mark={uuid}", "items": "$.documents[*]", "id": "$.id", "canary": "$.mark"}


def test_pieces_are_found_by_a_mark_that_holds_ours_and_not_by_prose(system, target):
    found = target(find=FIND)
    uuid = document().uuid
    system.documents |= {"a": "x", "b": "x", "c": "x"}
    system.marks |= {"a": f"/uploads/unpoison-{uuid}.txt", "b": f"{uuid}-0", "c": f"Somebody asked for {uuid}"}
    assert sorted(found.find(document().canary)) == ["a", "b"]


def test_a_value_of_a_reply_cannot_break_a_header(system, target):
    system.threads = {}
    first = {"url": "BASE/ask", "body": {"question": "{question}"}, "take": {"name": "$.answer"}}
    second = {**PRIVATE, "url": "BASE/ask", "headers": {"X-Name": "{name}"}}
    system.said = "a\r\nEvil: 1"
    with pytest.raises(TargetError, match=r"ask\.headers\.X-Name would hold a character that no header can"):
        target(ask=[first, second]).ask(QUESTION)


def test_more_than_enough_cookies_are_refused(system, target, monkeypatch):
    monkeypatch.setattr("unpoison.bench.redteam.http_cookies.MAX_COOKIES", 0)
    with pytest.raises(TargetError, match="more than 0 cookies"):
        target(ask=THREAD).ask(QUESTION)


@pytest.mark.parametrize(
    "value", ["seen=caf\xe9", "seen", "=;=;=", "a=b; Domain=evil.example", "x" * 5000, "\t=\x80; Path=\xff"]
)
def test_a_strange_cookie_is_a_sentence_or_nothing(system, target, value):
    system.cookie = value
    try:
        assert target(ask=[THREAD[0], {**PRIVATE, "url": "BASE/ask"}]).ask(QUESTION).answer == TRUTH
    except TargetError as error:
        assert "a cookie with a character that no header can hold" in str(error)


def test_a_session_takes_its_cookies_to_nobody_else(system, target):
    with serve_system() as other:
        steps = [THREAD[0], {"url": f"{other.url}/ask", "body": {"question": "{question}"}, "answer": "$.answer"}]
        local = [{**steps[0]}, {**steps[1], "url": steps[1]["url"].replace("127.0.0.1", "localhost")}]
        target(ask=local).ask(QUESTION)
        assert all("Cookie" not in headers for _, _, headers, _ in other.requests)


ACCEPTED = {
    "url": "BASE/add",
    "body": {"text": "{text}", "mark": "{canary}"},
    "take": {"job": "$header.location"},
}
POLLED = {**JOB, "url": "{job}"}


@pytest.mark.parametrize("status", [202, 303])
@pytest.mark.parametrize("address", ["/jobs/job-1", "jobs/job-1", "BASE/jobs/job-1", "../jobs/job-1#x"])
def test_a_job_is_polled_where_a_header_says(system, target, address, status):
    system.job_address, system.job_status = address.replace("BASE", system.url), status
    handles = target(plant=[ACCEPTED, POLLED]).plant([document()])
    assert system.documents.keys() == {"town-0", *handles}
    assert [path for _, path, _, _ in system.requests] == ["/add", "/jobs/job-1", "/jobs/job-1"]


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:1/jobs/job-1",
        "http://192.0.2.7/jobs/job-1",
        "https://127.0.0.1/jobs/job-1",
        "//127.0.0.1:2/x",
        "file:///etc/passwd",
        "http://[::1",
        "jobs/%2e%2e/admin",
    ],
)
def test_a_header_leads_no_request_to_where_the_configuration_has_no_address(system, target, address):
    """Else a system could have requests, and the headers with them, sent to what else runs on this machine."""
    system.job_address = address
    with pytest.raises(TargetError, match="not on a host and port of the configuration") as failed:
        target(plant=[ACCEPTED, POLLED]).plant([document()])
    assert not failed.value.refused  # the first request may have planted
    assert len(system.requests) == 1


def test_a_header_that_is_not_there_is_named(system, target):
    with pytest.raises(TargetError, match=r"plant\.take\.job: \$header\.location leads to nothing in the reply"):
        target(plant=[ACCEPTED, POLLED]).plant([document()])
    with pytest.raises(TargetError, match=r"plant\.id: the reply has no header x-id, but \['content-length'"):
        target(plant={"url": "BASE/documents", "body": {"text": "{text}"}, "id": "$header.X-Id"}).plant([document()])


def test_the_address_of_a_new_document_is_its_id(system, target):
    plant = {"url": "BASE/documents?created", "body": {"text": "{text}"}, "id": "$header.location"}
    planted = target(plant=plant, remove={"method": "DELETE", "url": "{id}"})
    (handle,) = planted.plant([document()])
    assert handle == f"{system.url}/documents/piece-1"
    assert planted.remove([handle]) == []
    assert planted.remove([handle]) == [handle]
    for other in (f"{system.url}/documents", f"{system.url}/", system.url, "http://127.0.0.1:1/documents/piece-1", "7"):
        with pytest.raises(TargetError, match=r"no address of one document|not on a host and port"):
            planted.remove([other])
    assert system.documents.keys() == {"town-0"}
    named = target(plant={**plant, "id": "$header.X-Document"})
    assert named.remove(named.plant([document()])) == []


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ({"ask": {**PRIVATE, "answer": "$header.x"}}, r"ask\.answer cannot be '\$header\.x': headers are read by take"),
        ({"ask": {**PRIVATE, "url": "{question}"}}, r"ask\.url cannot be {question}; only what take took"),
        ({"plant": {"url": "{text}"}}, r"plant\.url cannot be {text}"),
        ({"ask": [THREAD[0], {**THREAD[1], "url": "{other}"}]}, r"\{other\} is unknown"),
    ],
)
def test_only_what_was_taken_is_an_address(target, calls, message):
    with pytest.raises(UnpoisonError, match=message):
        target(**calls)
