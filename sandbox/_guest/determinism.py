"""Everything that is drawn by chance follows from the session's seed: the same code then observes the same.

Covered: random, numpy (also a generator without a seed), OpenCV, os.urandom and with it uuid4 and secrets, the names of
temporary files. Not covered: the clock, and `random.Random()` or `numpy.random.RandomState()` without a seed.

Memory addresses in what the code printed differ from run to run: `<… object at 0x7f3a5c0d1e50>` becomes
`<… object at 0x7f0000000010>`. The first address of a session is 10, the next 20, and so on (hexadecimal), the same one
always the same.
"""

import os
import random
import re
import tempfile
from typing import Any

import cv2
import numpy as np


def seed_everything(seed: int) -> None:
    """Any integer; the libraries that take fewer bits get its lowest."""
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)
    cv2.setRNGSeed(seed & 0x7FFFFFFF)
    _seed_new_generators(seed)
    os.urandom = random.Random(f"bytes {seed}").randbytes
    setattr(random, "_urandom", os.urandom)  # noqa: B010  # SystemRandom's own name for it
    names: Any = tempfile._RandomNameSequence()  # type: ignore[attr-defined]  # its own generator takes kernel entropy
    names._rng, names._rng_pid = random.Random(f"names {seed}"), os.getpid()
    setattr(tempfile, "_name_sequence", names)  # noqa: B010


def _seed_new_generators(seed: int) -> None:
    make_generator, streams = np.random.default_rng, np.random.SeedSequence(seed & 0xFFFFFFFF)

    def default_rng(seed: Any = None) -> np.random.Generator:
        return make_generator(streams.spawn(1)[0] if seed is None else seed)

    np.random.default_rng = default_rng


_ADDRESS = re.compile(r"(?<=\bat )0x[0-9a-fA-F]{8,16}\b")
_FIRST, _STEP = 0x7F0000000000, 0x10


class Addresses:
    """Remembers, for one session, which address got which number."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def settle(self, text: str) -> str:
        return _ADDRESS.sub(self._settled, text) if "at 0x" in text else text

    def _settled(self, match: re.Match[str]) -> str:
        number = self._numbers.setdefault(int(match[0], 16), len(self._numbers) + 1)
        return hex(_FIRST + _STEP * number)
