"""Write the locked versions and hashes of what the image installs: `python tools/lock_image.py`.

pip resolves the requirements as it would in the image, for each processor, and reports the SHA-256 of every wheel. The
files name no index, so that a build takes the one that it is configured for and refuses what has another hash.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
PROCESSORS = ("x86_64", "aarch64")
SYSTEMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014", "manylinux_2_12", "manylinux_2_5")

Locked = dict[tuple[str, str], set[str]]
"""Hashes of wheels by name and version."""


def argument(name: str) -> str:
    """The default of an argument of the image."""
    found = re.search(rf"^ARG {name}=(\S+)", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit(f"deploy/Dockerfile has no argument {name}")
    return found[1]


def resolve(requirements: Iterable[str], processor: str) -> list[dict[str, Any]]:
    """What pip would install, as its report says."""
    python = argument("PYTHON").partition("-")[0]
    platforms = [part for system in SYSTEMS for part in ("--platform", f"{system}_{processor}")]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--target", folder, "--python-version", python, "--only-binary", ":all:", *platforms]
        command += ["--constraint", str(ROOT / "constraints.txt"), "--report", str(report), *requirements]
        subprocess.run(command, check=True, cwd=ROOT)
        installed: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["install"]
    return installed


def lock(requirements: Iterable[str]) -> Locked:
    """The wheels for all processors."""
    locked: Locked = {}
    for processor in PROCESSORS:
        for one in resolve(requirements, processor):
            hashes = one["download_info"].get("archive_info", {}).get("hashes", {})
            if hashes:  # all but this project
                key = one["metadata"]["name"].lower().replace("_", "-"), one["metadata"]["version"]
                locked.setdefault(key, set()).add(hashes["sha256"])
    return locked


def write(path: Path, locked: Locked) -> None:
    """Write a file that `pip install --require-hashes -r` reads."""
    lines = [f"# Written by {Path(__file__).name}; do not edit."]
    for (name, version), hashes in sorted(locked.items()):
        lines += [f"{name}=={version} \\", " \\\n".join(f"    --hash=sha256:{one}" for one in sorted(hashes))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def requirements(project: dict[str, Any]) -> list[str]:
    """What the project and the extras of the image require."""
    extras = argument("EXTRAS").split(",")
    return [*project["dependencies"], *(one for extra in extras for one in project["optional-dependencies"][extra])]


if __name__ == "__main__":
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    write(ROOT / "deploy" / "image.lock", lock(requirements(settings["project"])))
    write(ROOT / "deploy" / "build.lock", lock(settings["build-system"]["requires"]))
