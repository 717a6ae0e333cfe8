from __future__ import annotations

import json


def test_calibrate_prints_an_option_string_that_screen_takes(run, rows_file):
    result = run("guard", "calibrate", "--damage", 0.1, rows_file)
    assert result.exit_code == 0
    spec = result.stdout.strip()
    assert spec.startswith("guard:threshold=")
    assert "of 18 passages" in result.stderr
    assert run("screen", "-d", spec, rows_file).exit_code == 0


def test_calibrate_as_json(run, rows_file):
    document = json.loads(run("guard", "calibrate", "--damage", 0.1, "--json", rows_file).stdout)
    assert document["passages"] == 18
    assert document["dropped"] <= 1


def test_too_few_passages_are_no_ground_for_a_threshold(run, rows_file):
    result = run("guard", "calibrate", "--damage", 0.01, rows_file)
    assert result.exit_code == 2
    assert "too few" in result.stderr
