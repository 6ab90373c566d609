"""Campaigns whose tasks have computed keys, as versions before random ones gave them, and no secret."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from darkroom.annotation.recordings.campaign_import import RecordedJournal, RecordedServer
from darkroom.annotation.recordings.format import Recording, record as recorded
from darkroom.annotation.rounds import next_tasks
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.doctor import Doctor
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.submissions import RecordState
from darkroom.annotation.rounds.sync import Sync, record_states
from darkroom.pipelines.records import ImageRef, PoolImage
from tests.annotation.desk import ANN, BOB, CEM, EVE, SIZE, accepts, record, rejects
from tests.annotation.memory_studio import MemoryStudio

POOL = [PoolImage(ImageRef(letter * 64, *SIZE, "RGB", "JPEG"), "ours", letter, "CC0-1.0") for letter in "abcd"]
RULES = Campaign(name="c", gold_share=1)


class Old:
    """A journal and its server. Of record a a check with a planted error is open, of b its check; the imports of the
    checks of c and d were killed, c's after the server had it, d's before."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.studio, self.folder = MemoryStudio(), folder
        with monkeypatch.context() as before, Journal(folder) as journal:
            before.setattr(Journal, "_new_key", lambda self, request: request.key("c"))
            before.setattr(Journal, "seed", 0)
            before.setattr(next_tasks, "N_RESERVED", 0)
            self.sync(journal)
            first = sorted(self.studio.tasks)
            self.studio.submit(first[0], ANN, record("40"))
            self.studio.submit(first[1], ANN, record("41"))
            self.sync(journal)
            self.studio.submit(self.check_of("a"), BOB, accepts("40"))
            self.sync(journal)
            self.studio.submit(first[2], ANN, record("42"))
            self.sync_killed(journal, before, Journal, "add_tasks")
            self.studio.submit(first[3], ANN, record("43"))
            self.sync_killed(journal, before, MemoryStudio, "import_tasks")
        with closing(sqlite3.connect(journal.path)) as plain:
            plain.executescript("drop table secret; alter table people drop column is_active; pragma user_version = 3")

    def sync(self, journal: Journal, campaign: Campaign = RULES) -> Counter[str]:
        return Sync(journal, self.studio, campaign, say=lambda text: None).run(POOL)

    def sync_killed(self, journal: Journal, patch: pytest.MonkeyPatch, owner: type, act: str) -> None:
        with patch.context() as killed:
            killed.setattr(owner, act, die)
            with pytest.raises(KeyboardInterrupt):
                self.sync(journal)

    def checks_of(self, letter: str) -> list[int]:
        shown = {n for n, task in self.studio.tasks.items() if task.data["image"].endswith(letter * 64)}
        return sorted(n for n in shown if self.studio.tasks[n].project == 2)

    def check_of(self, letter: str) -> int:
        return self.checks_of(letter)[-1]


def die(*given: object, **more: object) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Old:
    return Old(tmp_path, monkeypatch)


@pytest.fixture
def journal(old: Old) -> Iterator[Journal]:
    with Journal(old.folder) as journal:
        yield journal


def states(journal: Journal, campaign: Campaign = RULES) -> list[RecordState]:
    return [state for _, _, state in record_states(POOL, journal, campaign)]


def test_no_task_goes_out_twice(old: Old, journal: Journal) -> None:
    before = dict(old.studio.tasks)
    assert old.sync(journal) == {"cross_check": 1}, "the one whose import never arrived"
    assert {*old.studio.tasks} - {*before} == {old.check_of("d")}
    assert [len(old.checks_of(letter)) for letter in "abcd"] == [2, 1, 1, 1]
    assert [old.sync(journal) for _ in range(2)] == [{}, {}]
    assert Doctor(journal, old.studio).examine().sentences == []


def test_open_tasks_are_finished_as_they_were_handed_out(old: Old, journal: Journal) -> None:
    old.sync(journal)
    assert [old.studio.tasks[old.check_of(letter)].overlap for letter in "bcd"] == [2, 2, 2]
    for letter, answer in zip("bcd", ("41", "42", "43"), strict=True):
        assert len(old.studio.tasks[old.check_of(letter)].annotations) == 1
        old.studio.submit(old.check_of(letter), BOB, accepts(answer))
    old.studio.submit(old.check_of("a"), CEM, rejects())
    assert old.sync(journal) == {"accept": 3, "cross_check": 3}, "three copies with a planted error"
    assert [len(old.checks_of(letter)) for letter in "abcd"] == [2, 2, 2, 2]
    assert [state.round for state in states(journal)] == ["accept"] * 4
    assert [check.caught for check in states(journal)[0].planted_checks] == [True]


def test_new_tasks_have_random_keys_and_equally_many_annotations(old: Old, journal: Journal) -> None:
    old.sync(journal)
    old.studio.submit(old.check_of("b"), BOB, accepts("41"))
    old.sync(journal)
    planted = old.studio.tasks[old.check_of("b")]
    computed = {work.request.key("c") for _, works in journal.record_tasks(["cross_check"]) for work in works}
    assert planted.data["key"] not in computed
    assert old.studio.tasks[old.check_of("a")].data["key"] in computed, "which nobody is served: see validation.py"
    assert (planted.overlap, len(planted.annotations)) == (3, 2)


def test_a_record_gets_one_planted_error_whatever_the_seed_is(old: Old, journal: Journal) -> None:
    for seed in range(12):
        old.sync(journal, RULES.model_copy(update={"seed": seed}))
        assert len(old.checks_of("a")) == 2


def test_a_recording_gives_the_planted_errors_back(old: Old, journal: Journal, tmp_path: Path) -> None:
    """Neither seed chose both of them: one is of the time before the secret."""
    old.sync(journal)
    old.studio.submit(old.check_of("b"), BOB, accepts("41"))
    old.studio.submit(old.check_of("a"), CEM, rejects())
    old.sync(journal)
    old.studio.submit(old.check_of("b"), CEM, accepts("41"))
    old.sync(journal)
    expected = [state.planted_checks for state in states(journal)]
    assert [len(checks) for checks in expected] == [1, 1, 0, 0]
    rules = RULES.model_copy(update={"gold_share": 0})
    recording = Recording.model_validate(recorded(journal, rules, POOL, note="").model_dump(mode="json"))
    assert recording.tasks[0].key == "d5e4f33fb52b41c57b6a", "as versions before wrote it"
    with RecordedJournal(tmp_path / "replayed", rules) as replayed:
        server, terms = RecordedServer(recording), {task.key: task.terms for task in recording.tasks}
        sync = Sync(replayed, server, rules, say=lambda text: None, recorded_terms=terms)
        while sync.run(POOL) or not server.is_exhausted:
            pass
        found = [state.planted_checks for state in states(replayed, rules)]
    caught = [[(check.error, check.caught) for check in checks] for checks in found]
    assert caught == [[(check.error, check.caught) for check in checks] for checks in expected]


def test_who_skipped_a_check_does_not_get_its_copy_with_a_planted_error(old: Old, journal: Journal) -> None:
    old.sync(journal)
    old.studio.submit(old.check_of("b"), CEM, [], was_cancelled=True)
    old.studio.submit(old.check_of("b"), BOB, accepts("41"))
    old.sync(journal)
    assert {raw["completed_by"] for raw in old.studio.tasks[old.check_of("b")].annotations} == {ANN, BOB, CEM}
    old.studio.submit(old.studio.open_task("accept"), EVE, accepts("41"))
    old.sync(journal)
    assert states(journal)[1].stage == "accepted"
