"""Static against dynamic: which methods there are, what is measured, and the report of it."""

from __future__ import annotations

import csv
import io
import json
import re
from base64 import b64encode
from hashlib import sha256

import pytest

from unpoison.bench.evaluation.adaptations import Method, methods_of
from unpoison.bench.evaluation.streams import ATTACKS, StreamStudy, run_study
from unpoison.bench.report import FORMATS, over_time
from unpoison.bench.report.over_time import static_dynamic_table, study_tables
from unpoison.errors import InputError, OptionError, UnknownNameError

HOSTILE = "</td><script>document.title='owned'</script><img src=x>"


@pytest.fixture(scope="module")
def study() -> StreamStudy:
    return run_study("timeline", methods_of(["vanilla", "radar"]), limit=4)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> StreamStudy:
    """Rows without poison whose every field is markup or a formula, at times that not all questions share."""
    rows = [
        {
            "id": f"{name}@{step}",
            "series": name,
            "time": f"={step}{HOSTILE}",
            "question": f"who leads {name}? {HOSTILE}",
            "correct_answers": [answer],
            "incorrect_answers": ["nobody"],
            "passages": [{"text": f"{answer} leads {name}. {HOSTILE}", "label": "clean"}],
        }
        for name, answers in (("a", ("Ada", "Bea")), ("b", ("Cleo",)))
        for step, answer in enumerate(answers)
    ]
    path = tmp_path_factory.mktemp("hostile") / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return run_study(str(path), {HOSTILE: Method("radar", "nothing"), "=1+1": Method("radar", "beliefs")})


def test_every_defense_is_adapted_in_every_way_and_only_radar_remembers():
    assert list(methods_of(["vanilla", "radar:mode=reference"])) == [
        *(f"vanilla, {way}" for way in ("static", "cumulative", "history")),
        *(f"radar:mode=reference, {way}" for way in ("static", "cumulative", "history", "dynamic")),
    ]
    with pytest.raises(UnknownNameError, match="did you mean 'radar'"):
        methods_of(["rdar"])
    with pytest.raises(OptionError, match="leave beliefs out"):
        methods_of(["radar:beliefs=memory"])


def test_every_method_meets_every_attack_at_every_step(study):
    assert list(study.results) == list(ATTACKS)
    assert study.moments == ("2021", "2022", "2023", "2024")
    for results in study.results.values():
        assert list(results) == list(study.methods)
        assert all(len(result.records) == study.steps == 16 for result in results.values())
    poisoned = study.results["poison, first"]
    assert poisoned["vanilla, static"].attack_success().value > poisoned["radar, dynamic"].attack_success().value
    stored = {name: sum(result.stored) for name, result in poisoned.items()}
    assert stored["radar, static"] == 0 < stored["radar, dynamic"] < stored["radar, cumulative"]
    assert not study.left_out


def test_two_studies_are_the_same_and_the_second_asks_nothing(study, tmp_path):
    calls = []
    methods = {name: study.methods[name] for name in ("vanilla, history", "radar, dynamic")}
    for _ in range(2):
        again = run_study(
            "timeline", methods, limit=4, replies=tmp_path / "replies.db", progress=lambda *args: calls.append(args)
        )
        assert all(again.results[attack][name] == study.results[attack][name] for attack in ATTACKS for name in methods)
    total = len(ATTACKS) * len(methods) * study.steps
    assert [done for done, _, _ in calls] == [*range(1, total + 1)] * 2
    assert calls[0][1:] == (total, "none: vanilla, history")


def test_attacks_without_a_text_are_left_out_and_told(hostile):
    assert list(hostile.results) == ["none"]
    assert hostile.left_out == tuple(
        f"published:attack={name}: 2 of 2 questions; the first: target 'a@0' has no texts, which the attack published "
        "requires; leave the target out or use another attack"
        for name in ("radar-incorrect-context", "pia")
    )
    assert hostile.moments == ("1", "2")


def test_what_cannot_be_measured_is_refused_before_anything_is_asked(tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(InputError):
        run_study(str(tmp_path / "empty.jsonl"), methods_of(["vanilla"]))
    with pytest.raises(OptionError, match="only radar with beliefs remembers"):
        run_study("timeline", {"vanilla": Method("vanilla", "beliefs")}, limit=1)


def test_static_stands_beside_dynamic(study):
    table = static_dynamic_table(study)
    assert table.columns[1:] == tuple(
        f"radar, {way}: {what} %" for way in ("static", "dynamic") for what in ("accuracy", "ASR")
    )
    accuracy = study.results["poison, first"]["radar, dynamic"].accuracy()
    row = next(row for row in table.rows if row[0] == "poison, first")
    assert row[3].startswith(f"{100 * accuracy.value:.0f} (")
    assert static_dynamic_table(run_study("timeline", methods_of(["vanilla"]), limit=1)) is None


def test_the_page_shows_every_number_and_picture_and_needs_nothing_else(study):
    page = over_time.page(study)
    for table in study_tables(study):
        values = [cell.partition(" [")[0] for row in table.rows for cell in row[1:]]
        assert all(f"<span>{value}</span>" in page for value in values)
    figures = list(over_time.step_figures(study))
    assert len(figures) == page.count('<svg class="chart"') == 2 * len(ATTACKS) - 1
    assert "radar, dynamic, 2024: " in page
    assert [s.name for s in next(over_time.step_figures(study, ["radar, dynamic"])).series] == ["radar, dynamic"]
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    assert f"default-src 'none'; style-src 'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'" in page
    assert not re.search(r"<script|<link|<img|\bsrc=|https?://|url\(|@import", page)
    assert set(re.findall(r'href="(.)', page)) == {"#"}


def test_of_many_methods_the_dynamic_one_is_drawn_and_the_rest_is_named():
    study = run_study("timeline", methods_of(["vanilla", "trustrag", "radar"]), limit=1)
    drawn = over_time.select_methods(study)
    assert len(drawn) == 8
    assert drawn[-1] == "radar, dynamic"
    assert "Not drawn: trustrag, cumulative; radar, cumulative." in over_time.page(study)


def test_hostile_text_is_never_markup_nor_a_formula(hostile):
    for text in (over_time.page(hostile), over_time.as_markdown(hostile)):
        assert "<script" not in text
        assert "<img" not in text
    assert "&lt;/td&gt;&lt;script&gt;" in over_time.page(hostile)
    cells = [cell for row in csv.reader(io.StringIO(over_time.as_csv(hostile))) for cell in row]
    assert "'=1+1" in cells
    assert not [cell for cell in cells if cell.startswith("=")]
    assert "2 of 2 questions; the first" in over_time.page(hostile)


def test_a_question_that_cannot_be_attacked_is_asked_under_no_attack_only(tmp_path):
    rows = [
        {
            "id": f"{name}@{step}",
            "series": name,
            "time": str(step),
            "question": f"who leads {name}?",
            "correct_answers": ["Ada"],
            "incorrect_answers": wrong,
            "passages": [{"text": f"Ada leads {name}.", "label": "clean"}],
        }
        for name, wrong in (("a", ["Bea"]), ("b", []))
        for step in range(2)
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    study = run_study(str(path), methods_of(["vanilla"]), attacks={"none": (None, None), "PIA": ("pia:repeat=2", 1)})
    asked = {
        name: {record.timeline for record in result["vanilla, static"].records}
        for name, result in study.results.items()
    }
    assert asked == {"none": {"a", "b"}, "PIA": {"a"}}
    (told,) = study.left_out
    assert told.startswith("pia:repeat=2: 1 of 2 questions; the first: target 'b@0'")


def test_numbers_for_other_programs(study, hostile):
    document = json.loads(over_time.as_json(study))
    assert (document["questions"], document["steps"], document["generator"]) == (4, 16, "extractive")
    one = next(one for one in document["results"] if (one["attack"], one["method"]) == ("none", "radar, dynamic"))
    result = study.results["none"]["radar, dynamic"]
    assert one["accuracy"]["value"] == result.accuracy().value
    assert [step["value"] for step in one["by_step"]["accuracy"]] == [result.accuracy(i).value for i in range(4)]
    rows = list(csv.DictReader(io.StringIO(over_time.as_csv(study))))
    assert len(rows) == len(ATTACKS) * len(study.methods) * (1 + 4)
    assert {row["step"] for row in rows} == {"all", *study.moments}
    assert all(row["bytes"] for row in rows if row["step"] == "all")
    json.loads(over_time.as_json(hostile))  # what is undefined is null, not NaN


def test_a_report_goes_by_its_suffix(study, tmp_path):
    for suffix in FORMATS:
        over_time.write_over_time(study, tmp_path / f"r{suffix}")
        assert "radar, dynamic" in (tmp_path / f"r{suffix}").read_text()
    with pytest.raises(OptionError, match=r"must end in \.html"):
        over_time.write_over_time(study, tmp_path / "r.pdf")
    with pytest.raises(OptionError, match="cannot be written"):
        over_time.write_over_time(study, tmp_path / "r.md" / "no-folder.md")
