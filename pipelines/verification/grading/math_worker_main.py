"""The process behind ``math_worker.py``, run as a program: a JSON object per line in, one out, each by its own fork.

in: {"given": "2\\sqrt{3}", "expected": "\\sqrt{12}"}    out: {"same": true, "values": ["3.46…", "3.46…"], "error": ""}
"""

import gc
import json
import logging
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, cast

MEMORY_BYTES = 2 << 30
MAX_CALLS = 1_000_000
"""Python functions that one comparison may call, about a second's worth: the same on every machine (half of the
demo's take less than 31,000, none over 310,000). CPU time only ends a single operation that never returns to Python."""
N_DIGITS = 25
AGREEMENT = 1e-14
WARM_UP = json.loads(Path(__file__).with_name("warm_up.json").read_text(encoding="utf-8"))
"""Compared before the forks, so that tables of the grammar and caches that a first use fills are filled once: then a
comparison takes about half of the time."""


def main(cpu_seconds: float) -> None:
    """Answers until its input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that asks
    logging.disable(logging.CRITICAL)  # math-verify warns that its own time limit is off: ours is below
    warnings.simplefilter("ignore")
    for answer, expected in WARM_UP:
        _compare(answer, expected)
    gc.freeze()  # a fork that looks through its parent's memory for garbage copies it
    for line in sys.stdin.buffer:
        if not (child := os.fork()):
            _answer(line, cpu_seconds)
        _, status = os.waitpid(child, 0)
        if status:
            ended = -os.waitstatus_to_exitcode(status)
            why = "took too long" if ended == signal.SIGPROF else f"ended with {ended}"
            _write(_failed(f"the comparison {why}"))


def _answer(line: bytes, cpu_seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)  # its signal ends a process, inside any operation
    question = json.loads(line)
    sys.setprofile(_bounded())
    try:
        answer = _compare(question["given"], question["expected"])
    except Exception as error:  # noqa: BLE001  # of a library that reads anything: told to the asker
        answer = _failed(f"{type(error).__name__}: {error}"[:300])
    sys.setprofile(None)
    _write(answer)
    os._exit(0)


def _bounded() -> Callable[[FrameType, str, Any], None]:
    """Ends the process, with an answer, at the call after the last allowed: an error could be caught on its way."""
    n_left = MAX_CALLS

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal n_left
        if event == "call":
            n_left -= 1
            if n_left < 0:
                sys.setprofile(None)
                _write(_failed(f"it takes more than {MAX_CALLS} steps"))
                os._exit(0)

    return count


def _compare(answer: str, expected: str) -> dict[str, Any]:
    from math_verify import verify

    expression, expected_expression = _parsed(answer), _parsed(expected)
    if not expression or not expected_expression:
        return _failed("no expression")
    same = verify(expected_expression, expression, float_rounding=15, strict=True, timeout_seconds=None)
    same = same and _agree(expression[0], expected_expression[0])
    return {"same": same, "values": [_value(expression[0]), _value(expected_expression[0])], "error": ""}


def _failed(error: str) -> dict[str, Any]:
    return {"same": False, "values": [None, None], "error": error}


def _agree(expression: Any, expected: Any) -> bool:
    """Small constants too: math-verify rounds to a number of decimals, for which 10^-40 is 10^-41."""
    if not (getattr(expression, "is_number", False) and getattr(expected, "is_number", False)):
        return True
    number, expected_number = expression.evalf(N_DIGITS), expected.evalf(N_DIGITS)
    return bool(abs(number - expected_number) <= AGREEMENT * max(abs(number), abs(expected_number)))


def _parsed(tex: str) -> list[Any]:
    from math_verify import LatexExtractionConfig, parse

    modes = {"fallback_mode": "no_fallback", "extraction_mode": "first_match", "parsing_timeout": None}
    return cast(list[Any], parse(f"${tex}$", [LatexExtractionConfig()], **modes))


def _value(expression: Any) -> str | None:
    if not getattr(expression, "is_number", False) or expression.is_real is not True:
        return None
    return str(expression.evalf(N_DIGITS))


def _write(answer: dict[str, Any]) -> None:
    os.write(1, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main(float(sys.argv[1]))
