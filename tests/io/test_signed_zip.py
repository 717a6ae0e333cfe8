"""A signed zip: whoever changes a byte, a name or the key is found out, and a hostile zip costs nothing."""

from __future__ import annotations

import io
import stat
import struct
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from unpoison.errors import InputError, OptionError
from unpoison.io import signed_zip
from unpoison.io.signed_zip import pack, verify, write_pack
from unpoison.io.signing_keys import read_private_key, read_public_key

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))
MEMBERS = {"evidence.json": b'{"tester": "Ada"}\n', "results.csv": b"attack,asr\npoisonedrag,0.5\n"}
NAMES = ("evidence.json", "results.csv", "public.pem", "SHA256SUMS", "SHA256SUMS.sig")


def zipped(members: Mapping[str, bytes]) -> bytes:
    """Packed by somebody else, whose checksums fit."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def unzipped(raw: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "out.zip"


def test_what_was_signed_is_valid_and_equal_contents_are_equal_bytes(file: Path) -> None:
    write_pack(file, MEMBERS, KEY)
    assert file.read_bytes() == pack(MEMBERS, KEY)
    assert file.stat().st_mode & 0o777 == 0o600
    assert not list(file.parent.glob("*.part"))
    found = verify(file, KEY.public_key())
    assert found.valid
    assert found.notes == ()
    assert {name: found.members[name] for name in MEMBERS} == MEMBERS
    assert set(found.members) == set(NAMES)


def test_without_a_key_it_is_said_that_the_key_may_be_anybodys(file: Path) -> None:
    write_pack(file, MEMBERS, OTHER)
    found = verify(file)
    assert found.valid
    assert "--key" in found.notes[0]
    stranger = verify(file, KEY.public_key())
    assert not stranger.valid
    assert stranger.members == {}
    assert "signed by another key" in stranger.problems[0]
    assert stranger.signer == found.signer


@pytest.mark.parametrize("given", [True, False], ids=["key", "no key"])
@pytest.mark.parametrize("name", NAMES)
def test_one_byte_of_any_member_is_named(file: Path, name: str, given: bool) -> None:
    members = unzipped(pack(MEMBERS, KEY))
    content = members[name]
    for place in {0, len(content) // 2, len(content) - 1}:
        changed = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        file.write_bytes(zipped({**members, name: changed}))
        found = verify(file, KEY.public_key() if given else None)
        assert not found.valid
        assert any(name in problem for problem in found.problems), found.problems
        assert name not in found.members


def test_no_byte_of_the_file_can_change_unnoticed(file: Path) -> None:
    raw = pack({"a": b"content"}, KEY)
    for place in range(0, len(raw), 5):
        file.write_bytes(raw[:place] + bytes([raw[place] ^ 0x20]) + raw[place + 1 :])
        try:
            found = verify(file, KEY.public_key())
        except InputError:
            continue
        assert not found.valid or "packed again" in found.notes[0]


def test_bytes_that_do_not_fit_the_zips_own_checksum_are_a_changed_member(file: Path) -> None:
    raw = pack(MEMBERS, KEY)
    file.write_bytes(raw.replace(b"poisonedrag,0.5", b"poisonedrag,0.1"))
    found = verify(file, KEY.public_key())
    assert [problem for problem in found.problems if problem.startswith("results.csv: changed")]
    assert not found.valid


def test_what_is_missing_and_what_was_added_is_named(file: Path) -> None:
    members = unzipped(pack(MEMBERS, KEY))
    file.write_bytes(zipped({**{n: c for n, c in members.items() if n != "results.csv"}, "more.txt": b"x"}))
    found = verify(file, KEY.public_key())
    assert set(found.problems) == {"results.csv: missing", "more.txt: added, no sum names it"}


def test_sums_made_anew_do_not_carry_the_signature(file: Path) -> None:
    members = unzipped(pack(MEMBERS, KEY))
    forged = unzipped(pack({**MEMBERS, "results.csv": b"attack,asr\npoisonedrag,0.0\n"}, OTHER))
    file.write_bytes(zipped({**forged, "public.pem": members["public.pem"]}))
    assert any("signature does not fit" in problem for problem in verify(file, KEY.public_key()).problems)


def test_nobody_has_signed(file: Path) -> None:
    write_pack(file, MEMBERS)
    found = verify(file)
    assert not found.valid
    assert found.signer is None
    assert found.problems[0].startswith("not signed")
    assert found.members == {}


def test_a_zip_packed_again_is_said_to_be(file: Path) -> None:
    raw = pack(MEMBERS, KEY)
    for again in (zipped(unzipped(raw)), b"MZ something before it" + raw, raw[:-2] + struct.pack("<H", 4) + b"more"):
        file.write_bytes(again)
        found = verify(file, KEY.public_key())
        assert found.valid
        assert "packed again or holds bytes beside" in found.notes[0]


@pytest.mark.parametrize(
    "name", ["../evidence.json", "/etc/passwd", "folder/a", "a\\b", "C:a", "folder/", ".hidden", "a\nb", "é", "a" * 101]
)
def test_a_path_is_no_name_of_a_member(file: Path, name: str) -> None:
    file.write_bytes(zipped({name: b"x"}))
    with pytest.raises(InputError, match="folder or outside"):
        verify(file)
    with pytest.raises(InputError, match="cannot be named"):
        pack({name: b"x"})


@pytest.mark.parametrize("twin", ["evidence.json", "EVIDENCE.json"])
def test_two_members_of_a_name_are_refused(file: Path, twin: str) -> None:
    buffer = io.BytesIO(pack(MEMBERS, KEY))
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr(twin, b"another")
    file.write_bytes(buffer.getvalue())
    with pytest.raises(InputError, match="is there twice"):
        verify(file)


def test_links_are_refused(file: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("evidence.json")
        info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    file.write_bytes(buffer.getvalue())
    with pytest.raises(InputError, match="link"):
        verify(file)


def test_a_bomb_is_not_unpacked(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signed_zip, "MAX_BYTES", 100_000)
    file.write_bytes(zipped({"a": bytes(60_000), "b": bytes(60_000)}))
    with pytest.raises(InputError, match="unpacks to more"):
        verify(file)
    file.write_bytes(zipped({f"member-{i}": b"" for i in range(101)}))
    with pytest.raises(InputError, match="more than 100 members"):
        verify(file)
    file.write_bytes(bytes(100_001))
    with pytest.raises(InputError, match="larger than"):
        verify(file)
    with pytest.raises(InputError, match="at most"):
        pack({"a": bytes(100_000)})


@pytest.mark.parametrize("content", [b"", b"PK", b"no zip at all", bytes(5000)])
def test_what_is_no_zip_is_a_sentence(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(InputError, match="is no zip that can be read"):
        verify(file)
    file.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        verify(file)


def private_pem(key: object, passphrase: bytes | None = None) -> bytes:
    hidden = NoEncryption() if passphrase is None else BestAvailableEncryption(passphrase)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden)


def test_keys_are_read_and_wrong_ones_are_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    public = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    file.write_bytes(private_pem(KEY))
    assert read_private_key(file).sign(b"x") == KEY.sign(b"x")
    with pytest.raises(OptionError, match="no public key but a private key; give the public one"):
        read_public_key(file)
    file.write_bytes(public)
    assert read_public_key(file) == KEY.public_key()
    with pytest.raises(OptionError, match="no private key but a public key; make one: openssl genpkey"):
        read_private_key(file)
    file.write_bytes(private_pem(KEY, b"secret"))
    with pytest.raises(OptionError, match="behind a passphrase"):
        read_private_key(file)
    big = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    file.write_bytes(private_pem(big))
    with pytest.raises(OptionError, match="another kind than Ed25519"):
        read_private_key(file)
    file.write_bytes(big.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(OptionError, match="another kind than Ed25519"):
        read_public_key(file)
    file.write_bytes(b"\xff" * 70_000)
    with pytest.raises(InputError, match="larger than"):
        read_private_key(file)
    file.write_bytes(b"nonsense")
    for read in (read_private_key, read_public_key):
        with pytest.raises(OptionError, match="holds no p"):
            read(file)
