from __future__ import annotations

import re

import pytest

from unpoison.errors import OptionError
from unpoison.models import (
    ExtractiveReader,
    LexicalEncoder,
    LexicalNLI,
    load_encoder,
    load_generator,
    load_nli,
)
from unpoison.models.loading import weights_of


def test_built_in_forms() -> None:
    assert isinstance(load_encoder("lexical"), LexicalEncoder)
    assert isinstance(load_generator("extractive"), ExtractiveReader)
    assert isinstance(load_nli("lexical"), LexicalNLI)


@pytest.mark.needs("openai")
def test_options_follow_the_models_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    plain, reasoning = load_generator("openai:m"), load_generator("openai:m,temperature=none,seed=7")
    assert plain.name != reasoning.name
    with pytest.raises(OptionError, match=r"has no option 'temprature'; did you mean 'temperature'\? it has: "):
        load_generator("openai:m,temprature=0")
    with pytest.raises(OptionError, match="max_tokens must be"):
        load_generator("openai:m,max_tokens=many")


@pytest.mark.needs("openai")
def test_keys_come_from_the_environment_only() -> None:
    with pytest.raises(OptionError, match="in the environment, such as OPENAI_API_KEY"):
        load_generator("openai:m,api_key=secret")


@pytest.mark.parametrize("spec", ["", "openai", "openai:", "extractive:x", "word2vec:x"])
def test_forms_that_do_not_exist(spec: str) -> None:
    listed = "use reader, reader-base, reader-multilingual, qa:NAME_OR_PATH, extractive, openai:MODEL"
    with pytest.raises(OptionError, match=listed):
        load_generator(spec)


@pytest.mark.needs("unpoison_reader", "unpoison_reader_base", "unpoison_reader_multilingual")
def test_the_weights_of_a_shipped_reader_have_a_name_and_so_have_those_that_read_other_languages_for_it() -> None:
    small, larger, multilingual = map(weights_of, ("reader", "reader-base", "reader-multilingual"))
    assert len(multilingual) == 12
    assert re.fullmatch(rf"[0-9a-f]{{12}}\+{multilingual}", small)
    assert small != larger
    assert weights_of("reader,threshold=0.75") == small
    assert weights_of("extractive") == weights_of("qa:folder") == weights_of(None) == ""
