"""The evidence pack of `unpoison redteam --evidence`: checked before the test, written behind it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from unpoison.bench.redteam import AgentConfig, Config, Results, Secrets

__all__ = ["EvidencePack"]


@dataclass(frozen=True, slots=True)
class EvidencePack:
    """Where the evidence goes and who signs it: checked before a test that may take hours."""

    path: Path
    key: Ed25519PrivateKey | None
    config: Config | AgentConfig
    hashes: dict[str, str]
    undefended: dict[str, bool] | None

    @classmethod
    def of(cls, path: Path | None, key: Path | None, config: Config | AgentConfig) -> Self:
        """Read the key, and take the hashes of what the test will read.

        Raises:
            OptionError: A key and nothing to sign, a name that is no zip's, or a key that cannot sign.
            InputError, MissingExtraError: As for `read_private_key`, `read_undefended` and `hash_inputs`.
        """
        from unpoison.bench.redteam.evidence import hash_inputs, read_undefended
        from unpoison.errors import OptionError
        from unpoison.io.signing_keys import read_private_key

        if path is None:
            raise OptionError("--key signs an evidence pack; give --evidence FILE.zip as well")
        if path.suffix != ".zip":
            raise OptionError(f"--evidence writes a zip; name the file {path.stem}.zip")
        signer = None if key is None else read_private_key(key)
        before = read_undefended(config)
        return cls(path, signer, config, hash_inputs(config), before)

    def write(self, results: Results, secrets: Secrets) -> None:
        """Write the pack, and say what it leaves open."""
        from unpoison.bench.redteam.evidence import evidence_of, members_of
        from unpoison.cli.common import say
        from unpoison.io.signed_zip import write_pack

        evidence = evidence_of(results, self.config, self.hashes, self.undefended)
        write_pack(self.path, members_of(evidence, results, self.config, secrets), self.key)
        for gap in evidence.gaps:
            say(f"evidence: {gap}")
        say(f"wrote {self.path}" + ("" if self.key else ", which is not signed; --key signs it"))
