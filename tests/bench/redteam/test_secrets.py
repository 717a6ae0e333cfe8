"""Secrets of the environment are in nothing that is shown or written."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

from hypothesis import assume, given
from hypothesis import strategies as st

from unpoison.bench.redteam import Secrets


@given(st.text(alphabet='ab"\\/+ é\u2028', min_size=4, max_size=12), st.text(max_size=20))
def test_no_secret_survives_in_any_usual_dress(secret, around):
    assume(len(secret.replace("\\", "")) >= 4 and secret.strip() and not any(c in around for c in "ab$%{}"))
    secrets = Secrets({"NAME": secret})
    secrets.value("NAME")
    dresses = [secret, json.dumps(secret), json.dumps(json.dumps(secret)), quote(secret), quote_plus(secret)]
    dresses.append(base64.b64encode(secret.encode()).decode())
    for dress in dresses:
        example = secrets.mask([{"a": f"{around}{dress}{around}"}])[0]["a"]
        assert secret not in example
        assert dress not in example


def test_the_name_of_a_collection_is_no_secret_and_a_reply_keeps_its_fields():
    secrets = Secrets({"COLLECTION": "documents", "RAG_TOKEN": "answer"})
    assert secrets.value("COLLECTION", secret=False) == "documents"
    assert secrets.value("RAG_TOKEN", secret=False) == "answer"
    assert secrets.mask({"answer": "the answer stands in documents"}) == {
        "answer": "the ${RAG_TOKEN} stands in documents"
    }
