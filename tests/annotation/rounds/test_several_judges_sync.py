"""Several judges of a record through a sync: how many get its task, and when terms and people change."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.rounds.campaign import Campaign, Terms, is_selected
from darkroom.annotation.rounds.doctor import Doctor
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.journal_file import SCHEMA
from darkroom.annotation.rounds.state_machine import StateMachine
from darkroom.annotation.rounds.submissions import ROUNDS, SubmissionReader
from tests.annotation.desk import ADMIN, ANN, BOB, CEM, EVE, FAY, GUS, PANEL, PEOPLE, SIZE, accepts, record, rejects
from tests.annotation.rounds.test_several_judges import EXPERTS, SUBMITTED, accept_terms, play
from tests.annotation.rounds.test_terms import Team

SCHEMA_1 = Path(__file__).with_name("journal_of_schema_1.sql")


@pytest.fixture
def fresh(tmp_path: Path) -> Team:
    """A record that is to be written, in a campaign for three experts."""
    team = Team(tmp_path)
    team.studio.accounts = [*PEOPLE, *PANEL]
    team.sync(experts_per_record=3)
    return team


@pytest.fixture
def team(fresh: Team) -> Team:
    """A record that waits for three experts."""
    team = fresh
    team.hand_in("annotate", ANN, record())
    team.hand_in("cross_check", BOB, accepts())
    return team


def test_one_admin_holds_the_seat_of_a_check_that_is_free_for_the_copy(tmp_path: Path) -> None:
    """A check and its copy with a planted error exclude as many people, or a task would tell which one it is."""
    team = Team(tmp_path)
    team.studio.accounts = [*PEOPLE, Person(20, "second@example.com", "second", "admin")]
    team.sync()
    team.hand_in("annotate", ANN, record())
    task = team.studio.tasks[team.studio.open_task("cross_check")]
    assert sorted(one["completed_by"] for one in task.annotations) == [ADMIN, ANN]
    assert task.overlap == 2 + 1


def test_one_task_is_for_three_experts_and_excludes_who_worked_on_the_record(team: Team) -> None:
    task = team.studio.tasks[team.studio.open_task("accept")]
    assert [one["completed_by"] for one in task.annotations] == [ANN, BOB]
    assert task.overlap == 2 + 3
    for person in (EVE, FAY, GUS):
        assert team.state().stage == "waiting"
        team.hand_in("accept", person, accepts())
    assert team.state().stage == "accepted"
    assert team.studio.n_tasks(3) == 1, "each of them got the same task"


@pytest.mark.parametrize(
    ("people", "kinds", "syncs"),
    [
        ((GUS, EVE, FAY), ("accept", "reject", "accept"), (True, True, False)),
        ((FAY, GUS, EVE), ("fix", "accept", "fix"), (False, False, True)),
        ((EVE, FAY, GUS), ("reject", "fix", "other fix"), (False, True, False)),
    ],
)
@pytest.mark.parametrize("rule", ["majority", "unanimity"])
def test_whenever_a_sync_comes_the_record_ends_the_same(
    fresh: Team, people: tuple[int, ...], kinds: tuple[str, ...], syncs: tuple[bool, ...], rule: str
) -> None:
    team = fresh
    team.sync(expert_rule=rule)
    team.hand_in("annotate", ANN, record())
    team.hand_in("cross_check", BOB, accepts())
    task = team.studio.open_task("accept")
    for person, kind, is_synced in zip(people, kinds, syncs, strict=False):
        assert team.state().stage == "waiting"
        team.studio.submit(task, person, SUBMITTED[kind])
        if is_synced:
            team.sync()
    team.sync()
    expected = play(list(zip(EXPERTS, kinds, strict=False)), accept_terms(3, rule))
    state = team.state()
    assert (state.stage, state.round, state.fields) == (expected.stage, expected.round, expected.fields)
    assert len([event for event in state.history if event.round == "accept"]) == 3


def test_what_was_handed_out_to_one_expert_is_accepted_by_one(tmp_path: Path) -> None:
    team = Team(tmp_path)
    team.studio.accounts = [*PEOPLE, *PANEL]
    team.hand_in("annotate", ANN, record())
    team.hand_in("cross_check", BOB, accepts())
    team.sync(experts_per_record=3)
    assert "experts_per_record 1 -> 3: applies to tasks of accept handed out from now on" in team.said
    team.hand_in("accept", EVE, accepts())
    assert team.state().stage == "accepted"
    team.sync(experts_per_record=2, expert_rule="unanimity")
    assert team.state().stage == "accepted"


def test_three_experts_stay_three_when_the_campaign_asks_for_one(team: Team) -> None:
    team.hand_in("accept", EVE, accepts())
    team.sync(experts_per_record=1)
    assert (team.state().stage, team.state().n_missing) == ("waiting", 2)
    team.hand_in("accept", BOB, accepts())  # no expert: void
    team.hand_in("accept", FAY, accepts())
    task = team.studio.tasks[team.studio.open_task("accept")]
    assert (len(task.annotations), task.overlap) == (4, 5), "one is missing, and four have worked on it"
    team.hand_in("accept", GUS, accepts())
    assert team.state().stage == "accepted"


def test_the_copy_with_a_planted_error_goes_to_one_person(tmp_path: Path) -> None:
    team = Team(tmp_path)
    team.sync(experts_per_record=3, gold_share=1, checked_twice=1)
    assert is_selected(1, "gold", "c", "a" * 64)
    team.hand_in("annotate", ANN, record("40"))
    assert team.studio.tasks[team.studio.open_task("cross_check")].overlap == 2 + 2, "author and admin are reserved"
    team.hand_in("cross_check", BOB, accepts())
    team.hand_in("cross_check", CEM, accepts())
    copy = team.studio.tasks[team.studio.open_task("cross_check")]
    assert ([one["completed_by"] for one in copy.annotations], copy.overlap) == ([ANN, BOB, CEM], 4)


def test_a_task_that_was_deleted_between_two_verdicts_goes_out_for_the_missing_ones(team: Team) -> None:
    team.hand_in("accept", EVE, accepts())
    team.studio.delete_task(team.studio.open_task("accept"))
    doctor = Doctor(team.journal, team.studio)  # type: ignore[arg-type]
    assert "1 task missing, unfinished" in doctor.examine().sentences[0]
    doctor.repair(doctor.examine())
    team.sync()
    task = team.studio.tasks[team.studio.open_task("accept")]
    assert ([one["completed_by"] for one in task.annotations], task.overlap) == ([ANN, BOB, EVE], 5)
    team.hand_in("accept", FAY, accepts())
    team.hand_in("accept", GUS, rejects())
    state = team.state()
    assert (state.stage, state.invalid) == ("accepted", [])
    assert [event.verdict for event in state.history if event.round == "accept"] == ["accept", "accept", "reject"]
    assert doctor.examine().sentences == []


def test_who_leaves_has_judged_and_another_expert_takes_the_open_place(team: Team) -> None:
    """A removed account keeps its role and its submissions; its open tasks go to others (departures.py)."""
    team.hand_in("accept", EVE, accepts())
    team.hand_in("accept", FAY, accepts())
    team.studio.accounts = [one for one in team.studio.accounts if one.person_id != EVE]
    team.hand_in("accept", GUS, accepts())
    state = team.state()
    assert (state.stage, state.invalid) == ("accepted", [])
    assert {event.person for event in state.history} >= {"eve@example.com", "gus@example.com"}


def test_a_rework_shows_the_reasons_of_all_who_spoke_against_the_record(team: Team) -> None:
    team.hand_in("accept", EVE, rejects("too_easy"))
    team.hand_in("accept", FAY, accepts())
    team.hand_in("accept", GUS, rejects("bad_box"))
    shown = team.studio.tasks[team.studio.open_task("rework")].data["reasons"]
    assert "Answerable without looking closer" in shown
    assert "Box misses the object" in shown


def test_a_journal_of_the_version_before_several_experts_reads_as_before(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "journal.sqlite") as file:
        file.executescript(SCHEMA_1.read_text())
        assert file.execute("pragma user_version").fetchone() == (1,)
    asked = Campaign(name="c", gold_share=0, experts_per_record=3, checked_twice=1)
    with Journal(tmp_path) as journal:
        machine, reader = (
            StateMachine(journal.people()),
            SubmissionReader(journal.terms(), Terms(asked.max_share, asked.max_rework)),
        )
        states = {
            item[0]: machine.state(item, reader.read(works, SIZE)) for item, works in journal.record_tasks(ROUNDS)
        }
        assert {item: (state.stage, state.round, state.attempt) for item, state in states.items()} == {
            "a": ("accepted", "accept", 0),
            "b": ("waiting", "rework", 1),
            "c": ("waiting", "accept", 0),
        }
        assert states["c"].next_request is None, "its task is out, for one expert"
    with Journal(tmp_path), sqlite3.connect(tmp_path / "journal.sqlite") as file:
        assert file.execute("pragma user_version").fetchone() == (SCHEMA,)
        assert file.execute("select distinct n_wanted, bases from demands").fetchall() == [(1, "")]
