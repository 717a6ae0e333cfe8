"""Runs schemathesis against `unpoison serve`: python tools/conformance.py PROGRAM.

PROGRAM is schemathesis in an environment of its own, whose packages are not those of the service.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from unpoison.serve.server import listen

UNDESCRIBED = "positive_data_acceptance"
"""Not checked: that vectors have one length, and that a defense of this name runs, is more than a schema can say."""


def main(program: str) -> int:
    """The exit status of schemathesis."""
    with listen("127.0.0.1", 0) as free:
        port = str(free.getsockname()[1])
    service = subprocess.Popen([sys.executable, "-m", "unpoison", "serve", "-g", "extractive", "--port", port])
    schema = f"http://127.0.0.1:{port}/openapi.json"
    options = ["--wait-for-schema", "60", "--exclude-checks", UNDESCRIBED, "--max-examples", "30", "--seed", "1"]
    try:
        with TemporaryDirectory() as folder:
            command = [str(Path(program).absolute()), "run", schema, *options, "--continue-on-failure", "--no-color"]
            return subprocess.run(command, cwd=folder, check=False).returncode
    finally:
        service.terminate()
        service.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
