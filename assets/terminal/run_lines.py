"""Lines of a run in the terminal: one for each finished asset, and a status that changes (in files, every minute)."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import dagster as dg
from rich.console import Console
from rich.status import Status
from rich.text import Text

from darkroom.assets.terminal import relative, shown_by
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.records import Sample, Trajectory
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.stage_runs import duration
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace

_SECONDS, _SECONDS_IN_A_FILE = 0.5, "60"
"""Seconds between two looks at the status."""
STATUS_SECONDS = "DARKROOM_STATUS_SECONDS"
"""The variable by which a command that shows the lines of another one has more of them."""
_LEAST = 0.1
"""Share of the assets that are finished before the time left is estimated: earlier, one long stage decides it."""
_N_FINAL_METRICS = 3
_COUNTS = (("rows_in", "in"), ("rows_out", "out"), ("rejected", "rejected"), ("quarantined", "quarantined"))
_NOT_APPLICABLE = "not_applicable"
STATUS = "  … "
"""The beginning of a status line in a file."""
OnAsset = Callable[[dg.AssetMaterialization], None]


class RunLines:
    """The lines of one run of ``n_assets``. ``on_asset`` is called after the line of each."""

    def __init__(self, console: Console, title: str, n_assets: int, on_asset: OnAsset) -> None:
        self._console, self._title, self._n_assets, self._on_asset = console, title, n_assets, on_asset
        self._began, self._n_done, self._stage = time.monotonic(), 0, ""
        self._stage_left = 0.0
        self._open: dict[str | None, list[dg.AssetMaterialization]] = defaultdict(list)

    @contextmanager
    def live(self) -> Iterator[None]:
        """Print as long as the run goes on; at its end also the assets that a failed step has materialised."""
        over = Event()
        self._console.print(f"[bold]{self._title}[/bold]")
        with self._console.status(self._status_line()) as status, shown_by(self._show):
            thread = Thread(target=self._tick, args=(status, over), daemon=True, name="terminal")
            thread.start()
            try:
                yield
            finally:
                over.set()
                thread.join()
        for step in list(self._open):
            self._print(step, None)

    def record(self, entry: dg.EventLogEntry) -> None:
        """Dagster calls it with every event of the run, in the run's thread."""
        event = entry.dagster_event
        if event is None:
            return
        if event.is_step_materialization:
            self._open[event.step_key].append(event.step_materialization_data.materialization)
        elif event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            check = event.asset_check_evaluation_data
            # checks that fail the run are among its failures
            if not check.passed and check.severity == dg.AssetCheckSeverity.WARN:
                line = f"  {check.asset_key.to_user_string():<34}{check.description or check.check_name}"
                self._console.print(line, highlight=False, soft_wrap=True, markup=False)
        elif event.is_step_success:
            self._n_done, self._stage = self._n_done + 1, ""
            self._stage_left = 0.0
            self._print(event.step_key, event.step_success_data.duration_ms / 1000)

    def _print(self, step: str | None, seconds: float | None) -> None:
        for materialization in self._open.pop(step, ()):
            self._console.print(materialization_line(materialization, seconds), highlight=False, soft_wrap=True)
            self._on_asset(materialization)

    def _show(self, line: str, seconds_left: float) -> None:
        self._stage, self._stage_left = line, seconds_left

    def _tick(self, status: Status, over: Event) -> None:
        is_terminal = self._console.is_terminal
        seconds = _SECONDS if is_terminal else float(os.environ.get(STATUS_SECONDS, _SECONDS_IN_A_FILE))
        while not over.wait(seconds):
            if is_terminal:
                status.update(self._status_line())
            else:
                self._console.print(Text(STATUS) + self._status_line(), soft_wrap=True)

    def _status_line(self) -> Text:
        seconds = time.monotonic() - self._began
        words = [f"{self._title}, {seconds:.0f} s"]
        if self._n_assets > 1:
            words.append(f"{self._n_done} of {self._n_assets} assets")
        if _LEAST * self._n_assets <= self._n_done < self._n_assets:
            rest = seconds / self._n_done * (self._n_assets - self._n_done)
            words.append(f"about {duration(max(rest, self._stage_left))} left")
        return Text(", ".join(words) + (f"; {self._stage}" if self._stage else ""))


def materialization_line(materialization: dg.AssetMaterialization, seconds: float | None) -> str:
    values = {name: value.value for name, value in materialization.metadata.items()}
    counts = [f"{values[name]:>6,} {label}" for name, label in _COUNTS if name in values]
    counts += [f"{values[_NOT_APPLICABLE]:>6,} not applicable"] if values.get(_NOT_APPLICABLE) else []
    finals = [name for name, value in values.items() if name.startswith("final_") and value is not None]
    final_metrics = [f"  {name.replace('_', ' ')} {values[name]:.3g}" for name in finals[:_N_FINAL_METRICS]]
    took = f"  {seconds:.1f} s" if seconds is not None else ""
    mark = "  [dim](unchanged)[/dim]" if values.get("reused") else ""
    return f"  {materialization.asset_key.to_user_string():<34}{''.join(counts + final_metrics)}{took}{mark}"


class FirstTrajectory:
    """Print one trajectory with an image of its own, of the first table that has one; ``then`` is called next."""

    def __init__(self, console: Console, workspace: Workspace, then: Callable[[], object] | None = None) -> None:
        self._console, self._workspace, self._then, self._is_over = console, workspace, then, False

    def look(self, materialization: dg.AssetMaterialization) -> None:
        path, partition = materialization.asset_key.path, materialization.partition
        if self._is_over or partition is None or path[-1] != "trajectories":
            return
        tables = self._workspace.tables
        rows = tables.stream(TableKey(tuple(path), partition), Trajectory)
        row = next((row for row in rows if row.rounds and row.rounds[-1].observation.images), None)
        if row is None:
            return
        self._is_over = True
        samples = tables.stream(TableKey(SAMPLES, partition), Sample)
        question = next(sample.question for sample in samples if sample.sample_id == row.sample_id)
        image = row.rounds[-1].observation.images[-1]
        view = self._workspace.local / "views" / f"first_look.{image.format.lower()}"  # a name that programs open
        write_whole(view, self._workspace.images.read(image))
        words = f"  the first trajectory: {' '.join(question.split())} → {row.answer}"
        self._console.print(Text(f"{words}\n    its code showed {relative(view)}"), soft_wrap=True)
        if self._then is not None:
            self._then()
