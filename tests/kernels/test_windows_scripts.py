"""A sentence is a window of its own in every script that marks its end, and is cut out as it stands."""

from __future__ import annotations

import numpy as np
import pytest

from unpoison.defenses.guard.redaction import Judged, Window, suspicious_spans
from unpoison.kernels.windows import windows
from unpoison.passages import Passage
from unpoison.spans import without

PAIRS = {
    "latin": ("Le café ouvre à neuf heures.", "Die Hauptstadt von Frankreich ist Rom."),
    "cyrillic": ("Столица Франции это город Париж.", "Столица Франции это город Рим."),
    "greek": ("Η πρωτεύουσα της Γαλλίας είναι το Παρίσι.", "Η πρωτεύουσα της Γαλλίας είναι η Ρώμη."),
    "arabic": ("هل عاصمة فرنسا هي مدينة باريس؟", "عاصمة فرنسا هي مدينة روما"),
    "hebrew": ("עיר הבירה של צרפת היא פריז.", "עיר הבירה של צרפת היא רומא."),
    "hindi": ("फ्रांस की राजधानी पेरिस है।", "फ्रांस की राजधानी रोम है।"),
    "tamil": ("பிரான்சின் தலைநகரம் பாரிஸ் நகரம் ஆகும்.", "பிரான்சின் தலைநகரம் ரோம் நகரம் ஆகும்."),
    "amharic": ("የፈረንሳይ ዋና ከተማ ፓሪስ ናት።", "የፈረንሳይ ዋና ከተማ ሮም ናት።"),
    "chinese": ("法国的首都是巴黎。", "法国的首都是罗马。"),
    "japanese": ("フランスの首都はパリです。", "フランスの首都はローマです。"),
    "korean": ("프랑스의 수도는 바로 파리 입니다.", "프랑스의 수도는 바로 로마 입니다."),
    "georgian": ("საფრანგეთის დედაქალაქი არის ქალაქი პარიზი.", "საფრანგეთის დედაქალაქი არის ქალაქი რომი."),
}


@pytest.mark.parametrize("script", PAIRS)
@pytest.mark.parametrize("between", [" ", "\n"])
def test_the_second_sentence_is_cut_and_the_first_stays(script: str, between: str) -> None:
    first, second = PAIRS[script]
    passage = Passage(f"{first}{between}{second}")
    cut = windows("q", [passage.reading])
    start, end = int(cut.start[2]), int(cut.end[2])
    judged = Judged(np.array([0.9]), 0.5, {0: [Window(start, end, 0.9, "x")]})
    spans = suspicious_spans([passage], judged)[0]
    left = without(passage, spans).reading
    assert len(cut.owner) == 3  # the question, and two sentences
    assert left.strip(" .\u3002\u0964\u1362\n") == Passage(first).reading.strip(" .\u3002\u0964\u1362")


def test_chinese_without_spaces_is_one_word_each_character() -> None:
    cut = windows("法国的首都", ["法国的首都是巴黎。"])
    assert [cut.words[n] for n in cut.word[cut.part == 1]] == list("法国的首都是巴黎")
