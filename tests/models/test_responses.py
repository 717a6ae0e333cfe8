"""When a server may be asked again, and replies of bounded length."""

from __future__ import annotations

import pytest

from unpoison.models import responses


@pytest.mark.parametrize(
    ("moment", "seconds"),
    [
        ("Sun, 06 Nov 1994 08:49:40 GMT", 3),
        ("Sun, 06 Nov 1994 08:49:30 GMT", 0),
        ("Mon, 07 Nov 2094 08:49:37 GMT", 3600),
    ],
)
def test_retry_after_may_be_a_date(moment: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses.time, "time", lambda: 784111777.0)
    assert responses.retry_after(moment) == seconds


def test_a_reply_is_of_bounded_length() -> None:
    longest = responses.MAX_REPLY_CHARS
    assert responses.make_reply("a" * longest, "stop", 3, 4).finish == "stop"
    cut = responses.make_reply("a" * (longest + 1), "stop", True, -1)
    assert (len(cut.text), cut.finish, cut.prompt_tokens, cut.completion_tokens) == (longest, "length", None, None)
