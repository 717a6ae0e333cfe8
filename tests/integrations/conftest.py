"""Every test that asks for `adapted` runs with each of the three frameworks."""

from __future__ import annotations

import pytest

from integrations.frameworks import Adapted, Haystack, LangChain, LlamaIndex

FRAMEWORKS = [
    pytest.param(framework, id=framework.extra, marks=pytest.mark.needs(framework.library))
    for framework in (LangChain, LlamaIndex, Haystack)
]


@pytest.fixture(params=FRAMEWORKS)
def adapted(request: pytest.FixtureRequest) -> Adapted:
    return Adapted(request.param())
