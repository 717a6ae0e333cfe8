"""A SARIF log: what code hosts show of an alert, and where."""

import json

from unpoison.report.sarif import Location, Result, SarifRule, sarif_log

RULES = [
    SarifRule("planted-document", "Planted.", "It is planted.", ("security",), "warning"),
    SarifRule("gate", "A", "B"),
]


def test_a_result_names_its_rule_and_shows_its_first_location():
    span = Location("https://wiki.example/a page?x=1#2", span=(3, 8), name="doc 1", message="hidden")
    results = [
        Result("gate", "error", "asr is 9 %", [Location("red team.yaml", line=1)], {"unpoison/v1": "abc"}),
        Result("planted-document", "warning", "it repeats", [span, Location("b.md")], rank=91.5, properties={"p": 1}),
    ]
    document = sarif_log(results, RULES, "1.2.3", {"documents": 2})
    assert json.loads(json.dumps(document)) == document
    (run,) = document["runs"]
    assert [rule["name"] for rule in run["tool"]["driver"]["rules"]] == ["PlantedDocument", "Gate"]
    assert [rule.get("defaultConfiguration") for rule in run["tool"]["driver"]["rules"]] == [{"level": "warning"}, None]
    assert run["tool"]["driver"]["semanticVersion"] == "1.2.3"
    assert run["properties"] == {"documents": 2}
    first, second = run["results"]
    assert (first["ruleIndex"], first["level"], first["partialFingerprints"]) == (1, "error", {"unpoison/v1": "abc"})
    assert first["locations"][0] == {
        "physicalLocation": {"artifactLocation": {"uri": "red%20team.yaml"}, "region": {"startLine": 1}}
    }
    assert not {"rank", "relatedLocations", "properties"} & first.keys()
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
    assert (second["rank"], second["properties"]) == (91.5, {"p": 1})


def test_an_address_with_half_a_surrogate_pair_is_quoted():
    (run,) = sarif_log([Result("gate", "note", "", [Location("a\ud800#")])], RULES, "1.2.3")["runs"]
    address = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert address == "a?#"
