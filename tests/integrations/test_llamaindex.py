"""LlamaIndex: the postprocessor in a real query engine, questions that are missing, vectors that are there."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import ImageNode, MediaResource, MetadataMode, Node, NodeWithScore, QueryBundle, TextNode

from integrations.frameworks import QUERY, TEXTS, CutsStadium, DropsStadium
from unpoison.errors import InputError, OptionError
from unpoison.integrations.llamaindex import ScreeningPostprocessor

pytestmark = pytest.mark.needs("llama_index")


def nodes(**fields: object) -> list[NodeWithScore]:
    made = [TextNode(text=text, id_=f"id-{i}", metadata={"source": f"s{i}"}) for i, text in enumerate(TEXTS)]
    return [NodeWithScore(node=node.model_copy(update=fields), score=None) for node in made]


class Fixed(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return nodes()


@pytest.fixture(params=[{}, {"annotate": True}, {"mode": "monitor"}], ids=str)
def engine(request: pytest.FixtureRequest) -> tuple[RetrieverQueryEngine, bool]:
    screening = ScreeningPostprocessor(DropsStadium(), **request.param)
    made = RetrieverQueryEngine.from_args(Fixed(), llm=MockLLM(), node_postprocessors=[screening])
    return made, screening.mode == "monitor"


@pytest.mark.parametrize("name", ["mod", "exempts", "auditlog"])
def test_a_misspelt_option_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match=f"has no option '{name}'; did you mean '(mode|exempt|audit_log)'"):
        ScreeningPostprocessor(DropsStadium(), **{name: "monitor"})


def test_in_a_query_engine(engine: tuple[RetrieverQueryEngine, bool]) -> None:
    enforcing, monitoring = engine
    answer = enforcing.query(QUERY)  # the mock model repeats its prompt
    assert TEXTS[0] in str(answer)
    assert ("Levi's Stadium" in str(answer)) == monitoring
    assert "unpoison" not in str(answer)
    assert len(answer.source_nodes) == (6 if monitoring else 4)
    again = asyncio.run(enforcing.aquery(QUERY))
    assert str(again) == str(answer)


def test_without_a_query_it_says_how_to_pass_one() -> None:
    screening = ScreeningPostprocessor(DropsStadium())
    for refused in (
        lambda: screening.postprocess_nodes(nodes()),
        lambda: asyncio.run(screening.apostprocess_nodes(nodes())),
        lambda: ScreeningPostprocessor(mode="monitor").postprocess_nodes([]),
    ):
        with pytest.raises(InputError, match=r"without a query; pass query_bundle=QueryBundle\(...\) or query_str="):
            refused()


def test_only_the_bare_text_is_screened_and_scores_may_be_missing() -> None:
    defense = DropsStadium()
    given = nodes()
    given[1].score = 0.5
    ScreeningPostprocessor(defense).postprocess_nodes(given, query_str=QUERY)
    ((_, passages),) = defense.seen
    assert [p.text for p in passages] == TEXTS
    assert [(p.id, p.source) for p in passages] == [(f"id-{i}", f"s{i}") for i in range(6)]
    assert [p.score for p in passages] == [None, 0.5, None, None, None, None]


@pytest.mark.parametrize(("of_nodes", "of_query"), [(True, True), (True, False), (False, True)])
def test_embeddings_are_used_where_all_have_one(of_nodes: bool, of_query: bool) -> None:
    defense = DropsStadium()
    given = nodes(embedding=[0.5, 0.25] if of_nodes else None)
    ScreeningPostprocessor(defense).postprocess_nodes(
        given, QueryBundle(QUERY, embedding=[1.0, 0.0] if of_query else None)
    )
    ((query, passages),) = defense.seen
    used = of_nodes and of_query
    assert (query.embedding is not None) == used
    assert all((p.embedding is not None) == used for p in passages)
    if used:
        assert np.array_equal(passages[0].embedding, [0.5, 0.25])


def test_nodes_of_other_kinds_are_read() -> None:
    plain = Node(text_resource=MediaResource(text="plain"), metadata={"a": "b"})
    given = [NodeWithScore(node=node) for node in (Node(), ImageNode(image_url="x.png"), plain)]
    defense = DropsStadium()
    assert len(ScreeningPostprocessor(defense).postprocess_nodes(given, query_str=QUERY)) == 3
    assert [p.text for p in defense.seen[0][1]] == ["", "", "plain"]


def test_a_verdict_is_hidden_from_model_and_encoder() -> None:
    given = nodes(excluded_llm_metadata_keys=["source"])
    delivered = ScreeningPostprocessor(DropsStadium(), annotate=True).postprocess_nodes(given, query_str=QUERY)
    node = delivered[0].node
    assert node.metadata["unpoison"]["kept"]
    assert node.get_content(metadata_mode=MetadataMode.LLM) == TEXTS[0]
    assert "unpoison" not in node.get_content(metadata_mode=MetadataMode.EMBED)
    assert given[0].node.excluded_llm_metadata_keys == ["source"]


@pytest.mark.parametrize("plain", [False, True], ids=["text node", "another kind"])
def test_a_redacted_node_is_a_text_node_of_the_same_name_without_its_title_and_vector(plain: bool) -> None:
    fields = {"id_": "n", "metadata": {"source": "s", "title": "A title"}, "excluded_llm_metadata_keys": ["source"]}
    fields |= {"excluded_embed_metadata_keys": ["title"], "embedding": [1.0]}
    node = Node(text_resource=MediaResource(text=TEXTS[2]), **fields) if plain else TextNode(text=TEXTS[2], **fields)
    (delivered,) = ScreeningPostprocessor(CutsStadium()).postprocess_nodes(
        [NodeWithScore(node=node, score=0.5)], query_str=QUERY
    )
    assert isinstance(delivered.node, TextNode)
    assert delivered.node.text == "A title\n" + TEXTS[2].replace("Levi's Stadium.", "[removed] .")
    assert (delivered.node_id, delivered.score, delivered.metadata) == ("n", 0.5, {"source": "s"})
    assert delivered.node.embedding is None
    assert delivered.node.excluded_llm_metadata_keys == ["source"]
    assert delivered.node.excluded_embed_metadata_keys == ["title"]
    assert node.metadata["title"] == "A title"


def test_the_options_of_the_framework_reach_it() -> None:
    screening = ScreeningPostprocessor("grada:keep=1", mode="monitor", exempt=["id-1"])
    assert (screening.defense, screening.mode, screening.annotate) == ("grada:keep=1", "monitor", False)
    assert (screening.exempt, screening.audit_log) == (["id-1"], None)
