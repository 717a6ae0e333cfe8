"""A SARIF log: what code hosts show of an alert, and where."""

import json

from unpoison import __version__
from unpoison.report.sarif import location, sarif_log, sarif_result


def test_a_result_names_its_rule_and_shows_its_first_location():
    span = location("https://wiki.example/a page?x=1#2", span=(3, 8), name="doc 1", message="hidden")
    results = [
        sarif_result("changed-in-near-copy", "note", "1 is 2", [location("red team.md", line=1)]),
        sarif_result("planted-document", "warning", "it repeats", [span, location("b.md")], rank=91.5),
    ]
    document = sarif_log(results, {"documents": 2})
    assert json.loads(json.dumps(document)) == document
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["name"] for rule in rules] == ["PlantedDocument", "ChangedInNearCopy"]
    assert run["tool"]["driver"]["semanticVersion"] == __version__
    first, second = run["results"]
    assert [rules[result["ruleIndex"]]["id"] for result in (first, second)] == [first["ruleId"], second["ruleId"]]
    assert first["locations"][0] == {
        "physicalLocation": {"artifactLocation": {"uri": "red%20team.md"}, "region": {"startLine": 1}}
    }
    assert "relatedLocations" not in first
    assert second["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "https://wiki.example/a%20page?x=1#2"},
                "region": {"charOffset": 3, "charLength": 5},
            },
            "logicalLocations": [{"name": "doc 1", "kind": "resource"}],
            "message": {"text": "hidden"},
        }
    ]
    assert second["relatedLocations"] == [{"id": 1, "physicalLocation": {"artifactLocation": {"uri": "b.md"}}}]
    assert second["rank"] == 91.5


def test_an_address_with_half_a_surrogate_pair_is_quoted():
    place = location("a\ud800#")
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "a?#"
