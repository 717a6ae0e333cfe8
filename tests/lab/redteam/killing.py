"""Run a test again and again, kill it at random moments, clean up, and look at the index each time.

`python killing.py FOLDER CONFIG URL TIMES` prints one JSON object. A child is forked for each run, for starting Python
anew would take longer than the run.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import urllib.request
from pathlib import Path

from unpoison_lab.redteam.campaign import run_test
from unpoison_lab.redteam.config import Config
from unpoison_lab.redteam.http_client import Hosts
from unpoison_lab.redteam.planter import clean


def index(url: str) -> str:
    with urllib.request.urlopen(f"{url}/dump", timeout=30) as response:  # noqa: S310  our own server
        return json.load(response)["dump"]


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def forked(work: object) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()  # type: ignore[operator]
            os._exit(0)
        except BaseException as error:
            print(type(error).__name__, error, file=sys.stderr)
            os._exit(1)
    return child


def main() -> None:
    folder, config_path, url, times = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    numbers = random.Random(14)
    config, before = Config.load(config_path), index(url)

    def run(journal: Path) -> None:
        run_test(config, journal, hosts=Hosts())

    def cleaned(journal: Path) -> None:
        found = clean(journal, hosts=Hosts())
        (folder / "cleaned.json").write_text(json.dumps([found.removed, list(found.remaining), list(found.damaged)]))

    os.waitpid(forked(lambda: run(folder / "whole.jsonl")), 0)
    whole = (folder / "whole.jsonl").stat().st_size
    summary = {"same": index(url) == before, "kills": []}
    for number in range(times):
        journal = folder / f"killed-{number}.jsonl"
        child = forked(lambda journal=journal: run(journal))
        moment = numbers.uniform(0.0, 0.9) * whole  # by what is written down, for a machine may stand still
        running = (os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        while size(journal) < moment and os.waitid(*running) is None:
            time.sleep(0.001)
        time.sleep(numbers.uniform(0.0, 0.005))  # and anywhere between two lines
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        dirty = index(url) != before
        status = 0
        if journal.exists():
            _, status = os.waitpid(forked(lambda journal=journal: cleaned(journal)), 0)
        found = json.loads((folder / "cleaned.json").read_text()) if (folder / "cleaned.json").exists() else None
        summary["kills"].append({"dirty": dirty, "same": index(url) == before, "status": status, "cleaned": found})
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
