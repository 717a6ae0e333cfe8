"""What every reason of a defense says: its code, its words for a terminal, and its words for who decides.

Words for a terminal are a format string over the reason's parameters. Beside Python's format specifications there are
`{spans:#span}` ("1 span", "2 spans"), `{passages}` for a list ("1, 2"), `[conflict|...]` for a part that is left out
without that parameter, and `{clauses}` for the clauses that a reason is made of. Plain words hold no parameter but
these clauses, so that nothing which a passage says can choose them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["OTHER_FATE", "WORDS", "Words"]


class Words(NamedTuple):
    """One reason in words.

    Attributes:
        terminal: A format string.
        plain: A sentence without numbers, in lower case, for who knows neither the method nor its paper.
    """

    terminal: str
    plain: str


ALIKE = "belongs to a group of texts that are too alike"
NO_LOOK_ALIKES = "is not part of a group of look-alikes"
NOTHING = "nothing speaks against it"
TRUTH_UNCHECKED = "whether it is true was not checked"
TOO_LITTLE = f"too little speaks against it; {TRUTH_UNCHECKED}"
UNINFORMATIVE = "does not answer the question"
TOO_FEW = "nothing was checked: there are too few texts to compare"
USEFUL = "others were judged more useful"

PLACE = "place {place} of {count}"
PAST = f"{PLACE}, past the {{keep}} kept"
CLUSTER = "mean cosine {density:.2f}, mean ROUGE-L {overlap:.2f}"
NEAREST = "most similar to passage {passage} ({similarity:.2f})"
ANSWER = (
    "answers {answer!r}: support {support:.2f} against {against:.2f}[conflict|, conflict {conflict:.2f} with passage "
    "{passage}]; "
)

DOOR = {
    "prompt_injection": Words(
        "prompt injection: {quote!r}",
        "contains a prompt injection: it tells the model what to do instead of informing its reader",
    ),
    "prompt_injection.cut": Words(
        "a prompt injection is cut: {quote!r}; {clauses}",
        "a prompt injection was cut out of it; of what is left: {clauses}",
    ),
    "prompt_injection.flagged": Words(
        "a prompt injection is flagged: {quote!r}; {clauses}",
        "holds what reads like a prompt injection, which is read with it; apart from that: {clauses}",
    ),
    "exempt": Words("exempt; {clauses}", "is exempt: it is kept whatever the defense finds"),
    "past_best": Words("{clauses}; past the {keep} best that are kept", USEFUL),
    "copies.copy": Words("a copy of passage {passage}", "is a copy of another text"),
    "copies.all_equal": Words(
        "all passages have the same embedding: nothing tells them apart, all kept; five copies of a poison pass here "
        "where five near-copies go",
        "all texts are alike: nothing tells them apart",
    ),
    "nothing.retrieved": Words("retrieval rank {rank}", "nothing was checked: it was taken as the search returned it"),
    "nothing.past": Words(
        "retrieval rank {rank}, past the {keep} kept", "nothing was checked: the search found others first"
    ),
    "nothing.read": Words("retrieval is switched off", "no document is read at all"),
}
"""What may befall a passage under any defense, or without one."""

GUARD = {
    "hidden": Words("hides {what}", "hides text from its readers"),
    "hidden.read": Words(
        "hides {what}, and is read as a reader sees it", "is read without what it hides from its readers"
    ),
    "gibberish": Words(
        "holds text that no person writes: {quote!r}[allow|; if it is fine, allow: {allow}]",
        "holds text that no person writes",
    ),
    "gibberish.kept": Words(
        "may hold text that no person writes, not enough to drop it: {quote!r}", TOO_LITTLE
    ),
    "gibberish.window": Words("text that no person writes", "no person writes so"),
    "crafted": Words(
        "looks written for this question ({probability:.2f}): {clauses}[allow|; if it is fine, allow: {allow}]",
        "looks written to be found for this question: {clauses}",
    ),
    "crafted.kept": Words(
        "may look written for this question ({probability:.2f}), not enough to drop it: {clauses}", TOO_LITTLE
    ),
    "crafted.window": Words("looks written for this question", "looks written for this question"),
    "contradicted": Words(
        "its answer contradicts passage {passage}'s ({conflict:.2f}); {clauses}",
        "its answer contradicts another text's",
    ),
    "contradicted.kept": Words(
        "its answer contradicts passage {passage}'s ({conflict:.2f}), not enough to drop it; {clauses}",
        TOO_LITTLE,
    ),
    "guard.flagged": Words("flagged only: {clauses}", "is kept although: {clauses}"),
    "guard.alone": Words(
        "flagged only, for nothing else that was retrieved answers the question: {clauses}",
        "is kept because nothing else answers the question, although: {clauses}",
    ),
    "guard.spared": Words(
        f"comes from a known source or is allowed, so its style is not judged; {TRUTH_UNCHECKED}",
        f"comes from a known source or is allowed, so its style was not judged; {TRUTH_UNCHECKED}",
    ),
    "guard.threshold": Words(
        "nothing in its text is remarkable ({probability:.2f})", "is dropped because next to nothing is let through"
    ),
    "guard.unremarkable": Words(
        f"no sign of tampering in its text ({{probability:.2f}}); {TRUTH_UNCHECKED}",
        f"nothing speaks against its text; {TRUTH_UNCHECKED}",
    ),
    "guard.too_short": Words(
        f"too short to say how it is written ({{probability:.2f}}); {TRUTH_UNCHECKED}",
        f"is too short for its wording to say anything; {TRUTH_UNCHECKED}",
    ),
    "guard.unchecked": Words("nothing was looked for: every check is switched off", "nothing was checked"),
    "guard.unjudged": Words(
        "nothing is hidden in it ({probability:.2f}); its wording is not judged in this script, and "
        f"{TRUTH_UNCHECKED}",
        f"nothing is hidden in it; how it is written could not be judged, and {TRUTH_UNCHECKED}",
    ),
    "guard.redacted": Words(
        "kept without {spans:#span}[probability|, which leaves {probability:.2f}]; whole: {clauses}",
        "is kept without what was found in it",
    ),
    "guard.rest": Words(
        "without {spans:#span} {probability:.2f} is left; whole: {clauses}",
        "is suspicious even without its worst sentences",
    ),
    # the clauses of these
    "crafted.quote": Words("\u201c{quote}\u201d", "it answers the question head-on, as invented claims do"),
    "crafted.company": Words(
        "together with others that look so", "it resembles others that look so"
    ),
}  # fmt: skip

GRADA = {
    "grada.near_duplicate": Words(
        PLACE + ": near-duplicate of passage {passage}, which has their one vote",
        "is nearly a copy of another text, and copies count once",
    ),
    "grada.near_duplicate_past": Words(
        PAST + ": near-duplicate of passage {passage}, which has their one vote",
        "is nearly a copy of another text, and copies count once",
    ),
    "grada.central": Words(
        PLACE + ": graph score {score:.4f}, strongest tie {tie:.3f} to passage {passage}",
        "has much in common with the other texts",
    ),
    "grada.central_past": Words(
        PAST + ": graph score {score:.4f}, strongest tie {tie:.3f} to passage {passage}",
        "has less in common with the other texts than those that were taken",
    ),
    "grada.untied": Words(
        PLACE + ": graph score {score:.4f}, no tie to any other passage",
        "has nothing in common with the other texts, but no better one was left",
    ),
    "grada.untied_past": Words(
        PAST + ": graph score {score:.4f}, no tie to any other passage", "has nothing in common with the other texts"
    ),
}

RAGDEFENDER = {
    "ragdefender.suspect": Words(
        "suspect {place} of {count}: pair frequency {frequency:.3f}, " + NEAREST,
        "resembles other texts so closely that they look written together",
    ),
    "ragdefender.below": Words(
        "pair frequency {frequency:.3f} is below the {count} suspects', " + NEAREST, NO_LOOK_ALIKES
    ),
    "ragdefender.no_suspects": Words("no suspects; " + NEAREST, "no group of look-alikes stands out"),
    "ragdefender.too_few": Words("fewer than {least} passages: too few to group, all kept", TOO_FEW),
}

TRUSTRAG = {
    "trustrag.too_alike": Words(
        "one of {size} passages that are too alike: " + CLUSTER,
        "belongs to a group of texts that say the same in nearly the same words",
    ),
    "trustrag.dense": Words("one of {size} passages of a dense cluster: mean cosine {density:.2f}", ALIKE),
    "trustrag.denser": Words("one of {size} passages of the denser cluster: mean cosine {density:.2f}", ALIKE),
    "trustrag.alone_like_malicious": Words(
        "alone in its cluster and as close to the malicious one (mean cosine {closeness:.2f})",
        "is as much like a group of suspicious copies as they are like each other",
    ),
    "trustrag.alone_unlike_malicious": Words(
        "alone in its cluster and not close to the malicious one (mean cosine {closeness:.2f})",
        "stands alone and is not like the suspicious group",
    ),
    "trustrag.alone": Words("alone in its cluster", "stands alone, and nothing speaks against it"),
    "trustrag.own_words": Words(
        "one of {size} dense passages with little shared wording: " + CLUSTER,
        "says about the same as others, but in words of its own",
    ),
    "trustrag.not_dense": Words(
        "one of {size} passages that are not dense: mean cosine {density:.2f}", NO_LOOK_ALIKES
    ),
    "trustrag.too_few": Words("fewer than {least} passages: too few to cluster, all kept", TOO_FEW),
    "trustrag.no_clustering": Words(
        "clustering is switched off: all kept", "nothing was checked: this step is switched off"
    ),
    # how the released code puts it
    "trustrag.no_shared_wording": Words(
        "no two passages have a ROUGE-L above {overlap:g}: nothing is filtered",
        "no two texts share enough of their wording to be suspicious",
    ),
    "trustrag.one_cluster": Words(
        "all embeddings are equal: one dense cluster, dropped", "all texts are too much alike to be trusted"
    ),
    "trustrag.both_dense": Words(
        "both clusters are dense: all dropped", "all texts are too much alike to be trusted"
    ),
    "trustrag.lone_like_dense": Words(
        "the group is dense and the lone passage is like it: all dropped", "all texts are too much alike to be trusted"
    ),
    "trustrag.lone_unlike_dense": Words(
        "the group is dense and the lone passage is not like it: the group is dropped", ALIKE
    ),
    "trustrag.lone_dropped": Words(
        "the group is not dense, so the lone passage is dropped", "stands alone beside texts that agree"
    ),
    "trustrag.dense_or_shared": Words(
        "its cluster is dense, or it shares wording inside its cluster",
        "belongs to a group of texts that are too alike, or shares its wording with another",
    ),
    "trustrag.passed": Words("kept by the released code's rules", NOTHING),
}  # fmt: skip

RADAR = {
    "radar.uninformative": Words("its atomic answer is uninformative", UNINFORMATIVE),
    "radar.trusted": Words(ANSWER + "on the trusted side of the cut", "its answer fits those of the other texts"),
    "radar.outlier": Words(
        ANSWER + "on the trusted side of the cut, but unlike the other trusted answers",
        "its answer is unlike the other trusted ones",
    ),
    "radar.unsupported": Words(ANSWER + "cut off", "too few other texts support its answer"),
    "radar.contradicted": Words(
        ANSWER + "cut off", "its answer is contradicted by other texts more than it is supported"
    ),
    "radar.repeated": Words(
        "answers {answer!r}, as passage {passage} of its source", "says what another text of its source says"
    ),
}

READ_ALONE = {
    "answer.uninformative": Words("its answer is uninformative", UNINFORMATIVE),
    "vote.no_answer": Words("does not answer", UNINFORMATIVE),
    "vote.nobody_wins": Words(
        "answers {answer!r}, {votes:#vote}: nobody wins", "no answer has enough texts behind it to win the vote"
    ),
    "vote.wins": Words(
        "answers {answer!r}, which wins with {support:#vote}", "gives the answer that most texts give"
    ),
    "vote.loses": Words(
        "answers {answer!r}, {votes:#vote} against {support}", "more texts give another answer"
    ),
    "robustrag.votes": Words(
        "no passage is dropped: each is read alone and has one vote", "is read by itself and has one vote"
    ),
    "robustrag.voted": Words("answers {answer!r}, {votes:.2f} votes", "is read by itself and its answer was counted"),
    "robustrag.probabilities": Words(
        "no passage is dropped: each is read alone and adds its probabilities",
        "is read by itself, and no text decides the answer alone",
    ),
    "robustrag.read": Words(
        "P(I don't know) = {refusal:.2f}: read", "is read by itself, and no text decides the answer alone"
    ),
    "robustrag.left_out": Words("P(I don't know) = {refusal:.2f}: left out", UNINFORMATIVE),
    "robustrag.uncounted": Words(
        "P(I don't know) = {refusal:.2f}: no part beside known sources", "its source does not count beside known ones"
    ),
    "madam.agents": Words(
        "no passage is dropped: each has an agent who speaks for it", "is one side of a debate between the texts"
    ),
    "madam.answers": Words("its agent answers {answer!r}", "is one side of a debate between the texts"),
    "reliabilityrag.consistent": Words(
        "answers {answer!r}: in the largest set of {size} without contradiction",
        "belongs to the largest group of texts that do not contradict each other",
    ),
    "reliabilityrag.contradicts": Words(
        "answers {answer!r}: contradicts passage {passages} of the largest set without contradiction",
        "contradicts the largest group of texts that agree",
    ),
    "reliabilityrag.sampled": Words(
        "in {consistent} of the consistent samples, of {samples} that hold it",
        "was read together with others, and judged by how well these answers agree",
    ),
    "reliabilityrag.unsampled": Words("in no sample", "was not read: only some of the texts were drawn"),
}  # fmt: skip
"""Methods that ask a model what each passage says."""

OTHERS = {
    "rerank.kept": Words(PLACE + ": relevance {relevance:.4f}", "was judged useful for the question"),
    "rerank.past": Words(PAST + ": relevance {relevance:.4f}", USEFUL),
    "perplexity.above": Words(
        "perplexity {perplexity:.1f} is above {threshold:.1f}", "its language is too unusual to be trusted"
    ),
    "perplexity.within": Words(
        "perplexity {perplexity:.1f} is within {threshold:.1f}", "its language is nothing unusual"
    ),
    "discern.perturbed": Words("the model says that it is perturbed", "the model takes it for a changed text"),
    "discern.unperturbed": Words("the model says that it is not perturbed", "the model takes it for a genuine text"),
    "discern.classified_perturbed": Words(
        "P(perturbed) = {probability:.2f}, threshold {threshold:.2f}", "was recognized as a changed text"
    ),
    "discern.classified_unperturbed": Words(
        "P(perturbed) = {probability:.2f}, threshold {threshold:.2f}", "was not recognized as a changed text"
    ),
    "astuterag.weighed": Words(
        "no passage is dropped: the model weighs them against what it knows",
        "the model weighs it against what it knows itself",
    ),
    "instructrag.explained": Words(
        "no passage is dropped: the model is to explain which ones help", "the model has to explain which texts help"
    ),
    "paraphrase.rephrased": Words(
        "no passage is dropped: the question is asked in other words",
        "nothing was checked: only the question was put in other words",
    ),
}

SOURCES = {
    "sources.contradicted": Words(
        "says {answer}[alone|, as nobody else]: {own:#source} never seen before, against {known:#known source} for "
        "{other}",
        "known sources contradict it, and its own was never seen before",
    ),
    "sources.agrees": Words("says {answer}, like {others:#known source}", "known sources say the same"),
    "sources.trusted": Words("says {answer}, and its source is trusted", "its source is trusted"),
    "sources.one_origin": Words(
        "one of {count:#text} from one source that was never seen before",
        "one source that was never seen before sent too many texts",
    ),
    "ra_rag.unknowing": Words("its source does not know", "does not answer the question"),
    "ra_rag.unsupported": Words(
        "its source answers {answer!r}, and no passage of its own says so",
        "no text of its source says so",
    ),
    "ra_rag.unreliable": Words(
        "its source answers {answer!r}, and is not among the {kappa} most reliable that answer",
        "others are more reliable",
    ),
    "ra_rag.wins": Words(
        "its source answers {answer!r} with weight {weight:.2f}, which wins", "reliable sources say so"
    ),
    "ra_rag.loses": Words(
        "its source answers {answer!r} with weight {weight:.2f}, against {other!r}",
        "reliable sources say otherwise",
    ),
    "sources.uncounted": Words(
        "answers {answer!r}, and does not count beside known sources", "its source does not count beside known ones"
    ),
    "sources.blocked": Words("its source is blocked", "its source is blocked"),
}
"""What is said of who says it."""

TOOLS = {
    "tool.passed": Words("nothing in it speaks to the model", "nothing in it speaks to the model"),
    "tool.hidden": Words("{count:#hidden character}", "hides characters from its readers"),
    "tool.split": Words(
        "a prompt injection spread over several texts", "spreads a prompt injection over several texts"
    ),
    "tool.too_much": Words("{what}", "is too large to be looked into"),
    "tool.failed": Words("its screening failed: {kind}", "could not be screened"),
    "tool.source": Words("its source is blocked", "comes from a blocked source"),
    "tool.name": Words("its name is none of the protocol's", "has a name in other letters than the protocol's"),
    "tool.shadows": Words("its name looks like that of another tool", "has a name that looks like another tool's"),
    "tool.unapproved": Words("it is not in the lock file", "was not approved"),
    "tool.changed": Words("it is not what the lock file says", "has changed since it was approved"),
}
"""What is said of a tool's result."""

MEMORIES = {
    "memory.kept": Words("nothing speaks against it", "nothing speaks against it"),
    "memory.rule": Words(
        "claims what the agent may, must or need not do, and its source is not trusted",
        "makes claims about the agent's own rules",
    ),
    "memory.order": Words(
        "orders the agent to remember something or to act on it from now on, and its source is not known",
        "tells the agent what to do later",
    ),
}
"""What is said of a memory."""

WORDS: Mapping[str, Words] = {
    **DOOR, **GUARD, **GRADA, **RAGDEFENDER, **TRUSTRAG, **RADAR, **READ_ALONE, **OTHERS, **SOURCES, **TOOLS,
    **MEMORIES,
}  # fmt: skip
"""By code."""

OTHER_FATE = {
    False: {
        "crafted.kept": "crafted",
        "gibberish.kept": "gibberish",
        "guard.unremarkable": "guard.threshold",
        "guard.unjudged": "guard.threshold",
        "guard.too_short": "guard.threshold",
        "guard.redacted": "guard.rest",
        "contradicted.kept": "contradicted",
    },
    True: {
        "crafted": "crafted.kept",
        "gibberish": "gibberish.kept",
        "guard.threshold": "guard.unremarkable",
        "guard.rest": "guard.redacted",
        "contradicted": "contradicted.kept",
    },
}
"""By whether a passage is kept after all: the codes of the same findings when its threshold is moved."""
