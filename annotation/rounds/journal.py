"""The journal: requested work and all submissions, stored before anything is derived from them.

One SQLite file in the campaign's folder. A *demand* is requested work (one round of one item); it is stored before its
task goes to the server, so that a sync interrupted in between finds the task by its ``key`` and imports nothing twice.
A *revision* is one state of one annotation, as the server returned it; nothing is overwritten. Record states are
derived (``annotation/rounds/state_machine.py``), never stored; what they are judged by is: the *terms* of a demand, and
the roles that the signer of a revision had from the hand-out of its task on.
"""

from collections.abc import Mapping

from darkroom.annotation.rounds.journal_demands import DemandJournal
from darkroom.annotation.rounds.journal_entries import Demand, Revision, RoundProject, StoredTask, Work
from darkroom.annotation.rounds.journal_submissions import SubmissionJournal
from darkroom.pipelines.records.digest import digest

__all__ = ["Demand", "Journal", "Revision", "RoundProject", "StoredTask", "Work"]


class Journal(DemandJournal, SubmissionJournal):
    """The journal of one campaign. Use it as a context manager."""

    @property
    def settled(self) -> str:
        """Digest of the situation for which the last complete sync handed out all work; empty before the first."""
        row = self._db.execute("select digest from settled").fetchone()
        return row[0] if row else ""

    def touched(self) -> set[str]:
        """The items whose work changed since then."""
        return {row[0] for row in self._db.execute("select item_id from touched")}

    def set_settled(self, digest: str, stages: Mapping[str, tuple[str, str]], *, complete: bool) -> None:
        """A sync handed out all work; ``stages`` (stage and round) are those of all records, or of the touched ones."""
        with self.transaction():
            if complete:
                self._db.execute("delete from progress")
            rows = ((item_id, *stage) for item_id, stage in stages.items())
            self._db.executemany("insert or replace into progress values (?, ?, ?)", rows)
            self._db.execute("delete from touched")
            self._db.execute("insert or replace into settled values (1, ?)", (digest,))

    def progress(self) -> list[tuple[str, str, int]]:
        """Stage, round and number of records, as of the last complete sync."""
        query = "select stage, round, count(*) from progress group by stage, round order by min(item_id)"
        return list(self._db.execute(query))

    @property
    def fingerprint(self) -> str:
        """Changes with every entry."""
        counts = [
            self._db.execute(f"select count(*) from {table}").fetchone()[0]
            for table in ("demands", "tasks", "retired", "revisions", "gone", "hits")
        ]
        return digest([*counts, [list(person) for person in self.people().values()]])
