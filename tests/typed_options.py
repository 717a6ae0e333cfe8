"""Calls that mypy must refuse: where it does not, the comment beside it is one too many, and `make types` fails."""

from __future__ import annotations

from unpoison import Grada, Guard, Limits, Radar, RagDefender, TrustRag, Vanilla
from unpoison.screener.screener import Screener


def refused() -> None:
    Guard(thresold=1)  # type: ignore[call-arg]
    Guard(damage="0.01")  # type: ignore[arg-type]
    Guard(prompt_injection="cut")  # type: ignore[arg-type]
    Grada(prompt_injection="cut")  # type: ignore[arg-type]
    Grada(kep=1)  # type: ignore[call-arg]
    RagDefender(limits=3)  # type: ignore[arg-type]
    TrustRag(trust_embedings=False)  # type: ignore[call-arg]
    Radar(generator=3)  # type: ignore[arg-type]
    Vanilla(learn="yes")  # type: ignore[arg-type]
    Vanilla().with_shell(sorces=None)  # type: ignore[call-arg]
    Screener(Vanilla(), injection="drop")  # type: ignore[call-arg]
    Guard().sources = None  # type: ignore[misc]
    Guard().limits = Limits()  # type: ignore[misc]


def accepted() -> None:
    Guard(damage=0.01, generator="extractive", sources="policy.yaml", prompt_injection="flag", learn=True)
    Vanilla(2, limits=Limits(), trust_embeddings=False)
    Screener(Vanilla(), prompt_injection="drop", sources={"blocked": ["evil.example"]}, limits=Limits(retries=0))
