"""Measures decontamination end to end: benchmark items planted in a source, and what the pipeline rejects of them.

    python -m measurements.planted_items               # 12 items, 9 changes, 60 clean rows, some minutes
    python -m measurements.planted_items --items 4 --clean 10

A benchmark of held-out photographs, scenes, charts and a document (``measurements/planted_changes.py``) is written to a
folder with its questions. A source holds each of its images changed in nine ways with another question, each of its
questions copied, edited and paraphrased in a text-only row, and clean rows. The source is ingested, and its rows become
RL candidates as in ``rl_candidates``: what counts is the rejects with the reason ``contaminated``.
"""

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import cv2

from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.stage import Shard
from darkroom.pipelines.records import Reject
from darkroom.pipelines.rl.candidates import ASSET, Candidates
from darkroom.pipelines.selection.screening import Screening
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.storage.workspace import Workspace
from measurements.planted_changes import CHANGES, Item, held_out
from tests.image_files import encoded

SEED = 20261123
ASKED = (
    ("How many windows can be counted on the left side of the tallest building in this view?",
     "Count the windows on the left of the tallest building."),
    ("What is written in the second line of the sign that stands beside the entrance of the station?",
     "The station has a sign next to its entrance; which words form line two?"),
    ("Which of the four persons at the table in the background holds a red cup in the right hand?",
     "Somebody at the back table has a red cup in their right hand. Who?"),
    ("What is the difference between the highest and the lowest value that the chart shows for the valley?",
     "By how much does the valley's maximum exceed its minimum in the chart?"),
)  # fmt: skip
"""A question and its paraphrase."""
_TEXTS = ("copied", "two words changed", "paraphrased")


class Planted:
    """The source: rows named ``<what>/<number>``."""

    name, n_shards, fingerprint = "planted", 1, "planted"

    def __init__(self, items: Sequence[Item], clean: Sequence[Item]) -> None:
        self._items, self._clean = items, clean

    def rows(self, _shard: int) -> Iterator[SourceRow]:
        """Images with other questions than the benchmark's, questions without images, and clean rows."""
        for what, change in CHANGES.items():
            chance = random.Random(SEED)
            for n, item in enumerate(self._items):
                question = f"What is to be seen at place {n} of this view, {what}?"
                yield SourceRow(f"{what}/{n}", (encoded(change(item.image, chance)),), question, "a thing")
        for n, (question, paraphrase) in enumerate(ASKED):
            edited = question.replace("the left", "the right").replace("is ", "was ").replace("Which of", "Who of")
            for what, text in zip(_TEXTS, (question, edited, paraphrase), strict=True):
                yield SourceRow(f"{what}/{n}", (), text, "42")
        for n, item in enumerate(self._clean):
            yield SourceRow(f"clean/{n}", (encoded(item.image),), f"Which colour has object number {n}?", "a colour")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--items", type=int, default=12)
    parser.add_argument("--clean", type=int, default=60)
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    everything = held_out()
    random.Random(SEED).shuffle(everything)
    items, clean = everything[: arguments.items], everything[arguments.items :][: arguments.clean]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        environment = {"DARKROOM_HOME": str(home)}
        with Workspace.from_environment(environment) as workspace:
            _benchmark(Path(folder), workspace, items)
            started = time.process_time()
            rejects = _rejected(workspace, Planted(items, clean))
            seconds = time.process_time() - started
    hits = Counter(one.source_row.rpartition("/")[0] for one in rejects if one.reason == "contaminated")
    for what in (*CHANGES, *_TEXTS, "clean"):
        n = len(ASKED) if what in _TEXTS else len(clean) if what == "clean" else len(items)
        print(f"{what}: {hits[what]} of {n} rejected as contaminated")
    print(f"other rejects: {dict(Counter(one.reason for one in rejects if one.reason != 'contaminated'))}")
    print(f"{seconds:.0f} s of CPU time in all")
    print("benchmark:", ", ".join(item.kind for item in items))


def _rejected(workspace: Workspace, source: Planted) -> list[Reject]:
    engine.intake(workspace, source, 0, "planted-0000")
    shard, screening = Shard(workspace, "planted-0000"), Screening(workspace)
    errors = screening.screen_samples("planted", list(shard.samples().values()))
    shard.materialize(Candidates(judge=None, screening=screening, errors=lambda: errors))
    return workspace.tables.read_rejects(shard.key(ASSET))


def _benchmark(below: Path, workspace: Workspace, items: Sequence[Item]) -> None:
    folder = below / "benchmark"
    folder.mkdir()
    lines = []
    for n, item in enumerate(items):
        (folder / f"{n}.png").write_bytes(encoded(item.image))
        lines.append({"image": f"{n}.png", "text": f"{ASKED[n][0] if n < len(ASKED) else f'What is item {n}?'}"})
    (folder / "metadata.jsonl").write_text("\n".join(map(json.dumps, lines)))
    workspace.home.mkdir(parents=True, exist_ok=True)
    columns = {"question": "text", "row_id": None}
    listed = {"planted": {"kind": "jsonl", "path": str(folder), "columns": columns}}
    workspace.benchmarks.write_text(json.dumps(listed))


if __name__ == "__main__":
    main()
