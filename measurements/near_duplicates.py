"""Measures what the near-duplicate search finds of changed images, and how many distinct ones it takes for one.

    python -m measurements.near_duplicates                   # the held-out set, some minutes
    python -m measurements.near_duplicates --set tuning      # the one that chose the thresholds
    python -m measurements.near_duplicates --folder IMAGES   # your own images, no two alike, and parts of each

Every image of the set is changed in each of nine ways (``measurements/planted_changes.py``). Found: the search over
originals and changed ones names the right original. Beside it the hashes alone, as they are and turned. CPU time of the
looks and of the search over the originals is given as a multiple of that of the hashes and their search, in one run.
"""

import argparse
import random
import time
from functools import partial
from pathlib import Path

import cv2

from darkroom.pipelines.selection.duplicates import Duplicate, Look, look_of, near_images, near_looks, perceptual_hash
from darkroom.pipelines.selection.duplicates.look_search import Compare
from darkroom.pipelines.selection.duplicates.same_image import ImageComparison, same_image
from measurements.planted_changes import CHANGES, held_out, of_folder, tuning

SEED = 20261123


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--set", choices=("held-out", "tuning"), default="held-out")
    parser.add_argument("--folder", type=Path, help="instead of a set: images of yours, and parts of each")
    parser.add_argument("--every", type=int, default=1, help="only every so-manieth image")
    parser.add_argument("--seed", type=int, help="another one for the changes and for what is drawn to be held out")
    parser.add_argument("--change", choices=CHANGES, action="append")
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    if arguments.folder:
        items = of_folder(arguments.folder)
    else:
        chosen = held_out if arguments.seed is None else partial(held_out, arguments.seed)
        items = chosen() if arguments.set == "held-out" else tuning()
    items = items[:: arguments.every]
    n, started = len(items), time.process_time()
    by_hash = near_images([perceptual_hash(item.image) for item in items], turned=True)
    seconds_hash, started = time.process_time() - started, time.process_time()
    looks = [look_of(item.image) for item in items]
    seconds_looks, started = time.process_time() - started, time.process_time()
    compared: dict[tuple[int, int], ImageComparison | None] = {}
    false = near_looks(looks, compare=_remembering(looks, compared, n))
    seconds_search = time.process_time() - started
    print(f"{n} distinct images: {len(false)} taken for another; by turned hash alone {len(by_hash)}")
    for one in false:
        print(f"   {items[one.index].kind} {one.index} for {items[one.of].kind} {one.of}")
    times = (seconds_hash + 1e-9, seconds_looks, seconds_search)
    per_thousand = [1000 * seconds / n for seconds in times]
    print("CPU seconds per 1,000: hashes {:.1f}, looks {:.1f}, their search {:.1f};".format(*per_thousand), end=" ")
    print(f"{(seconds_looks + seconds_search) / times[0]:.1f} times the hashes", flush=True)
    for name in arguments.change or CHANGES:
        chance = random.Random(SEED if arguments.seed is None else arguments.seed)
        changed = [look_of(CHANGES[name](item.image, chance)) for item in items]
        everything = [*looks, *changed]
        hashes = [look.hash for look in everything]
        compare = _remembering(everything, compared, n)
        found = [near_looks(everything, compare=compare), near_images(hashes), near_images(hashes, turned=True)]
        right = {one.index - n for one in found[0] if one.index == one.of + n}
        n_wrong = sum(one.index >= n for one in found[0]) - len(right)
        hashes_found = f"by hash {_right(found[1], n)}, turned {_right(found[2], n)}"
        print(f"{name}: {len(right)} of {n}, {n_wrong} taken for another; {hashes_found}")
        print(
            "   missed:", ", ".join(f"{item.kind} {at}" for at, item in enumerate(items) if at not in right) or "none"
        )
        smooth = {at for at, item in enumerate(items) if item.kind.startswith("smooth")}
        print(
            f"   of the {len(smooth)} smooth ones {len(smooth & right)}, of the others {len(right - smooth)}",
            flush=True,
        )


def _remembering(looks: list[Look], compared: dict[tuple[int, int], ImageComparison | None], n: int) -> Compare:
    """Compares the first ``n`` with one another only once."""

    def compare(row: int, of: int) -> ImageComparison | None:
        if max(row, of) >= n:
            return same_image(looks[row], looks[of])
        if (row, of) not in compared:
            compared[row, of] = same_image(looks[row], looks[of])
        return compared[row, of]

    return compare


def _right(found: list[Duplicate], n: int) -> int:
    return sum(one.index == one.of + n for one in found)


if __name__ == "__main__":
    main()
