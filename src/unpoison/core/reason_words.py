"""One sentence for every reason code, as a `str.format` string over the reason's parameters."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["SENTENCES"]

TRUTH = "whether it is true was not checked"
PLACE = "place {place} of {count}"
PAST = f"{PLACE}, past the {{keep}} kept"
NEAREST = "most similar to passage {passage} ({similarity:.2f})"
BALANCE = "support {support:.2f} against {against:.2f}"

SENTENCES: Mapping[str, str] = {
    # any defense
    "prompt_injection": "contains a prompt injection: {quote!r}",
    "prompt_injection.cut": "kept without its prompt injection {quote!r}",
    "prompt_injection.flagged": "kept with a possible prompt injection {quote!r}",
    "exempt": "exempt from screening",
    "copies.copy": "a copy of passage {passage}",
    "copies.all_equal": "all passages have the same embedding, so nothing tells them apart and all are kept",
    "nothing.retrieved": "retrieval rank {rank}",
    "nothing.past": "retrieval rank {rank}, past the {keep} kept",
    "nothing.read": "retrieval is switched off",
    # Guard
    "hidden": "hides {what}",
    "hidden.read": "hides {what}; read without it",
    "gibberish": "contains text that no person writes: {quote!r}",
    "gibberish.kept": "may contain text that no person writes, below the threshold: {quote!r}",
    "gibberish.window": "text that no person writes",
    "crafted": "looks written for this question ({probability:.2f})",
    "crafted.kept": "may be written for this question, below the threshold ({probability:.2f})",
    "crafted.window": "looks written for this question",
    "crafted.neighbors": "others of the passages look so too",
    "crafted.quote": "\u201c{quote}\u201d",
    "allow": "if it is fine, allow: {allow}",
    "guard.flagged": "flagged only",
    "guard.alone": "flagged only, since no other passage answers the question",
    "guard.spared": f"its source is known or it is allowed, so its style is not judged; {TRUTH}",
    "guard.threshold": "no sign of tampering in its text, but above the threshold ({probability:.2f})",
    "guard.unremarkable": f"no sign of tampering in its text ({{probability:.2f}}); {TRUTH}",
    "guard.too_short": f"too short to judge its style ({{probability:.2f}}); {TRUTH}",
    "guard.unchecked": "every check is switched off",
    "guard.unjudged": f"hides nothing ({{probability:.2f}}); its style is not judged in this script, and {TRUTH}",
    "guard.redacted": "kept without {spans} suspicious parts, which leaves {probability:.2f}",
    # GRADA
    "grada.central": f"{PLACE}: graph score {{score:.4f}}, strongest edge {{tie:.3f}} to passage {{passage}}",
    "grada.central_past": f"{PAST}: graph score {{score:.4f}}, strongest edge {{tie:.3f}} to passage {{passage}}",
    "grada.untied": f"{PLACE}: graph score {{score:.4f}}, no edge to any other passage",
    "grada.untied_past": f"{PAST}: graph score {{score:.4f}}, no edge to any other passage",
    # RAGDefender
    "ragdefender.suspect": f"suspect {{place}} of {{count}}: pair frequency {{frequency:.3f}}, {NEAREST}",
    "ragdefender.below": f"pair frequency {{frequency:.3f}} is below that of the {{count}} suspects, {NEAREST}",
    "ragdefender.no_suspects": f"no suspects; {NEAREST}",
    "ragdefender.too_few": "fewer than {least} passages: too few to group, all kept",
    # TrustRAG
    "trustrag.too_alike": "in a cluster of {size} near-copies: mean cosine {density:.2f}, mean ROUGE-L {overlap:.2f}",
    "trustrag.dense": "in a dense cluster of {size}: mean cosine {density:.2f}",
    "trustrag.denser": "in the denser cluster, of {size}: mean cosine {density:.2f}",
    "trustrag.alone_like_malicious": "alone in its cluster, close to the malicious one (mean cosine {closeness:.2f})",
    "trustrag.alone_unlike_malicious": "alone in its cluster, far from the malicious one (mean cosine {closeness:.2f})",
    "trustrag.alone": "alone in its cluster",
    "trustrag.own_words": "in a dense cluster of {size} that shares little wording: mean cosine {density:.2f}, mean "
    "ROUGE-L {overlap:.2f}",
    "trustrag.not_dense": "in a cluster of {size} that is not dense: mean cosine {density:.2f}",
    "trustrag.too_few": "fewer than {least} passages: too few to cluster, all kept",
    "trustrag.no_clustering": "clustering is switched off: all kept",
    "trustrag.no_shared_wording": "no two passages have a ROUGE-L above {overlap:g}: nothing is filtered",
    "trustrag.one_cluster": "all embeddings are equal: one dense cluster, dropped",
    "trustrag.both_dense": "both clusters are dense: all dropped",
    "trustrag.lone_like_dense": "the group is dense and the lone passage is like it: all dropped",
    "trustrag.lone_unlike_dense": "the group is dense and the lone passage is not like it: the group is dropped",
    "trustrag.lone_dropped": "the group is not dense, so the lone passage is dropped",
    "trustrag.dense_or_shared": "its cluster is dense, or it shares wording inside its cluster",
    "trustrag.passed": "kept by the released code's rules",
    # RADAR
    "radar.uninformative": "its atomic answer is uninformative",
    "radar.trusted": f"answers {{answer!r}}, on the trusted side of the cut: {BALANCE}",
    "radar.outlier": f"answers {{answer!r}}, on the trusted side but unlike the other trusted answers: {BALANCE}",
    "radar.unsupported": f"answers {{answer!r}}, cut off with too little support: {BALANCE}",
    "radar.contradicted": f"answers {{answer!r}}, cut off because other answers contradict it: {BALANCE}",
    "radar.conflict": "conflict {conflict:.2f} with passage {passage}",

    # methods that read each passage alone
    "answer.uninformative": "its answer is uninformative",
    "vote.no_answer": "does not answer",
    "vote.nobody_wins": "answers {answer!r} (votes: {votes}); no answer wins",
    "vote.wins": "answers {answer!r}, which wins (votes: {support})",
    "vote.loses": "answers {answer!r} (votes: {votes} against {support})",
    "robustrag.votes": "no passage is dropped: each is read alone and has one vote",
    "robustrag.voted": "answers {answer!r} (votes: {votes:.2f})",
    "robustrag.probabilities": "no passage is dropped: each is read alone and adds its probabilities",
    "robustrag.read": "P(I don't know) = {refusal:.2f}: read",
    "robustrag.left_out": "P(I don't know) = {refusal:.2f}: left out",
    "madam.agents": "no passage is dropped: an agent speaks for each",
    "madam.answers": "its agent answers {answer!r}",
    "reliabilityrag.consistent": "answers {answer!r}: in the largest set of {size} without contradiction",
    "reliabilityrag.contradicts": "answers {answer!r}: contradicts passage {passages} of the largest set without "
    "contradiction",
    "reliabilityrag.sampled": "in {consistent} of the consistent samples, of {samples} that contain it",
    "reliabilityrag.unsampled": "in no sample",
    # other baselines
    "rerank.kept": f"{PLACE}: relevance {{relevance:.4f}}",
    "rerank.past": f"{PAST}: relevance {{relevance:.4f}}",
    "perplexity.above": "perplexity {perplexity:.1f} is above {threshold:.1f}",
    "perplexity.within": "perplexity {perplexity:.1f} is within {threshold:.1f}",
    "discern.perturbed": "the model says that it is perturbed",
    "discern.unperturbed": "the model says that it is not perturbed",
    "astuterag.weighed": "no passage is dropped: the model weighs them against what it knows",
    "instructrag.explained": "no passage is dropped: the model explains which ones help",
    "paraphrase.rephrased": "no passage is dropped: the question is rephrased",
    # sources
    "sources.contradicted": "says {answer} (new sources: {own}) against {other} (known sources: {known})",
    "sources.agrees": "says {answer}, as known sources do ({others})",
    "sources.trusted": "says {answer}, and its source is trusted",
    "sources.one_origin": "one of {count} texts from one source that was never seen before",
    "sources.blocked": "its source is blocked",
    # results of tools
    "tool.passed": "contains no instructions to the model",
    "tool.hidden": "hides characters ({count})",
    "tool.split": "spreads a prompt injection over several texts",
    "tool.too_much": "is too large to screen",
    "tool.failed": "could not be screened",
    "tool.source": "comes from a blocked source",
    "tool.name": "has a name that the protocol does not allow",
    "tool.shadows": "has a name that looks like another tool's",
    "tool.unapproved": "is not approved in the lock file",
    "tool.changed": "has changed since it was approved",
    # memories
    "memory.kept": "contains nothing suspicious",
    "memory.rule": "sets rules for the agent, and its source is not trusted",
    "memory.order": "tells the agent what to do later, and its source is not known",
}  # fmt: skip
