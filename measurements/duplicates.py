"""Measures the search for duplicates against comparing all pairs, and how it grows.

    python -m measurements.duplicates           # about a minute
    python -m measurements.duplicates --largest 1000000
    python -m measurements.duplicates --looks 1000 10000 50000   # the search of images alone, of so many; minutes

CPU time of one process. The data is made here: random hashes, and questions made from few words and many templates; one
in ten is a changed copy of an earlier one. Brute force is vectorised over the same data and must find the same. Looks
are 96 features and a hash of chance, or an earlier one's with one bit in twelve flipped; nothing decodes an image, and
making them is in their time.
"""

import argparse
import platform
import random
import resource
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from darkroom.pipelines.selection.duplicates import (
    MAX_DISTANCE,
    Look,
    PerceptualHash,
    kept,
    near_images,
    near_looks,
    near_texts,
)
from darkroom.pipelines.selection.duplicates.local_features import Features
from darkroom.pipelines.selection.duplicates.perceptual import TURNS
from darkroom.pipelines.selection.duplicates.same_image import ImageComparison
from darkroom.pipelines.selection.duplicates.words import n_grams, words

R = TypeVar("R")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--largest", type=int, default=100_000)
    parser.add_argument("--looks", type=int, nargs="+")
    arguments = parser.parse_args()
    largest = arguments.largest
    print(f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}")
    if arguments.looks:
        for n in arguments.looks:
            measure_looks(n)
        return
    measure("images", hashes, near_images, brute_images, compared=10_000, largest=largest)
    measure("texts", questions, near_texts, brute_texts, compared=1_000, largest=largest)


def measure(name, make, find, brute, *, compared: int, largest: int) -> None:
    small = make(compared)
    (stays, slow), (found, quick) = timed(lambda: brute(small)), timed(lambda: find(small))
    if kept(compared, found) != stays:
        raise SystemExit(f"{name}: other ones stay than by comparing all pairs")
    print(f"{name}: {compared:>9,} by brute force {slow:8.2f} s, here {quick:8.2f} s: {slow / quick:.1f} times as fast")
    seconds = [timed(lambda n=n: find(make(n)))[1] - timed(lambda n=n: make(n))[1] for n in (largest // 10, largest)]
    print(
        f"{name}: {largest // 10:>9,} {seconds[0]:8.2f} s; {largest:,} {seconds[1]:8.2f} s:"
        f" {seconds[1] / seconds[0]:.1f} times as long"
    )


def measure_looks(n: int) -> None:
    looks, n_compared = MadeLooks(n), 0

    def compare(row: int, of: int) -> ImageComparison | None:
        nonlocal n_compared
        n_compared += 1
        return ImageComparison(1.0, 1.0, 1.0, 0.0) if looks.original(row) == looks.original(of) else None

    found, seconds = timed(lambda: near_looks(looks, compare=compare))
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(
        f"looks: {n:,} {1000 * seconds / n:.2f} ms each; {len(found) * 10 / n:.1%} of the copies found,"
        f" {n_compared / n:.2f} compared for each; at most {peak_mb:.0f} MB",
        flush=True,
    )


def timed(act: Callable[[], R]) -> tuple[R, float]:
    started = time.process_time()
    return act(), time.process_time() - started


def hashes(n: int) -> list[PerceptualHash]:
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 2**64, n, dtype=np.uint64)
    copies = rng.integers(0, n, n // 10)
    for _ in range(4):
        bits[copies] ^= np.uint64(1) << rng.integers(0, 64, n // 10, dtype=np.uint64)
    bits[: n // 10] = bits[copies] ^ np.uint64(5)
    return [PerceptualHash((int(own),)) for own in bits]


def brute_images(of: list[PerceptualHash]) -> list[int]:
    bits = np.array([own.bits for own in of], np.uint64)
    stays = np.zeros(0, np.int64)
    for n, own in enumerate(bits):
        if not (np.bitwise_count(bits[stays] ^ own) <= MAX_DISTANCE).any():
            stays = np.append(stays, n)
    return stays.tolist()


class MadeLooks(Sequence[Look]):
    """Every tenth is one of the first half, changed."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __len__(self) -> int:
        return self._n

    def original(self, at: int) -> int:
        return at // 20 * 10 if at % 10 == 9 else at

    def __getitem__(self, at: int) -> Look:  # type: ignore[override]  # no slices
        rng = np.random.default_rng(self.original(at))
        words = rng.integers(0, 2**64 - 1, 2 * 96 * 4 + len(TURNS), np.uint64)
        if self.original(at) != at:
            bits = np.unpackbits(words.view(np.uint8))
            words = np.packbits(bits ^ (np.random.default_rng(at).random(len(bits)) < 1 / 12)).view(np.uint64)
        plain, mirrored = (
            Features(np.zeros((96, 4), np.float32), own) for own in words[len(TURNS) :].reshape(2, 96, 4)
        )
        return Look(PerceptualHash(tuple(words[: len(TURNS)].tolist())), b"", (plain, mirrored))


def questions(n: int) -> list[str]:
    rng = random.Random(7)
    vocabulary = [f"w{chr(97 + k % 26)}{chr(97 + k // 26 % 26)}{chr(97 + k // 676)}" for k in range(2000)]
    made: list[str] = []
    for _ in range(n):
        text = rng.choices(vocabulary, k=rng.randint(6, 25))
        if made and rng.random() < 0.1:
            text = [*rng.choice(made).split(), "indeed"]
        made.append(" ".join(text))
    return made


def brute_texts(of: list[str]) -> list[int]:
    stays: list[int] = []
    grams = [frozenset(n_grams(words(text), 3)) for text in of]
    for n, own in enumerate(grams):
        if not any(len(own & grams[other]) >= 0.8 * len(own | grams[other]) for other in stays):
            stays.append(n)
    return stays


if __name__ == "__main__":
    main()
