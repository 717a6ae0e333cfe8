"""A process with limits of time and memory, for libraries that read hostile files.

A workbook of two kilobytes can describe a billion cells. What a library does with it is not known beforehand, so
each reply has a deadline and the process a bound. The deadline is in time of the processor: on a busy machine harmless
files wait.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from math import ceil
from pathlib import Path
from threading import Timer
from time import process_time
from typing import IO, Any, cast

from unpoison.errors import InputError, MissingExtraError
from unpoison.utils.files import Closing

__all__ = ["MAX_MEMORY", "MAX_REPLY", "MAX_SECONDS", "Confined"]

MAX_SECONDS = 60.0
"""Maximum time of the processor for a reply, where the system can limit it."""

PATIENCE = 5
"""Maximum time of a reply on the clock, in multiples of that."""

STOPPED = -24
"""Status of a process that the system ended at the limit of time (SIGXCPU)."""

MAX_MEMORY = 1_536 * 2**20
"""Maximum bytes that the process may need, where the system can limit them."""

MAX_REPLY = 256 * 2**20
"""Maximum bytes of a reply, as JSON."""

_START = "import sys; sys.path[:] = {path!r}; from unpoison.utils.confined import serve; serve{given!r}"


class Confined(Closing):
    """A process that answers one question after another; it is started for the first, and again after one that failed.

    Args:
        work: A function of a module: it gets what is asked and yields the replies, all of them as JSON has them.
        seconds: Maximum time of the processor for a reply.
        memory: Maximum bytes beyond those of the modules.

    Attributes:
        received: Bytes of all replies.
    """

    def __init__(
        self, work: Callable[[Any], Iterable[Any]], seconds: float = MAX_SECONDS, memory: int = MAX_MEMORY
    ) -> None:
        self._seconds, self._given = seconds, (f"{work.__module__}:{work.__name__}", seconds, memory)
        self._process: subprocess.Popen[bytes] | None = None
        self.received = 0

    def ask(self, asked: Any) -> Generator[Any, None, None]:
        """The replies; whoever stops before the last one ends the process.

        Raises:
            InputError: What the function raises, or a reply breaks a limit.
            MissingExtraError: What the function raises.
        """
        process = self._process or self._start()
        with suppress(OSError):
            stdin = cast("IO[bytes]", process.stdin)
            stdin.write(json.dumps(asked).encode() + b"\n")
            stdin.flush()
        ended = False
        try:
            while True:
                reply = self._reply(process)
                if isinstance(reply, dict):
                    ended = True
                    if "error" in reply:
                        raise (MissingExtraError if reply["missing"] else InputError)(reply["error"])
                    return
                yield reply[0]
        finally:
            if not ended:
                self.close()

    def _reply(self, process: subprocess.Popen[bytes]) -> Any:
        """The next line: a reply as a list of one, or an object at the end."""
        too_late = Timer(PATIENCE * self._seconds, process.kill)
        too_late.start()
        line = b""
        with suppress(OSError):
            line = cast("IO[bytes]", process.stdout).readline(MAX_REPLY)
        self.received += len(line)
        late = not too_late.is_alive()
        too_late.cancel()
        if not line.endswith(b"\n"):
            process.kill()
            late |= process.wait() == STOPPED
            raise InputError(f"reading it takes more than {self._seconds:g} seconds" if late else TOO_LARGE)
        return json.loads(line)

    def _start(self) -> subprocess.Popen[bytes]:
        code = _START.format(path=sys.path, given=self._given)
        self._process = subprocess.Popen(  # noqa: S603 (our own code)
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        return self._process

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            with suppress(OSError):
                self._process.communicate()
            self._process = None


TOO_LARGE = "reading it needs too much memory"


def serve(work: str, seconds: float, memory: int) -> None:
    """The loop of the process: a line of JSON with what is asked, and a line for each reply."""
    replies = sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints is no reply
    module, _, name = work.partition(":")
    function = getattr(import_module(module), name)
    _limit_memory(memory)
    for line in sys.stdin.buffer:
        for reply in _replies(function, json.loads(line), seconds):
            replies.write(json.dumps(reply).encode() + b"\n")
            replies.flush()


def _replies(function: Callable[[Any], Iterable[Any]], asked: Any, seconds: float) -> Iterator[Any]:
    try:
        _limit_time(seconds)
        for reply in function(asked):
            yield [reply]
            _limit_time(seconds)
        yield {}
    except (InputError, MissingExtraError) as error:
        yield {"error": str(error), "missing": isinstance(error, MissingExtraError)}
    except MemoryError:
        yield {"error": TOO_LARGE, "missing": False}


def _limit_time(seconds: float) -> None:
    """Limit the time of the processor from now on; Windows cannot."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a dump of hostile memory helps nobody
        most = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (ceil(process_time() + seconds), most))


def _limit_memory(most: int) -> None:
    """Limit the memory beyond what is in use; only Linux can count it."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + most, used + most))
