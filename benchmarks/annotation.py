"""Tasks to Label Studio and back: how long, and in how much memory.

    python -m benchmarks.annotation [--tasks 10000] [--postgres URL]

Hands out so many tasks that come back annotated (the annotations travel with the import: people would take weeks),
pulls them, and hands out as many cross-checks, each with a prediction and its author's seat. Memory is this process's
peak at the end of each step; it is flat when the last steps add little to the first. Baseline: the same import by Label
Studio's SDK alone, without a journal.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from annotation.label_studio.client import LabelStudioClient
from annotation.label_studio.server import server_of, wait_until_ready
from annotation.rounds.campaign import Campaign
from annotation.rounds.journal import Journal
from annotation.rounds.label_studio_tasks import results
from annotation.rounds.submissions import RecordFields
from annotation.rounds.sync import Sync
from pipelines.records import ImageRef, PoolImage
from pipelines.records.digest import digest
from pipelines.records.geometry import Box
from pipelines.storage.workspace import Workspace

FIELDS = RecordFields("What does the sign say?", "No. 7", "ocr", None, (Box(400, 600, 560, 690),))


class Annotating(LabelStudioClient):
    """The server, with an annotator who has annotated every task of the first round as soon as it is there."""

    author = 0

    def import_tasks(self, project_id: int, tasks: Sequence[Mapping[str, Any]]) -> list[int]:
        """The tasks of the first round bring their annotation."""
        done = {"completed_by": self.author, "ground_truth": False, "lead_time": 30.0, "result": results(FIELDS, IMAGE)}
        if tasks[0]["data"]["gate"]["kind"] == "annotate":
            tasks = [{**task, "annotations": [done]} for task in tasks]
        return super().import_tasks(project_id, tasks)


IMAGE = ImageRef("0" * 64, 4000, 3000, "RGB", "JPEG")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--postgres", help="postgresql://USER:PASSWORD@HOST:PORT/NAME instead of SQLite")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Workspace.from_environment() as ours:
        environment = {"DARKROOM_HOME": folder, "DARKROOM_ENVIRONMENTS": str(ours.environments)}
        home = server_of(Workspace.from_environment(environment))
        server = home.start(postgres=chosen.postgres)
        try:
            wait_until_ready(server, report=lambda seconds: None)
            with Annotating(server.url, home.admin.token, seconds=600) as studio:
                measure(studio, Path(folder), chosen.tasks)
        finally:
            home.stop()


def measure(studio: Annotating, folder: Path, n_tasks: int) -> None:
    studio.author = studio.add_person("author@example.com", role="annotator", password="a secret of theirs")["id"]
    images = [ImageRef(digest(n), 4000, 3000, "RGB", "JPEG") for n in range(n_tasks)]
    pool = [PoolImage(image, "ours", str(n), "CC0-1.0") for n, image in enumerate(images)]
    print(f"{'step':<42}{'tasks':>8}{'seconds':>10}{'tasks/s':>10}{'MB':>8}")
    baseline(studio, min(n_tasks, 2000))
    campaign = Campaign(name="benchmark", gold_share=0)
    with Journal(folder / "annotation") as journal:
        sync = Sync(journal, studio, campaign, say=lambda text: None)
        tenth = pool[: n_tasks // 10]
        step("hand out the first tenth", len(tenth), lambda: sync.run(tenth))
        step("hand out the rest, take the first tenth in", n_tasks, lambda: sync.run(pool))
        step("take the rest in, hand out its cross-checks", n_tasks, lambda: sync.run(pool))
        step("sync when nothing has changed", n_tasks, lambda: sync.run(pool))


def baseline(studio: LabelStudioClient, n_tasks: int) -> None:
    """What the SDK alone takes for as large a part of the first import."""
    project = studio.create_project("baseline", "annotate", n_excluded=0)
    gate = {"kind": "annotate", "max_share": 0.05}
    data = [{"key": str(n), "image": "/x", "rules": "r", "gate": gate} for n in range(n_tasks)]

    def run() -> None:
        for start in range(0, n_tasks, 200):
            studio.import_tasks(project, [{"data": one} for one in data[start : start + 200]])

    step("baseline: the SDK's import alone", n_tasks, run)


def step(name: str, n_tasks: int, perform: Any) -> None:
    began = time.perf_counter()
    perform()
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{name:<42}{n_tasks:>8,}{seconds:>10.1f}{n_tasks / seconds:>10.0f}{peak:>8,}", flush=True)


if __name__ == "__main__":
    main()
