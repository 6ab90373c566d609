"""What a card says of a release: how many of its rows could be read, and which checks they pass and fail."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.storage.tables import TableKey, Tables


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """Of the partitions of a family: every row is counted at every check, whichever it failed first."""

    n_rows: int
    n_read: int
    unread: Mapping[str, int]
    """Rows that could not be read, by reason."""
    n_checked: int
    failed: Mapping[str, int]
    """Rows by check that says no; a check that all pass has 0."""


def release_facts(tables: Tables, family: str, partitions: Sequence[str]) -> ReleaseFacts:
    """The facts of a released family. Raises ``TableMissing``."""
    unread: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    n_read = n_checked = 0
    for partition in partitions:
        samples = TableKey(SAMPLES, partition)
        n_read += tables.n_rows(samples)
        unread.update(reject.reason for reject in tables.read_rejects(samples))
        for (checks,) in tables.columns(TableKey((family, "verdicts"), partition), "checks"):
            n_checked += 1
            failed.update({check["name"]: int(not check["passed"]) for check in checks})
    return ReleaseFacts(n_read + unread.total(), n_read, dict(sorted(unread.items())), n_checked, dict(failed))
