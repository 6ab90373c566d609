"""Tasks to Label Studio and back: how long, how much CPU of the sync and of the server, and in how much memory.

    python -m measurements.annotation [--tasks 2000] [--postgres URL | --recorded]

Hands out so many tasks that come back annotated (the annotations travel with the import: people would take weeks),
pulls them, and hands out as many cross-checks, each with a prediction and its author's seat. Then fifty people submit
one task each. Memory is this process's peak at the end of each step; it is flat when the last steps add little to the
first. Baseline: the same import by Label Studio's SDK alone, without a journal. ``--recorded``: against a server that
holds in memory what it is sent, for sizes that take hours on the real one.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from darkroom.annotation.label_studio.client import LabelStudioClient
from darkroom.annotation.label_studio.server import server_of
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.label_studio_tasks import results
from darkroom.annotation.rounds.submissions import RecordFields
from darkroom.annotation.rounds.sync import Sync
from darkroom.annotation.rounds.task_exchange import OVERLAP_SECONDS
from darkroom.pipelines.records import ImageRef, PoolImage
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.storage.workspace import Workspace
from measurements.cpu import descendants
from measurements.recorded_studio import recorded_studio
from scripts.own_studio import own_home, running

FIELDS = RecordFields("What does the sign say?", "No. 7", "ocr", None, (Box(400, 600, 560, 690),))


N_LATE = 50


class Annotating(LabelStudioClient):
    """The server, with an annotator who has annotated every task of the first round as soon as it is there."""

    author = 0

    def import_tasks(self, project_id: int, tasks: Sequence[Mapping[str, Any]]) -> list[int]:
        """The tasks of the first round bring their annotation."""
        done = {"completed_by": self.author, "ground_truth": False, "lead_time": 30.0, "result": results(FIELDS, IMAGE)}
        if tasks[0]["data"]["gate"]["kind"] == "annotate":
            tasks = [{**task, "annotations": [done]} for task in tasks]
        return super().import_tasks(project_id, tasks)

    def annotate(self, task_id: int) -> None:
        """Rejects the record of a check."""
        fields = {
            "blind_answer": {"text": ["a"]},
            "verdict": {"choices": ["reject"]},
            "reason": {"choices": ["ambiguous"]},
        }
        kinds = {"blind_answer": "textarea", "verdict": "choices", "reason": "choices"}
        result = [
            {"id": name, "from_name": name, "to_name": "image", "type": kinds[name], "value": value}
            for name, value in fields.items()
        ]
        body = {"result": result, "lead_time": 9.0, "completed_by": 1}
        self._http.post(f"/api/tasks/{task_id}/annotations/", json=body).raise_for_status()


IMAGE = ImageRef("0" * 64, 4000, 3000, "RGB", "JPEG")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=2_000)
    parser.add_argument("--postgres", help="postgresql://USER:PASSWORD@HOST:PORT/NAME instead of SQLite")
    parser.add_argument("--recorded", action="store_true", help="instead of Label Studio")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if chosen.recorded:
            with recorded_studio() as server, Annotating(server.url, "x", seconds=600) as studio:
                measure(studio, Path(folder), chosen.tasks, server.pid)
            return
        with (
            Workspace.from_environment(own_home(Path(folder))) as workspace,
            running(server_of(workspace), database=chosen.postgres) as server,
            Annotating(server.url, server_of(workspace).admin.token, seconds=600) as studio,
        ):
            measure(studio, Path(folder), chosen.tasks, server.process.pid)


def measure(studio: Annotating, folder: Path, n_tasks: int, server_pid: int) -> None:
    studio.author = studio.add_person("author@example.com", role="annotator", password="a secret of theirs")["id"]
    images = [ImageRef(digest(n), 4000, 3000, "RGB", "JPEG") for n in range(n_tasks)]
    pool = [PoolImage(image, "ours", str(n), "CC0-1.0") for n, image in enumerate(images)]
    table = Table(server_pid)
    baseline(studio, min(n_tasks, 2000), table)
    campaign = Campaign(name="benchmark", gold_share=0)
    with Journal(folder / "annotation") as journal:
        sync = Sync(journal, studio, campaign, say=lambda text: None)
        tenth = pool[: n_tasks // 10]
        table.step("hand out the first tenth", len(tenth), lambda: sync.run(tenth))
        table.step("hand out the rest, take the first tenth in", n_tasks, lambda: sync.run(pool))
        table.step("take the rest in, hand out its cross-checks", n_tasks, lambda: sync.run(pool))
        time.sleep(OVERLAP_SECONDS + 2)  # what changed shortly before a sync is pulled again by the next one
        sync.run(pool)
        table.step("sync when nothing has changed", 0, lambda: sync.run(pool))
        project = journal.project("cross_check")
        assert project is not None
        checks = [task.task_id for task in islice(studio.tasks_after(project.project_id, 0), N_LATE)]
        for task_id in checks:
            studio.annotate(task_id)
        table.step(f"sync after {len(checks)} submissions", len(checks), lambda: sync.run(pool))


def baseline(studio: LabelStudioClient, n_tasks: int, table: Table) -> None:
    """What the SDK alone takes for as large a part of the first import."""
    project = studio.create_project("baseline", "annotate", n_excluded=0)
    gate = {"kind": "annotate", "max_share": 0.05}
    data = [{"key": str(n), "image": "/x", "rules": "r", "gate": gate} for n in range(n_tasks)]

    def run() -> None:
        for start in range(0, n_tasks, 200):
            studio.import_tasks(project, [{"data": one} for one in data[start : start + 200]])

    table.step("baseline: the SDK's import alone", n_tasks, run)


class Table:
    """Measures steps and prints a line for each."""

    def __init__(self, server_pid: int) -> None:
        self._server_pid = server_pid
        titles = ("tasks", "seconds", "CPU s", "tasks/CPU s", "server s", "MB")
        print(f"{'step':<45}" + "".join(f"{title:>12}" for title in titles))

    def step(self, name: str, n_tasks: int, perform: Callable[[], object]) -> None:
        began, cpu, server = time.perf_counter(), time.process_time(), self._server_seconds()
        perform()
        seconds, cpu, server = time.perf_counter() - began, time.process_time() - cpu, self._server_seconds() - server
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        line = f"{name:<45}{n_tasks:>12,}{seconds:>12.1f}{cpu:>12.2f}{n_tasks / cpu:>12,.0f}{server:>12.2f}{peak:>12,}"
        print(line, flush=True)

    def _server_seconds(self) -> float:
        """CPU of the server and its workers."""
        total = 0.0
        for pid in (self._server_pid, *descendants(self._server_pid)):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return total


if __name__ == "__main__":
    main()
