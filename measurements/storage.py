"""The image store in a folder, on an S3 server, and there with the local cache: CPU time of one process per image.

python -m measurements.storage --images 200

The S3 server is moto's on loopback, in a process of its own whose CPU time does not count. Images are photograph-like
JPEGs of 260 kB. `ingest` stores new ones; another machine reads them for the first time, then again, and decodes them.
In brackets: ratios to the folder's time in the same run.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from darkroom.pipelines.records import ImageRef
from darkroom.pipelines.storage.image_cache import ImageCache
from darkroom.pipelines.storage.images import ImageStore
from tests.image_files import encoded
from tests.object_store import object_store_server

SIZE = (800, 600)
LAST_SEED = 1_000_000


def photograph(seed: int) -> bytes:
    noise = np.random.default_rng(seed).integers(0, 255, (SIZE[1] // 4, SIZE[0] // 4, 3), dtype=np.uint8)
    return encoded(Image.fromarray(noise).resize(SIZE, Image.Resampling.BICUBIC), "JPEG", quality=92)


def cpu_ms(perform: Callable[[], object], n_images: int) -> float:
    before = time.process_time()
    perform()
    return (time.process_time() - before) * 1000 / n_images


def measured(writer: ImageStore, reader: ImageStore, photographs: list[bytes]) -> dict[str, float]:
    n, refs = len(photographs), list[ImageRef]()
    writer.ingest(photograph(LAST_SEED))  # connections and imports are made once
    reader.read(reader.ingest(photograph(LAST_SEED)))
    figures = {"ingest": cpu_ms(lambda: refs.extend(map(writer.ingest, photographs)), n)}
    figures["read, first"] = cpu_ms(lambda: [reader.read(ref) for ref in refs], n)
    figures["read"] = cpu_ms(lambda: [reader.read(ref) for ref in refs], n)
    figures["open"] = cpu_ms(lambda: [reader.open(ref) for ref in refs], n)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=200)
    photographs = [photograph(seed) for seed in range(parser.parse_args().images)]
    with tempfile.TemporaryDirectory() as folder, object_store_server() as server:
        os.environ.update(server.environment)
        local, bare, url = ImageStore(f"{folder}/images"), ImageStore(server.url("images")), server.url("images")
        writer, reader = (ImageStore(url, ImageCache(Path(folder) / name, 10**9)) for name in ("writer", "reader"))
        figures = {
            "folder": measured(local, local, photographs),
            "S3": measured(bare, bare, photographs),
            "S3, cached": measured(writer, reader, photographs),
        }
    print(f"{len(photographs)} images of {sum(map(len, photographs)) / len(photographs) / 1000:.0f} kB")
    print("| | " + " | ".join(figures["folder"]) + " |")
    print("| --- " * (len(figures["folder"]) + 1) + "|")
    for name, row in figures.items():
        cells = [f"{ms:.2f} ms ({ms / figures['folder'][act]:.1f})" for act, ms in row.items()]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
