"""How publishing grows: CPU time per row and peak memory of ``SftDataset.publish``, each size in a process of its own.

    python -m benchmarks.publishing                     # 1,000 and 10,000 rows
    python -m benchmarks.publishing --rows 1000 10000 50000 --folder somewhere

Rows are made here: three images' references each, in partitions of 1,000, every one with its
own image; one in ten is beyond the quota, 5 % are held out. Images are faked (every read gives the same few bytes), and
the search for near-duplicates finds nothing: it is measured by ``benchmarks.duplicates``.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pipelines.generation.engine import STAGES
from pipelines.generation.recipes import load_recipes
from pipelines.generation.stage import SAMPLES
from pipelines.publishing.sft_dataset import SftDataset
from pipelines.records import Check, ImageRef, Observation, Provenance, Round, Sample, Trajectory, Truth, Usage
from pipelines.records.digest import digest
from pipelines.records.reject_reasons import RowError
from pipelines.records.samples import TruthBox
from pipelines.selection.screening import Screening
from pipelines.storage.tables import TableKey
from pipelines.storage.workspace import Workspace

FAMILY = "crop"
PER_PARTITION = 1_000
_THOUGHT = "The sign is small, so I cut out the part of the image that it is in and enlarge it before I read it. "
_CODE = "from PIL import Image\nimage = Image.open('input.png')\nprint(image.crop(({0}, 20, 400, 300)).size)\n" * 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--folder", type=Path, help="where the tables lie; made there if they are not")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    print(f"{platform.machine()}, Python {platform.python_version()}")
    print("|    rows | CPU s | CPU ms a row | peak MB | beyond the start |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as temporary:
        for n_rows in options.rows:
            home = (options.folder or Path(temporary)) / str(n_rows)
            command = [sys.executable, "-m", "benchmarks.publishing", "--measure", str(home)]
            make_tables(home, n_rows)
            found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            seconds, peak = found["seconds"], found["peak_mb"]
            beyond = peak - found["start_mb"]
            print(f"| {n_rows:>7,} | {seconds:.2f} | {1000 * seconds / n_rows:.2f} | {peak:.0f} | {beyond:.0f} |")


class NothingAlike(Screening):
    """Finds nothing, and reads what it is given once."""

    def screen(self, family: str, rows: Iterable[Any]) -> dict[str, RowError]:
        for _ in rows:
            pass
        return {}

    def screen_samples(self, name: str, samples: Iterable[Any]) -> dict[str, RowError]:
        return self.screen(name, samples)

    def same_images(self, images: Iterable[ImageRef], **_: Any) -> dict[str, str]:
        for _image in images:
            pass
        return {}


def measure(home: Path) -> dict[str, float]:
    """Publishes the tables in ``home``: CPU seconds, and memory at the start and at most."""
    import datasets  # noqa: F401  # what publishing imports is no growth
    import scipy.sparse.csgraph  # noqa: F401

    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        workspace.images.read = lambda ref: b"an image"  # type: ignore[method-assign]
        partitions = sorted(path.stem for path in workspace.tables.root.joinpath(*SAMPLES).glob("*-0*.parquet"))
        partitions = [partition for partition in partitions if not partition.endswith(".rejects")]
        dataset = SftDataset(
            workspace,
            load_recipes()[FAMILY],
            partitions,
            n_rows=len(partitions) * PER_PARTITION * 9 // 10,
            validation_share=0.05,
            screening=NothingAlike(workspace),
        )
        start, began = _memory_mb("VmRSS"), time.process_time()
        _, shipped = dataset.publish()
        seconds = time.process_time() - began
        assert shipped.n_rows == dataset.n_rows, shipped
        shutil.rmtree(shipped.folder)
        shutil.rmtree(workspace.tables.root / "sft_dataset")
    return {"seconds": seconds, "start_mb": start, "peak_mb": _memory_mb("VmHWM")}


def make_tables(home: Path, n_rows: int) -> None:
    """The tables of a family up to its trajectories; nothing where they are there."""
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        tables = workspace.tables
        for first in range(0, n_rows, PER_PARTITION):
            partition = f"made-{first // PER_PARTITION:05}"
            if tables.exists(TableKey((FAMILY, STAGES[-1]), partition)):
                continue
            samples = [made_sample(n) for n in range(first, first + PER_PARTITION)]
            rows = [made_trajectory(n, sample) for n, sample in enumerate(samples, first)]
            facts = {"n_in": len(rows), "n_out": len(rows), "reasons": {}, "usage": {}, "n_retryable": 0}
            tables.write(TableKey(SAMPLES, partition), Sample, samples, (), inputs="made", facts=facts)
            for stage in STAGES:
                kept = rows if stage in ("verdicts", "trajectories") else ()
                tables.write(TableKey((FAMILY, stage), partition), Trajectory, kept, (), inputs="made", facts=facts)


def _images(n: int, what: str, count: int) -> Iterator[ImageRef]:
    for number in range(count):
        yield ImageRef(digest([what, n, number]), 3000, 2000, "RGB", "PNG")


def made_sample(n: int, question: str = "", *, image: int | None = None) -> Sample:
    """Number ``n``, about its own image or number ``image``."""
    (shown,) = _images(n if image is None else image, "question", 1)
    question = question or f"What is written on sign {n} at the corner of the street?"
    boxes = (TruthBox("sign", 20, 20, 20 + n % 400 + 9, 60),)
    category = ("text", "colour", "count", "place")[n % 4]
    return Sample(
        digest(["sample", n]), "made", f"row/{n}", "CC0-1.0", (shown,), question, (), f"{n}", Truth(boxes), category
    )


def made_trajectory(n: int, sample: Sample) -> Trajectory:
    """The trajectory of sample ``n``, with two images of its own."""
    names = [check.name for check in load_recipes()[FAMILY].checks]
    checks = tuple(Check(name, True, n % 7 / 7, "as it should be: " + _THOUGHT[:40]) for name in names)
    rounds = tuple(
        Round(_THOUGHT * 2, _CODE.format(n), Observation("ok", f"(380, 280), {n}", (image,)))
        for image in _images(n, "observation", 2)
    )
    made_by = Provenance("model", "m", "r", '{"temperature": 0.7}', digest("prompt"), digest("sandbox"), n, "1.0")
    return Trajectory(
        digest(["trajectory", n]), sample.sample_id, FAMILY, "thyme", sample.images, rounds, _THOUGHT, sample.answer,
        "last_round", checks, Usage(2, 3000, 300, 0.001), made_by,
    )  # fmt: skip


def _memory_mb(name: str) -> float:
    status = Path(f"/proc/{os.getpid()}/status").read_text()
    return next(int(line.split()[1]) / 1000 for line in status.splitlines() if line.startswith(f"{name}:"))


if __name__ == "__main__":
    main()
