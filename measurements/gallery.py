"""Measures the served gallery on many rows: those of a dataset, over and over, each with another id and question.

    python -m measurements.gallery data/datasets/sft/operation_aware --rows 100000

The images are replaced by one small image, so that a row costs what its texts do; CPU seconds of this process.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from darkroom.pipelines.publishing.dataset_reader import dataset_files, read_rows
from darkroom.pipelines.publishing.gallery.index import GalleryIndex, open_index
from darkroom.pipelines.publishing.gallery.served import GalleryServer
from darkroom.pipelines.storage.images import ImageStore
from tests.image_files import encoded

_N_DIFFERENT, _ROWS_PER_GROUP, _N_DRAWN = 50, 1_000, 20


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m measurements.gallery", description=__doc__.partition("\n")[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "many"
        folder.mkdir()
        write_rows(options.dataset, folder / "train-00000-of-00001.parquet", options.rows)
        measure(folder, Path(temporary), options.rows)


def write_rows(dataset: Path, path: Path, n_rows: int) -> None:
    """A shard of ``n_rows`` made of the first rows of ``dataset``."""
    schema = pq.read_schema(dataset_files(dataset)[0])
    rows = list(islice(read_rows([dataset]), _N_DIFFERENT))
    small = [{"bytes": encoded(Image.new("RGB", (64, 48), (200, 30, 30))), "path": None}]
    for row in rows:
        row["images"] = small * len(row["images"])

    def numbered(start: int) -> Iterator[dict[str, Any]]:
        for n in range(start, min(start + _ROWS_PER_GROUP, n_rows)):
            row = rows[n % len(rows)]
            yield {**row, "trajectory_id": f"{n:064x}", "question": f"{row['question']} (row {n})"}

    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for start in range(0, n_rows, _ROWS_PER_GROUP):
            writer.write_table(pa.Table.from_pylist(list(numbered(start)), schema=schema))


def measure(folder: Path, scratch: Path, n_rows: int) -> None:
    """Prints a line for each thing that a user waits for."""
    path = scratch / "many.index"

    def opened() -> GalleryIndex:
        return open_index(path, [folder], None)

    index = timed(f"making the index of {n_rows:,} rows", opened)
    timed("opening it again", opened)
    server = GalleryServer(index, ImageStore(str(scratch / "images")), title="many")
    timed("a page of all rows", lambda: index.page({}, 5))
    timed("a search in all texts", lambda: index.page({"search": f"(row {n_rows - 1})"}, 0))
    timed("the page of an address", lambda: index.page({}, 0, row=f"{n_rows - 1:064x}"))
    places = range(0, n_rows, max(1, n_rows // _N_DRAWN))
    timed(f"drawing {len(places)} rows", lambda: [server.row({"n": str(n)}) for n in places])
    server.server_close()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"index {path.stat().st_size / 1e6:.0f} MB, peak {peak_mb:.0f} MB")


def timed(name: str, work: Callable[[], Any]) -> Any:
    start = time.process_time()
    made = work()
    print(f"{name}: {time.process_time() - start:.2f} s", flush=True)
    return made


if __name__ == "__main__":
    main()
