"""The process behind ``process.py``, run as a program: one JSON object per line in, one out, each by a fork of its own.

in: {"given": "2\\sqrt{3}", "expected": "\\sqrt{12}"}    out: {"same": true, "values": ["3.46…", "3.46…"], "fault": ""}
"""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import sys
import warnings
from typing import Any

MEMORY_BYTES = 2 << 30
N_DIGITS = 25
AGREEMENT = 1e-14


def main(cpu_seconds: float) -> None:
    """Answers until its input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that asks
    logging.disable(logging.CRITICAL)  # math-verify warns that its own time limit is off: ours is below
    warnings.simplefilter("ignore")
    _compare("x+1", "x+2")  # the grammar's tables are built once, before the forks
    for line in sys.stdin.buffer:
        child = os.fork()
        if not child:
            _answer(line, cpu_seconds)
        _, status = os.waitpid(child, 0)
        if status:
            ended = -os.waitstatus_to_exitcode(status)
            why = "took too long" if ended == signal.SIGPROF else f"ended with {ended}"
            _write({"same": False, "values": [None, None], "fault": f"the comparison {why}"})


def _answer(line: bytes, cpu_seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)  # its signal ends a process, inside any operation
    question = json.loads(line)
    try:
        answer = _compare(question["given"], question["expected"])
    except Exception as fault:  # noqa: BLE001  # of a library that reads anything: told to the asker
        answer = {"same": False, "values": [None, None], "fault": f"{type(fault).__name__}: {fault}"[:300]}
    _write(answer)
    os._exit(0)


def _compare(given: str, expected: str) -> dict[str, Any]:
    from math_verify import verify

    left, right = _parsed(given), _parsed(expected)
    if not left or not right:
        return {"same": False, "values": [None, None], "fault": "no expression"}
    same = verify(right, left, float_rounding=15, strict=True, timeout_seconds=None) and _agree(left[0], right[0])
    return {"same": same, "values": [_value(left[0]), _value(right[0])], "fault": ""}


def _agree(left: Any, right: Any) -> bool:
    """Small constants too: math-verify rounds to a number of decimals, for which 10^-40 is 10^-41."""
    if not (getattr(left, "is_number", False) and getattr(right, "is_number", False)):
        return True
    one, other = left.evalf(N_DIGITS), right.evalf(N_DIGITS)
    return bool(abs(one - other) <= AGREEMENT * max(abs(one), abs(other)))


def _parsed(tex: str) -> list[Any]:
    from math_verify import LatexExtractionConfig, parse

    found: list[Any] = parse(
        f"${tex}$",
        [LatexExtractionConfig()],
        fallback_mode="no_fallback",
        extraction_mode="first_match",
        parsing_timeout=None,
    )
    return found


def _value(expression: Any) -> str | None:
    if not getattr(expression, "is_number", False) or expression.is_real is not True:
        return None
    return str(expression.evalf(N_DIGITS))


def _write(answer: dict[str, Any]) -> None:
    os.write(1, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main(float(sys.argv[1]))
