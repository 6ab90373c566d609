"""Honest answers that the graders refuse and wrong ones that they accept, on pairs of prediction and answer.

    python -m measurements.graders [PATTERN]          # of tests/pipelines/verification/grading/pairs, "*.txt"

One line per kind, or section of a file, and half: ``tuned`` was looked at while rules were written, ``held_out`` only
counted.
"""

import sys
from collections import Counter

from darkroom.pipelines.verification.grading import grade
from tests.pipelines.verification.grading.pairs import pairs


def main(pattern: str) -> None:
    counts: Counter[tuple[str, str, bool, bool]] = Counter()
    for pair in pairs(pattern):
        is_right = grade(pair.prediction, pair.sample, pair.grader).right
        for kind in (pair.section or pair.grader.kind, "all"):
            counts[pair.half, kind, pair.is_same, is_right] += 1
    print("| half | kind | false rejects | false accepts |\n| --- | --- | --- | --- |")
    for half, kind in sorted({(half, kind) for half, kind, _, _ in counts}):
        rejects, accepts = counts[half, kind, True, False], counts[half, kind, False, True]
        n_same, n_other = rejects + counts[half, kind, True, True], accepts + counts[half, kind, False, False]
        print(f"| {half} | {kind} | {_rate(rejects, n_same)} | {_rate(accepts, n_other)} |")


def _rate(n: int, n_all: int) -> str:
    return f"{n} of {n_all} ({100 * n / n_all:.1f} %)" if n_all else "none"


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "*.txt")
