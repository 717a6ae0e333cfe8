"""`unpoison redteam --evidence` and `unpoison verify`: from a test to a checked pack, and the sentences on the way."""

from __future__ import annotations

import json
import zipfile

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

pytest.importorskip("pydantic")


@pytest.fixture
def keys(tmp_path):
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    private, public = tmp_path / "key.pem", tmp_path / "public.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "agent.yaml"
    file.write_text(
        "target: {agent: scripted, gate: screen}\nattacks: [textbook]\nplaces: page\nvariants: 1\nlimit: 1\n"
        "evidence: {tester: Ada, retest: 2027-05-01}\n"
    )
    return file


def test_a_test_becomes_a_pack_that_is_verified(run, config, keys, tmp_path):
    private, public = keys
    pack = tmp_path / "out.zip"
    done = run("redteam", config, "--evidence", pack, "--key", private)
    assert done.exit_code == 0
    assert "evidence: what is watched in production is not stated" in done.stderr
    assert f"wrote {pack}" in " ".join(done.stderr.split())
    with zipfile.ZipFile(pack) as archive:
        assert set(archive.namelist()) == {
            *("evidence.json", "configuration.json", "results.json", "results.csv", "report.html"),
            *("public.pem", "SHA256SUMS", "SHA256SUMS.sig"),
        }
        members = {name: archive.read(name) for name in archive.namelist()}
    assert json.loads(members["evidence.json"])["retest"] == "2027-05-01"
    checked = run("verify", pack, "--key", public)
    assert checked.exit_code == 0
    assert "valid, 8 files as they were signed" in checked.stdout
    assert "tester, as it states: Ada" in checked.stdout

    with zipfile.ZipFile(pack, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content.replace(b'"tester": "Ada"', b'"tester": "Eve"'))
    checked = run("verify", pack, "--key", public)
    assert checked.exit_code == 1
    assert "NOT VALID" in checked.stdout
    assert "Eve" not in checked.stdout
    assert "evidence.json: changed" in checked.stderr
    as_json = json.loads(run("verify", pack, "--json").stdout)
    assert as_json["valid"] is False
    assert as_json["problems"] == ["evidence.json: changed", "configuration.json: changed"]


def test_what_cannot_be_signed_is_said_before_anything_is_asked(run, config, keys, tmp_path, monkeypatch):
    monkeypatch.setattr("unpoison.bench.redteam.agent_run.run_agent_test", None)
    private, public = keys
    pack = tmp_path / "out.zip"
    for arguments, sentence in (
        (("--key", private), "give --evidence FILE.zip as well"),
        (("--evidence", tmp_path / "out.tar"), "name the file out.zip"),
        (("--evidence", pack, "--key", public), "no private key but a public key"),
        (("--evidence", pack, "--key", tmp_path / "none.pem"), "cannot be read"),
    ):
        done = run("redteam", config, *arguments)
        assert done.exit_code == 2
        assert sentence in " ".join(done.stderr.split())
    assert not pack.exists()


def test_an_unsigned_pack_is_not_valid_and_no_zip_is_a_sentence(run, config, tmp_path):
    pack = tmp_path / "out.zip"
    assert "which is not signed" in run("redteam", config, "--evidence", pack).stderr
    checked = run("verify", pack)
    assert checked.exit_code == 1
    assert "not signed" in checked.stderr
    pack.write_bytes(b"x")
    checked = run("verify", pack)
    assert checked.exit_code == 2
    assert "is no zip" in checked.stderr


def test_without_the_library_the_extra_is_named(run, config, keys, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cryptography", None)
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives.serialization", None)
    done = run("redteam", config, "--evidence", tmp_path / "out.zip", "--key", keys[0])
    assert done.exit_code == 2
    assert "pip install 'unpoison[evidence]'" in " ".join(done.stderr.split())
