"""Claims that a memory may not make: rules for the agent, and orders to remember something."""

from __future__ import annotations

import re
from typing import Literal

from unpoison.injections.redaction import parts_of, reading_of

__all__ = ["claim_of"]

Claim = Literal["memory.rule", "memory.order"]
"""A claim about the agent's permissions or duties; an order to remember something or to act on it from now on."""


_AGENT = r"(?:the|this|our|your|any|every|all) (?:[a-z]{1,12} )?(?:assistant|agent|chatbot|bot|llm|ai)s?"
_ALLOWED = (
    "allowed|permitted|authori[sz]ed|entitled|cleared|instructed|exempt|unrestricted|forbidden|obliged|not bound"
    "|no longer bound|in developer mode|in admin mode"
)
_GRANTS = "authori[sz]ed|approved|granted|consented|permitted|pre-?approved|pre-?authori[sz]ed|whitelisted|waived"
_WHO = "user|admin|administrator|owner|operator|developer|customer|company|security team|manager|user's consent"
_CHECKS = "confirmation|approval|permission|authori[sz]ation|consent|verification"
_SETTINGS = (
    "rules|instructions|guidelines|system prompt|safety (?:rules|guidelines|policy)|restrictions|permissions|guardrails"
)

_RULE = re.compile(
    rf"\b{_AGENT} (?:must|shall|should|has to|have to|needs to|need to|may|need not|never|always"
    rf"|(?:is|are)(?: now)? (?:{_ALLOWED}))\b"
    rf"|\byou are(?: now| hereby| also)? (?:{_ALLOWED})\b"
    r"|\byou (?:must|should|shall|may|can)(?: now)? (?:always|never)\b"
    rf"|\byou (?:no longer need|do not need|don't need|need no) (?:to ask|any |{_CHECKS})"
    rf"|\byou (?:now )?have (?:full |been )?(?:permission|authority|clearance|granted|unrestricted|admin)"
    rf"|\byour (?:new |old |previous |current |real |true |only )?(?:{_SETTINGS})\b"
    rf"|\bthe (?:{_WHO}) (?:has|have)(?: already| explicitly| previously){{0,2}} (?:{_GRANTS})\b"
    rf"|\b(?:no|without)(?: further| additional| prior| user| human)? (?:{_CHECKS})(?: is| are)?"
    r" (?:needed|required|necessary)"
    rf"|\b(?:without|do not|don't|never|skip|bypass)(?: asking| ask)?(?: for)?"
    rf"(?: further| the user's| user)? (?:{_CHECKS})\b"
    r"|\b(?:safety|security|content)(?: checks?| filters?| rules| restrictions| policies| policy| guardrails)"
    r" (?:are|is|have been|has been|were) (?:now )?(?:disabled|lifted|suspended|off|removed|waived|void)"
    r"|\b(?:du|sie) (?:darfst|dürfen|musst|müssen|sollst|sollen)(?: jetzt| ab sofort| künftig)?"
    r" (?:immer|nie|niemals|stets)\b"
    r"|\bder (?:assistent|agent|bot) (?:darf|muss|soll)\b|\bohne (?:rückfrage|bestätigung|genehmigung)\b"
    r"|\bder (?:nutzer|benutzer|administrator) hat [^.]{0,60}(?:genehmigt|erlaubt|freigegeben|autorisiert|zugestimmt)"
    r"|\b(?:tu|vous) (?:dois|devez|peux|pouvez) (?:toujours|maintenant)\b|\bl'(?:assistant|agent) (?:doit|peut)\b"
    r"|\bsans (?:demander|confirmation|autorisation)\b"
    r"|\bl'(?:utilisateur|administrateur) a [^.]{0,40}(?:autorisé|approuvé)"
    r"|\b(?:siempre debes|debes siempre|puedes siempre|nunca debes)\b|\bel (?:asistente|agente) (?:debe|puede)\b"
    r"|\bsin (?:pedir|confirmación|autorización)\b|\bel (?:usuario|administrador) ha [^.]{0,40}(?:autorizado|aprobado)"
)

_PLACE = r"(?:your |the |its |long-term |persistent |permanent ){0,3}(?:memory|memories|user profile|knowledge base)"
_ORDER = re.compile(
    r"(?:^|[.!?:;,\"'(>*#\]\u2013\u2014-] ?|\b(?:please|always|now|assistant|agent|bot|ai) )"
    r"(?:remember (?:that|this|the following|:|forever)|memori[sz]e|do not forget that|don't forget that)"
    rf"|\b(?:store|save|add|write|record|keep|commit|persist|put|insert|append)\b[^.!?]{{0,80}}?"
    rf" (?:in|to|into) {_PLACE}\b"
    rf"|\bupdate {_PLACE}\b|\bfrom now on\b|\bhenceforth\b|\bfrom this (?:point|moment) (?:on|forward)\b"
    r"|\b(?:in|for|across|during) (?:all |any |every |each |the )?(?:future|later|subsequent|coming)"
    r" (?:conversation|session|chat|interaction|request|task|run|answer|response)s?\b"
    r"|\b(?:when|whenever|every time|each time|next time|if) (?:the user|a user|users|someone|you are|anyone) "
    r"(?:asks?|asked|requests?|mentions?|wants?)\b"
    r"|\bgoing forward,? (?:always|never|you|the assistant|the agent)\b"
    r"|\bmerken? (?:dir|sie sich)\b|\bab (?:jetzt|sofort)\b|\bvon nun an\b|\bin (?:allen )?(?:künftigen|zukünftigen) "
    r"(?:gesprächen|sitzungen|antworten)\b|\bspeichere? (?:das|dies|folgendes)\b"
    r"|\b(?:souviens-toi|souvenez-vous|rappelle-toi|retiens que|retenez que|mémorise)|\bà partir de maintenant\b"
    r"|\bdésormais\b|\bdans (?:toutes )?(?:les )?(?:prochaines|futures) conversations\b"
    r"|(?:^|[.!?:;,\u00a1] ?)recuerda que\b|\bmemoriza\b|\ba partir de ahora\b|\bde ahora en adelante\b"
    r"|\ben (?:todas )?(?:las )?(?:futuras|próximas) conversaciones\b"
)


def claim_of(text: str) -> Claim | None:
    """Whether a text claims a rule for the agent or orders it to remember something; None for neither.

    Complexity: O(n) time for n characters.
    """
    words = [" ".join(reading_of(text[start:end]).casefold().split()) for start, end in parts_of(text)]
    words = [part.replace("\u2019", "'") for part in words]
    if any(_RULE.search(part) for part in words):
        return "memory.rule"
    return "memory.order" if any(_ORDER.search(part) for part in words) else None
