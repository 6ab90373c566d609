"""Submissions are judged by the rules, the form and the roles in force when their task was handed out."""

from __future__ import annotations

import shutil
import sqlite3
import tarfile
from pathlib import Path

import pytest

from darkroom.annotation import AnnotationError
from darkroom.annotation.recordings.campaign_import import RecordedJournal, RecordedServer
from darkroom.annotation.recordings.format import Recording, record as recorded
from darkroom.annotation.rounds.campaign import Campaign, Terms
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.journal_file import SCHEMA
from darkroom.annotation.rounds.state_machine import StateMachine
from darkroom.annotation.rounds.submissions import ROUNDS, RecordState, SubmissionReader
from darkroom.annotation.rounds.sync import Sync, preview_role, preview_sync, record_states
from darkroom.pipelines.records import ImageRef, PoolImage
from darkroom.pipelines.records.reject_reasons import Reason
from tests.annotation.desk import ANN, BOB, CEM, EVE, PEOPLE, SIZE, accepts, box, record, rejects
from tests.annotation.memory_studio import MemoryStudio

POOL = [PoolImage(ImageRef("a" * 64, *SIZE, "RGB", "JPEG"), "ours", "a", "CC0-1.0")]
RULES = Campaign(name="c", gold_share=0)
ARCHIVE = Path(__file__).parents[2] / "recorded_workspace" / "before_rooms.tar.xz"


class Team:
    """One record's way, synced before and after everything that happens."""

    def __init__(self, folder: Path) -> None:
        self.studio = MemoryStudio()
        self.journal = Journal(folder)
        self.campaign = RULES
        self.said: list[str] = []
        self.sync()

    def sync(self, **changed: object) -> None:
        self.campaign = self.campaign.model_copy(update=changed)
        Sync(self.journal, self.studio, self.campaign, say=self.said.append).run(POOL)

    def state(self) -> RecordState:
        [(_, _, state)] = record_states(POOL, self.journal, self.campaign)
        return state

    def hand_in(self, round: str, person: int, result: list) -> None:
        self.studio.submit(self.studio.open_task(round), person, result)
        self.sync()


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(tmp_path)


def accepted(team: Team) -> RecordState:
    team.hand_in("annotate", ANN, record())
    team.hand_in("cross_check", BOB, accepts())
    team.hand_in("accept", EVE, accepts())
    return team.state()


def test_an_annotator_who_becomes_an_expert_leaves_accepted_records_accepted(team: Team) -> None:
    before = accepted(team)
    assert before.stage == "accepted"
    team.studio.set_role(ANN, "expert")
    team.studio.set_role(BOB, "expert")
    team.studio.set_role(EVE, "annotator")
    team.sync()
    assert team.state() == before
    assert team.studio.n_tasks(4) == 0, "no rework is handed out"


def test_a_role_counts_from_the_hand_out_of_the_task_to_the_submission(team: Team) -> None:
    """Handed in as an annotator, promoted before the next sync; and the other way round."""
    team.studio.submit(team.studio.open_task("annotate"), ANN, record())
    team.studio.set_role(ANN, "expert")
    team.sync()
    assert team.state().round == "cross_check"
    team.studio.set_role(CEM, "expert")
    team.hand_in("cross_check", CEM, accepts())
    assert (team.state().round, team.state().invalid) == ("accept", [])
    team.studio.set_role(BOB, "expert")
    team.hand_in("accept", BOB, accepts())
    assert team.state().stage == "accepted", "the task was open when he became an expert"


def test_a_former_role_does_not_open_tasks_that_were_handed_out_afterwards(team: Team) -> None:
    team.studio.set_role(BOB, "expert")
    team.hand_in("annotate", ANN, record())
    team.sync()
    team.hand_in("cross_check", BOB, accepts())
    assert [one.reason for one in team.state().invalid] == [Reason.WRONG_PERSON]
    assert "bob@example.com is expert" in team.state().invalid[0].evidence


def test_a_closed_account_is_known_as_one_and_its_submissions_count(team: Team) -> None:
    team.studio.submit(team.studio.open_task("annotate"), ANN, record())
    team.studio.accounts = [one._replace(is_active=one.person_id != ANN) for one in team.studio.accounts]
    team.sync()
    assert (team.state().round, team.state().invalid) == ("cross_check", [])
    assert [person.person_id for person in team.journal.people().values() if not person.is_active] == [ANN]


def test_tasks_that_are_out_keep_the_limit_that_their_page_shows(team: Team) -> None:
    large = [box(width=20, height=20), *record()[1:]]  # 4 %
    team.sync(max_share=0.003)
    assert team.studio.tasks[1].data["gate"]["max_share"] == 0.05
    team.hand_in("annotate", ANN, large)
    assert (team.state().round, team.state().invalid) == ("cross_check", [])
    gate = team.studio.tasks[team.studio.open_task("cross_check")].data["gate"]
    assert gate["max_share"] == 0.003, "what is handed out afterwards has the new one"
    rounds = "annotate, cross_check, accept, rework"
    assert f"max_share 0.05 -> 0.003: applies to tasks of {rounds} handed out from now on" in team.said


def test_a_lower_limit_of_reworks_leaves_old_verdicts_as_they_were(team: Team) -> None:
    team.hand_in("annotate", ANN, record())
    team.hand_in("cross_check", BOB, rejects())
    assert team.state().round == "rework"
    team.sync(max_rework=0)
    assert (team.state().stage, team.state().round) == ("waiting", "rework")
    team.hand_in("rework", CEM, record())
    team.hand_in("cross_check", BOB, rejects())
    assert team.state().stage == "rejected", "that check was handed out under the new rule"
    team.sync(max_rework=5)
    assert team.state().stage == "rejected"


def test_options_that_a_new_form_drops_stay_valid_in_tasks_that_are_out(team: Team) -> None:
    [(_, [work])] = team.journal.record_tasks(["annotate"])
    assert "ocr" in team.journal.terms()[work.terms].categories
    team.hand_in("annotate", ANN, record(category="ocr"))
    today = Terms(0.05, 2, "another form", categories=("signs",))
    assert today.changes(team.journal.terms()[work.terms]) == ["a new version of the form"]
    assert team.state().round == "cross_check"


def test_an_import_that_broke_off_goes_out_under_the_terms_of_its_demand(team: Team, tmp_path: Path) -> None:
    """The server may have it already, with its page and its gate."""
    other = Team(tmp_path / "other")
    other.journal.retire_tasks([1])
    other.studio.tasks.clear()
    other.sync(max_share=0.003)
    [task] = other.studio.tasks.values()
    assert task.data["gate"]["max_share"] == 0.05


def test_a_recording_replays_under_the_terms_and_roles_of_its_tasks(team: Team, tmp_path: Path) -> None:
    team.hand_in("annotate", ANN, [box(width=20, height=20), *record()[1:]])
    team.studio.set_role(ANN, "expert")
    team.sync(max_share=0.003)
    team.hand_in("cross_check", BOB, rejects())
    before = team.state()
    assert (before.round, len(before.history)) == ("rework", 2)
    file = recorded(team.journal, team.campaign, POOL, note="").model_dump(mode="json")
    recording = Recording.model_validate(file)
    with RecordedJournal(tmp_path / "replayed", recording.campaign) as journal:
        server, terms = RecordedServer(recording), {task.key: task.terms for task in recording.tasks}
        sync = Sync(journal, server, recording.campaign, say=team.said.append, recorded_terms=terms)
        while sync.run(POOL) or not server.is_exhausted:
            pass
        [(_, _, state)] = record_states(POOL, journal, recording.campaign)
    assert (state.round, state.fields, len(state.history), state.invalid) == ("rework", before.fields, 2, [])


def test_a_dry_run_says_what_new_rules_affect_and_changes_nothing(team: Team) -> None:
    before, n_tasks = team.journal.fingerprint, len(team.studio.tasks)
    preview = preview_sync(team.journal, RULES.model_copy(update={"max_share": 0.003}), POOL)
    assert list(preview.sentences()) == [
        "annotate: max_share 0.05 -> 0.003, for tasks handed out from now on; 1 open task keeps its terms",
        "submitted work keeps its state",
        "would hand out: nothing",
    ]
    assert (team.journal.fingerprint, len(team.studio.tasks)) == (before, n_tasks)
    team.studio.submit(1, ANN, record())
    Sync(team.journal, team.studio, RULES, say=team.said.append).run([])  # pulls, and hands nothing out
    assert preview_sync(team.journal, RULES, POOL).next_tasks == {"cross_check": 1}


def test_a_dry_run_says_what_another_role_affects(team: Team) -> None:
    preview = preview_sync(team.journal, RULES, POOL)
    said = list(preview_role("ann@example.com", "expert", PEOPLE, preview))
    assert said == [
        "ann@example.com: annotator -> expert; what they submitted, and what is handed out, keeps counting",
        "  they no longer open annotate, cross_check, rework; open there: 1 × annotate, for 2 other annotators",
        "  2 annotators are left: a rejected record may find nobody who has not worked on it",
    ]
    assert list(preview_role("zoe@example.com", "expert", PEOPLE, preview)) == ["zoe@example.com: new account, expert"]
    assert list(preview_role("ann@example.com", "checker", PEOPLE, preview))[1:] == [
        "  they no longer open annotate, rework; open there: 1 × annotate, for 2 other annotators"
    ]
    alone = [one for one in PEOPLE if one.person_id != 6]
    assert "  nobody is left for accept" in list(preview_role("eve@example.com", "annotator", alone, preview))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The folder of a journal that a version before terms wrote."""
    with tarfile.open(ARCHIVE) as archive:
        member = archive.getmember("./annotation/journal.sqlite")
        archive.extract(member, tmp_path, filter="data")
    return tmp_path / "annotation"


def states(journal: Journal, campaign: Campaign = RULES) -> list[tuple[str, str, int]]:
    reader = SubmissionReader(journal.terms(), Terms(campaign.max_share, campaign.max_rework))
    machine = StateMachine(journal.people())
    found = [machine.state(item, reader.read(works, SIZE)) for item, works in journal.record_tasks(ROUNDS)]
    return [(state.stage, state.round, len(state.history)) for state in found]


def know_projects(studio: MemoryStudio, journal: Journal) -> None:
    for round in journal.rounds():
        project = journal.project(round)
        assert project is not None
        studio.projects[project.project_id] = (round, 1)


def test_an_old_journal_is_migrated_once_and_reads_as_before(old: Path) -> None:
    with sqlite3.connect(old / "journal.sqlite") as plain:
        before = {name: plain.execute(f"select count(*) from {name}").fetchone() for name in ("demands", "revisions")}
        assert plain.execute("pragma user_version").fetchone() == (0,)
    with Journal(old) as journal:
        first = states(journal)
        assert ("accepted", "accept", 3) in first
    with Journal(old) as journal, sqlite3.connect(old / "journal.sqlite") as plain:
        assert states(journal) == first
        assert plain.execute("pragma user_version").fetchone() == (SCHEMA,)
        assert {name: plain.execute(f"select count(*) from {name}").fetchone() for name in before} == before


def test_an_old_journals_records_stay_when_roles_and_rules_change_later(old: Path) -> None:
    with Journal(old) as journal:
        before, people = states(journal), list(journal.people().values())
        studio = MemoryStudio(accounts=people)
        know_projects(studio, journal)
        Sync(journal, studio, RULES, say=lambda text: None).run([])
        for person in people:
            studio.set_role(person.person_id, "expert" if person.role == "annotator" else "annotator")
        strict = RULES.model_copy(update={"max_share": 1e-6, "max_rework": 0})
        Sync(journal, studio, strict, say=lambda text: None).run([])
        assert states(journal, strict) == before


def test_old_tasks_keep_the_limit_that_the_server_has(old: Path) -> None:
    with Journal(old) as journal:
        studio = MemoryStudio(accounts=list(journal.people().values()))
        know_projects(studio, journal)
        project = journal.project("annotate")
        assert project is not None
        first = journal.without_terms("annotate")[0]
        studio.import_tasks(project.project_id, [{"data": {"key": first, "gate": {"max_share": 0.2}}}])
        Sync(journal, studio, RULES, say=lambda text: None).run([])
        assert {terms.max_share for terms in journal.terms().values()} >= {0.2, 0.05}


def test_a_kill_while_migrating_leaves_the_old_file(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(old / "journal.sqlite", old / "before.sqlite")
    monkeypatch.setattr("darkroom.annotation.rounds.journal_file.TABLES", "create table nonsense")
    with pytest.raises(AnnotationError, match="cannot be opened"):
        Journal(old)
    monkeypatch.undo()
    with Journal(old) as journal:
        assert ("accepted", "accept", 3) in states(journal)


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    Journal(tmp_path)._db.execute("pragma user_version = 99")
    with pytest.raises(AnnotationError, match=r"newer version of Darkroom \(schema 99"):
        Journal(tmp_path)
