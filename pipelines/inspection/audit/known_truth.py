"""What the workspace knows of shipped rows and the dataset does not say: samples with their truth, hints, votes.

Tables are read one partition at a time into a temporary SQLite file, so memory does not grow with the dataset.
"""

import json
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self, TypeVar

from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.records import Draft, PassRate, Sample, SuitabilityVotes, ToolNecessity, Votes, from_row, to_row
from darkroom.pipelines.rl import necessity, pass_rates, suitability
from darkroom.pipelines.storage.workspace import Workspace

R = TypeVar("R")
_FORCED, _FORBIDDEN = "forced", "forbidden"


class KnownTruth:
    """Look-ups by id; ``None`` where the workspace does not know the row. A context manager."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._lock = threading.Lock()
        self._families: set[str] = set()

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="darkroom-audit-")
        self._rows = sqlite3.connect(Path(self._folder.name) / "truth.sqlite", check_same_thread=False)
        self._rows.execute("CREATE TABLE truth (kind TEXT, id TEXT, value TEXT, PRIMARY KEY (kind, id)) WITHOUT ROWID")
        for sample in self._read(SAMPLES, Sample):
            self._put("sample", sample.sample_id, to_row(sample))
        for rate in self._read((pass_rates.ASSET,), PassRate):
            self._put(pass_rates.ASSET, rate.sample_id, _counted(rate.votes))
        for votes in self._read((suitability.VOTES,), SuitabilityVotes):
            self._put(suitability.VOTES, votes.sample_id, _counted(votes.votes))
        for measured in self._read((necessity.ASSET,), ToolNecessity):
            self._put(_FORCED, measured.sample_id, _counted(measured.forced))
            self._put(_FORBIDDEN, measured.sample_id, _counted(measured.forbidden))
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()
        self._folder.cleanup()

    def sample(self, sample_id: str) -> Sample | None:
        row = self._get("sample", sample_id)
        return None if row is None else from_row(Sample, row)

    def hint(self, family: str, trajectory_id: str) -> dict[str, Any] | None:
        """What the recipe told the policy when the row was drafted."""
        with self._lock:
            if family not in self._families:
                self._families.add(family)
                for draft in self._read((family, "drafts"), Draft):
                    self._put("hint", draft.trajectory_id, json.loads(draft.hint))
        hint: dict[str, Any] | None = self._get("hint", trajectory_id)
        return hint

    def votes(self, asset: str, sample_id: str) -> dict[str, int] | None:
        """``yes``, ``no`` and ``n`` of a stage's ballots; of necessity as ``forced`` and ``forbidden``."""
        counts: dict[str, int] | None = self._get(asset, sample_id)
        return counts

    def _read(self, asset: tuple[str, ...], kind: type[R]) -> Iterator[R]:
        for key in self.workspace.tables.keys(asset):
            yield from self.workspace.tables.read(key, kind)

    def _put(self, kind: str, row_id: str, value: Any) -> None:
        self._rows.execute("INSERT OR REPLACE INTO truth VALUES (?, ?, ?)", (kind, row_id, json.dumps(value)))

    def _get(self, kind: str, row_id: str) -> Any:
        with self._lock:
            row = self._rows.execute("SELECT value FROM truth WHERE kind = ? AND id = ?", (kind, row_id)).fetchone()
        return None if row is None else json.loads(row[0])


def _counted(votes: Votes) -> dict[str, int]:
    return {"yes": votes.n_yes, "no": votes.n_no, "n": votes.n}
