"""The filter of printed evidence, on programs that were written after it (docs/methods.md has the figures)."""

import contextlib
import io
from pathlib import Path

import numpy as np
import yaml

from darkroom.train.rl.judging.code_rules import measured_lines

CASES = yaml.safe_load(Path(__file__).with_name("printed_cases.yaml").read_text())


def kept(code):
    image = np.full((112, 140, 3), 90, np.uint8)
    image[28:84, 56:112] = (220, 20, 20)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {"image": image, "np": np})
    assert printed.getvalue().strip(), code
    return bool(measured_lines(code, printed.getvalue()))


def test_most_claims_are_dropped_and_most_measurements_stay():
    """What is lost: claims in words that no literal has as they are, measurements told in the code's own words."""
    claims, measurements = ([kept(code) for code in CASES[kind]] for kind in ("claims", "measurements"))
    assert (claims.count(False), len(claims)) == (15, 20)
    assert (measurements.count(True), len(measurements)) == (18, 20)
