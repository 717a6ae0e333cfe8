"""Every test that asks for `adapted` runs with each of the three frameworks."""

from __future__ import annotations

import pytest

from integrations.frameworks import Adapted, Haystack, LangChain, LlamaIndex


@pytest.fixture(params=[LangChain, LlamaIndex, Haystack], ids=lambda framework: framework.extra)
def adapted(request: pytest.FixtureRequest) -> Adapted:
    return Adapted(request.param())
