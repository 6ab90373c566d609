"""The stages, as their assets and commands run them. Images have no pixels here but where a stage must look at some:

``screening`` compares images whose questions are near, one in fifty: they are small noise, made from their name.
``decontamination`` looks for questions only: what an image costs (docs/decontamination.md) does not depend on the rows.
Publishing searches no near-duplicates; they are measured by themselves.
"""

import io
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rich.console import Console

from darkroom.assets.terminal.summary import print_summary
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.inspection.explain import explain as explain_row
from darkroom.pipelines.inspection.gallery import read_rejects, write_gallery
from darkroom.pipelines.publishing.rl_dataset import RlDataset
from darkroom.pipelines.publishing.sft_dataset import SampleJoin, SftDataset
from darkroom.pipelines.records import ImageRef, Sample, Trajectory
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.selection.decontamination.images import ImageIndex
from darkroom.pipelines.selection.duplicates.texts import near_texts
from darkroom.pipelines.selection.screening import Screening
from darkroom.pipelines.storage.row_files import RowStream
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from measurements.million.rows import FAMILY
from measurements.million.tables import PER_PARTITION, question

Partitions = Sequence[str]


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


def texts(workspace: Workspace, partitions: Partitions) -> None:
    """Near-duplicates among all questions."""
    near_texts(map(question, range(len(partitions) * PER_PARTITION)), folder=workspace.tables.scratch)


def screening(workspace: Workspace, partitions: Partitions) -> None:
    """Near-duplicates among all trajectories."""
    workspace.images.open = _noise  # type: ignore[method-assign]
    found = Screening(workspace).screen(FAMILY, _pairs(workspace, partitions))
    assert len(found) == len(partitions) * PER_PARTITION // 100


def decontamination(workspace: Workspace, partitions: Partitions) -> None:
    """Trajectories that hold a benchmark's question."""
    _write_benchmark(workspace.home)
    ImageIndex.find = lambda *_: []  # type: ignore[assignment,method-assign]
    workspace.images.open = lambda ref: None  # type: ignore[assignment,method-assign]
    screening = Screening(workspace)
    assert not list(screening._contaminated(FAMILY, _pairs_as_rows(workspace, partitions)))
    assert not any(row.error for of in screening._scanner._index.rows.values() for row in of)
    workspace.benchmarks.unlink()  # the other stages are without


def sft_dataset(workspace: Workspace, partitions: Partitions) -> None:
    """The dataset of one family, one in ten left out by a quota and 5 % held out."""
    workspace.images.read = lambda ref: b"an image"  # type: ignore[method-assign]
    n_rows = len(partitions) * PER_PARTITION * 8 // 10
    dataset = SftDataset(
        workspace, load_recipes()[FAMILY], partitions, n_rows=n_rows, validation_share=0.05,
        screening=NothingAlike(workspace),
    )  # fmt: skip
    assert dataset.publish()[1].n_rows == n_rows
    shutil.rmtree(dataset.folder)
    shutil.rmtree(workspace.tables.root / "sft_dataset")


def rl_dataset(workspace: Workspace, partitions: Partitions) -> None:
    """The RL dataset of all shards, with a quota and 5 % held out."""
    workspace.images.read = lambda ref: b"an image"  # type: ignore[method-assign]
    n_rows = len(partitions) * PER_PARTITION * 8 // 10
    dataset = RlDataset(workspace, partitions, (), NothingAlike(workspace), n_rows=n_rows)
    assert dataset.publish()[1].n_rows == n_rows
    shutil.rmtree(dataset.folder)
    shutil.rmtree(workspace.tables.root / "rl_dataset")


def summary(workspace: Workspace, partitions: Partitions) -> None:
    """`darkroom summary`, the RL stages' votes included."""
    print_summary(Console(file=io.StringIO(), width=120), workspace, list(load_recipes().values()), partitions)


def explain(workspace: Workspace, partitions: Partitions) -> None:
    """`darkroom explain` of the last row, by its id."""
    (sample_id,) = list(workspace.tables.columns(TableKey(SAMPLES, partitions[-1]), "sample_id"))[-1]
    assert explain_row(workspace, sample_id[:20]).histories


def gallery(workspace: Workspace, partitions: Partitions) -> None:
    """`darkroom gallery crop --rejects` without a dataset: the page of all rejects."""
    page = workspace.home / "gallery.html"
    write_gallery(page, [], title=FAMILY, rejected=read_rejects(workspace, [FAMILY]))
    assert page.stat().st_size
    page.unlink()


STAGES: Mapping[str, Callable[[Workspace, Partitions], None]] = {
    stage.__name__: stage
    for stage in (texts, screening, decontamination, sft_dataset, rl_dataset, summary, explain, gallery)
}


def _pairs(workspace: Workspace, partitions: Partitions) -> RowStream[tuple[Sample, Trajectory]]:
    keys = [TableKey((FAMILY, "trajectories"), partition) for partition in partitions]
    samples = SampleJoin(workspace.tables, partitions)

    def read() -> Iterator[tuple[Sample, Trajectory]]:
        for key in keys:
            yield from ((samples[row.sample_id], row) for row in workspace.tables.stream(key, Trajectory))

    return RowStream(sum(map(workspace.tables.n_rows, keys)), read)


def _pairs_as_rows(workspace: Workspace, partitions: Partitions) -> Iterable[Any]:
    from darkroom.pipelines.selection.decontamination import TrainingRow

    return (TrainingRow.of_trajectory(row, sample) for sample, row in _pairs(workspace, partitions))


def _noise(ref: ImageRef) -> Image.Image:
    levels = np.random.default_rng(int(ref.sha256[:12], 16)).integers(0, 255, (12, 16), np.uint8)
    return Image.fromarray(levels).resize((160, 120), Image.Resampling.BICUBIC)


def _write_benchmark(home: Path) -> None:
    rows = [{"question": question(10**9 + n), "image": "benchmark.png"} for n in range(1_000)]
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (120, 160), np.uint8)).save(home / "benchmark.png")
    questions = home / "benchmark.jsonl"
    questions.write_text("\n".join(map(json.dumps, rows)))
    listed = {
        "held_out": {
            "kind": "jsonl",
            "questions": str(questions),
            "path": str(home),
            "columns": {"question": "question"},
        }
    }
    (home / "benchmarks.yaml").write_text(json.dumps(listed))
