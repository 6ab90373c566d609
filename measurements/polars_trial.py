"""Compare the searches over all rows that are not in polars with the same in polars, each in a process of its own.

    python -m measurements.polars_trial --rows 1000000

Both answers of a task must be equal. Result and decision: docs/decontamination.md.
"""

import argparse
import json
import pickle
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from darkroom.pipelines.selection.duplicates.key_index import KeyIndex, mixed
from darkroom.pipelines.selection.duplicates.local_features import SAME_PLACE, SIGNATURE_WORDS, PartIndex
from darkroom.pipelines.selection.duplicates.text_bands import TextBands
from darkroom.pipelines.selection.duplicates.texts import near_in
from darkroom.pipelines.storage.row_files import KeyedSpill

N_BANDS = 25
KEYS_OF_IMAGE = 1536
IMAGES_AT_ONCE = 128
LOOK_UPS_AT_ONCE = 1_000
Answer = Any


class Texts(TextBands):
    """Keys of texts; one text in ``repeated`` repeats an earlier one."""

    def __init__(self, n: int, repeated: int) -> None:
        numbers = np.arange(n)
        self.sources = np.where(numbers % repeated == repeated - 1, numbers // repeated, numbers).astype(np.uint64)
        self.has_words, self.n_bands = np.ones(n, np.bool_), N_BANDS

    def __len__(self) -> int:
        return len(self.sources)

    def grams(self, index: int) -> frozenset[Any]:
        return frozenset([int(self.sources[index])])

    def band(self, number: int) -> Any:
        return mixed(self.sources, np.full(1, number, np.uint64))


def near_texts(n: int, folder: Path) -> Answer:
    return [(twin.index, twin.of) for twin in near_in(Texts(n, 50))]


def near_texts_doubled(n: int, folder: Path) -> Answer:
    return [(twin.index, twin.of) for twin in near_in(Texts(n, 2))]


def owners(n: int, folder: Path) -> Answer:
    return Texts(n, 50).owners_that_meet(np.arange(n) // 3).tolist()


def _image_keys(images: range) -> Any:
    """One image in a hundred repeats an earlier one."""
    numbers = np.array(
        [image // 100 if image % 100 == 99 and image > IMAGES_AT_ONCE else image for image in images], np.uint64
    )
    return mixed(numbers[:, None], np.arange(KEYS_OF_IMAGE, dtype=np.uint64))


def image_pairs_ours(n: int, folder: Path) -> Answer:
    """Index and look up block by block; images that repeat another are not added."""
    n_images = n // 100
    index, pairs = KeyIndex(folder, n_keys=KEYS_OF_IMAGE * n_images), []
    for start in range(0, n_images, IMAGES_AT_ONCE):
        images = range(start, min(start + IMAGES_AT_ONCE, n_images))
        keys = _image_keys(images)
        numbers = np.repeat(np.array(images, np.uint32), KEYS_OF_IMAGE)
        for found in index.find_each(keys.ravel(), most=256):
            pairs += sorted(set(zip(numbers[found.key].tolist(), found.item.tolist(), strict=True)))
        stays = ~np.isin(numbers, [row for row, _ in pairs])
        index.add(keys.ravel()[stays], numbers[stays])
    return pairs


def image_pairs_polars(n: int, folder: Path) -> Answer:
    """Join all keys with themselves at once: a copy is proposed with every other copy, and they count as common."""
    n_images = n // 100
    for start in range(0, n_images, 1_000):
        images = range(start, min(start + 1_000, n_images))
        numbers = np.repeat(np.array(images, np.uint32), KEYS_OF_IMAGE)
        pl.DataFrame({"key": _image_keys(images).ravel(), "image": numbers}).write_ipc(folder / f"{start:09}.arrow")
    keys = pl.scan_ipc(folder / "*.arrow")
    shared = keys.group_by("key").len().filter(pl.col("len").is_between(2, 256)).select("key")
    met = keys.join(shared, on="key", how="semi")
    pairs = met.join(met, on="key", suffix="_of").filter(pl.col("image_of") < pl.col("image"))
    counted = pairs.group_by("image", "image_of").len().filter(pl.col("len") > 1)
    return counted.select("image", "image_of").sort("image", "image_of").collect(engine="streaming").rows()


def _rows(n: int) -> Iterator[tuple[int, bytes]]:
    for number, key in enumerate(mixed(np.arange(n, dtype=np.uint64), np.zeros(1, np.uint64)).tolist()):
        yield key, pickle.dumps((number, "a row of some hundred bytes " * 20))


def _looked_up(n: int) -> list[int]:
    numbers = np.random.default_rng(0).integers(0, n, n // 10).astype(np.uint64)
    keys: list[int] = mixed(numbers, np.zeros(1, np.uint64)).tolist()
    return keys


def look_ups_ours(n: int, folder: Path) -> Answer:
    spill = KeyedSpill(folder)
    for key, row in _rows(n):
        spill.add(key, row)
    return sum(pickle.loads(spill.get(key))[0] for key in _looked_up(n))


def look_ups_polars(n: int, folder: Path) -> Answer:
    """A file sorted by key, read for a thousand keys at a time: a single one costs as much."""
    rows = _rows(n)
    parts = []
    for number in range(0, n, 50_000):
        part = pl.DataFrame([next(rows) for _ in range(min(50_000, n - number))], ["key", "row"], orient="row")
        parts.append(folder / f"{number}.parquet")
        part.sort("key").write_parquet(parts[-1])
    lazy = pl.scan_parquet(parts).sort("key")
    lazy.sink_parquet(folder / "sorted", row_group_size=10_000)
    total, keys = 0, _looked_up(n)
    for begin in range(0, len(keys), LOOK_UPS_AT_ONCE):
        wanted = pl.LazyFrame({"key": keys[begin : begin + LOOK_UPS_AT_ONCE]}, {"key": pl.UInt64})
        found = wanted.join(pl.scan_parquet(folder / "sorted"), on="key", how="inner").collect(engine="streaming")
        total += sum(pickle.loads(row)[0] for row in found["row"])
    return total


def look_ups_sqlite(n: int, folder: Path) -> Answer:
    rows = sqlite3.connect(folder / "rows.sqlite", isolation_level=None)
    rows.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN")
    rows.execute("CREATE TABLE rows (key INTEGER PRIMARY KEY, row BLOB)")
    for key, row in _rows(n):
        rows.execute("INSERT OR REPLACE INTO rows VALUES (?, ?)", (key - (1 << 63), row))
    found = (rows.execute("SELECT row FROM rows WHERE key = ?", (key - (1 << 63),)) for key in _looked_up(n))
    return sum(pickle.loads(cursor.fetchone()[0])[0] for cursor in found)


def _sample_keys(n: int) -> Any:
    """One sample in a thousand lies in two of the hundred partitions."""
    numbers = np.arange(n, dtype=np.uint64)
    return mixed(np.where(numbers % 1_000 == 999, numbers // 2, numbers), np.zeros(1, np.uint64))


def samples_ours(n: int, folder: Path) -> Answer:
    """The last partition of every sample, by binary search for one after the other."""
    keys = _sample_keys(n)
    places = np.arange(n, dtype=np.int32) // max(1, n // 100)
    order = np.lexsort((places, keys))
    last = order[np.append(keys[order][1:] != keys[order][:-1], True)]
    own, own_places = keys[last], places[last]
    return sum(int(own_places[np.searchsorted(own, key)]) for key in keys)


def samples_polars(n: int, folder: Path) -> Answer:
    samples = pl.LazyFrame({"key": _sample_keys(n), "place": np.arange(n, dtype=np.int32) // max(1, n // 100)})
    last = samples.group_by("key").agg(pl.col("place").max())
    return samples.select("key").join(last, on="key").select(pl.col("place").sum()).collect(engine="streaming").item()


def _signatures(images: range) -> list[Any]:
    """96 features an image, whose every tenth is an earlier image's."""
    numbers = np.array([image // 10 if image % 10 == 9 else image for image in images], np.uint64)
    features = np.arange(96 * SIGNATURE_WORDS, dtype=np.uint64)
    return list(mixed(numbers[:, None], features).reshape(-1, 96, SIGNATURE_WORDS))


class _Features:
    def __init__(self, signatures: Any) -> None:
        self.signatures = signatures

    def __len__(self) -> int:
        return len(self.signatures)


def features_ours(n: int, folder: Path) -> Answer:
    index = PartIndex(map(_Features, _signatures(range(n // 500))))  # type: ignore[arg-type]
    return sum(len(index.shared(image).query) for image in _signatures(range(n // 5000)))


def features_polars(n: int, folder: Path) -> Answer:
    """Join an image's keys with those of all; pairs that differ in few bits are counted once."""
    indexed = _bands(np.concatenate(_signatures(range(n // 500)))).collect()
    total = 0
    for image in _signatures(range(n // 5000)):
        pairs = _bands(image).join(indexed.lazy(), on=["band", "key"], suffix="_of")
        words = [pl.col(f"w{k}").xor(pl.col(f"w{k}_of")).bitwise_count_ones() for k in range(SIGNATURE_WORDS)]
        near = pairs.filter(pl.sum_horizontal(words) <= SAME_PLACE).select("feature", "feature_of").unique()
        total += near.select(pl.len()).collect().item()
    return total


def _bands(signatures: Any) -> pl.LazyFrame:
    words = {f"w{k}": signatures[:, k] for k in range(SIGNATURE_WORDS)}
    frame = pl.DataFrame({"feature": np.arange(len(signatures)), **words})
    keys = signatures[:, :2].copy().view(np.uint16).reshape(-1, 8)
    return pl.concat(
        frame.lazy().with_columns(pl.lit(band).alias("band"), pl.Series("key", keys[:, band])) for band in range(8)
    )


TASKS: Mapping[str, Callable[[int, Path], Answer]] = {
    task.__name__: task
    for task in (
        near_texts, near_texts_doubled, owners, image_pairs_ours, image_pairs_polars,
        look_ups_ours, look_ups_polars, look_ups_sqlite, samples_ours, samples_polars, features_ours, features_polars,
    )
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.rows)))
        return
    print("| task | CPU s | peak MB | answer |\n| --- | --- | --- | --- |")
    for task in options.tasks:
        command = [sys.executable, "-m", "measurements.polars_trial", "--rows", str(options.rows), "--measure", task]
        done = subprocess.run(command, stdout=subprocess.PIPE)
        if done.returncode:
            print(f"| {task} | failed with exit code {done.returncode} |", flush=True)
            continue
        result = json.loads(done.stdout)
        print(f"| {task} | {result['seconds']:.1f} | {result['peak_mb']:.0f} | {result['answer']} |", flush=True)


def measure(task: str, n: int) -> dict[str, Any]:
    """CPU seconds of all threads, peak memory, and a digest of the answer."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        answer = TASKS[task](n, Path(folder))
        seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return {"seconds": seconds, "peak_mb": peak, "answer": answer if isinstance(answer, int) else _digest(answer)}


def _digest(answer: list[Any]) -> str:
    return f"{len(answer):,} ({hash(tuple(answer)) & 0xFFFF:04x})"


if __name__ == "__main__":
    main()
