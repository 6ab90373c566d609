"""What the server lost is named, and handed out again; what was submitted stays."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from darkroom.annotation.rounds.doctor import Doctor, DoctorReport
from tests.annotation.desk import ADMIN, ANN, BOB, CEM, EVE, PEOPLE, accepts, box, record, rejects
from tests.annotation.rounds.test_terms import Team, accepted


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(tmp_path)


def examine(team: Team) -> DoctorReport:
    return Doctor(team.journal, team.studio).examine()


def repair(team: Team) -> None:
    doctor = Doctor(team.journal, team.studio)
    doctor.repair(doctor.examine())
    team.sync()


def test_a_sound_campaign_has_nothing_to_say(team: Team) -> None:
    accepted(team)
    assert examine(team).sentences == []


def test_a_lock_that_nobody_holds_is_named_by_the_doctor_and_released_by_repair_and_sync(team: Team) -> None:
    team.studio.unheld = [3, 9]
    said = [line for line in examine(team).sentences if line.startswith("annotate")]
    released = "locked by people who do not work on them; the next sync or --repair releases them"
    assert said == [f"annotate, project 1: 2 tasks {released} (3, 9)"]
    Doctor(team.journal, team.studio).repair(examine(team))
    assert examine(team).sentences == []
    team.studio.unheld = [3]
    team.sync()
    assert examine(team).sentences == []


def test_a_task_that_an_admin_deleted_is_named_and_handed_out_again(team: Team) -> None:
    team.hand_in("annotate", ANN, record())
    lost = team.studio.open_task("cross_check")
    team.studio.delete_task(lost)
    team.sync()
    assert any("cross_check: 1 task is missing" in line and "doctor --repair" in line for line in team.said)
    assert examine(team).sentences == [
        f"cross_check, project 2: 1 task missing, unfinished; --repair hands it out again ({lost})"
    ]
    repair(team)
    assert team.studio.open_task("cross_check") > lost
    team.hand_in("cross_check", BOB, accepts())
    assert team.state().round == "accept"
    assert examine(team).sentences == []


@pytest.mark.parametrize("n_skips", [1, 2])
def test_skips_of_a_lost_task_stay_in_its_history(team: Team, n_skips: int) -> None:
    for person in (ANN, BOB)[:n_skips]:
        team.studio.submit(1, person, [], was_cancelled=True)
    team.sync()
    before = team.state().skipped_by
    team.studio.delete_task(1)
    repair(team)
    team.hand_in("annotate", CEM, record())
    assert team.state().skipped_by == before
    assert team.state().round == "cross_check"


def test_finished_work_that_the_server_lost_is_kept_and_said_once(team: Team) -> None:
    before = accepted(team)
    team.studio.tasks.clear()
    assert all("finished; what was submitted is kept" in line for line in examine(team).sentences)
    repair(team)
    assert team.state() == before
    team.said.clear()
    team.sync()
    assert (team.said, examine(team).sentences, team.studio.tasks) == ([], [], {})


def test_a_project_that_is_gone_is_created_and_its_unfinished_work_handed_out(team: Team) -> None:
    team.hand_in("annotate", ANN, record())
    team.studio.submit(team.studio.open_task("cross_check"), CEM, [], was_cancelled=True)
    team.sync()
    lost = team.studio.open_task("cross_check")
    del team.studio.projects[2], team.studio.tasks[lost]
    team.studio.projects[9] = ("another team's", 1)
    assert "the project is missing" in examine(team).sentences[0]
    repair(team)
    team.hand_in("cross_check", BOB, accepts())
    assert team.state().round == "accept"


def test_a_task_whose_data_were_changed_is_replaced_unless_somebody_worked_on_it(team: Team) -> None:
    team.studio.tasks[1].data = team.studio.tasks[1].data | {"gate": {}}
    assert "1 task with other data than were handed out" in examine(team).sentences[0]
    repair(team)
    [task] = team.studio.tasks.values()
    assert task.data["gate"]["max_share"] == 0.05
    team.hand_in("annotate", ANN, record())
    written = team.studio.open_task("annotate")
    team.studio.tasks[written].data = team.studio.tasks[written].data | {"image": "x"}
    repair(team)
    assert written in team.studio.tasks, "people have to look at it"
    assert len(examine(team).sentences) == 1


def test_foreign_tasks_and_people_are_named_and_left_alone(team: Team) -> None:
    [foreign] = team.studio.import_tasks(1, [{"data": {"key": "another team's"}}])
    team.studio.accounts = [one for one in PEOPLE if one.person_id not in (ADMIN, BOB)]
    team.studio.accounts[0] = team.studio.accounts[0]._replace(email="anna@example.com", role="")
    assert examine(team).sentences == [
        "annotate, project 1: 1 task that this campaign did not hand out; remove it in Label Studio if nobody needs it "
        f"({foreign})",
        "people: admin@example.com, bob@example.com: the account is missing on the server; what they submitted is kept",
        "people: ann@example.com is now anna@example.com: the address was changed",
        "people: anna@example.com: no role, so no task; give them one with `darkroom annotate users add`",
    ]
    repair(team)
    assert foreign in team.studio.tasks


def test_a_changed_overlap_is_set_again(team: Team) -> None:
    """With more annotations asked for than people are excluded, a record would be checked twice; with fewer, never."""
    team.hand_in("annotate", ANN, record())
    task = team.studio.open_task("cross_check")
    team.studio.tasks[task].overlap = 1
    assert "another number of annotations" in examine(team).sentences[0]
    repair(team)
    assert team.studio.tasks[task].overlap == 3


def test_a_submission_under_a_clock_that_was_wrong_by_hours_comes_in(team: Team) -> None:
    """It is older than the last pull by the server's clock, which was set right again before the next pull."""
    team.studio.submit(1, ANN, record())
    team.studio.tasks[1].updated_at -= timedelta(hours=9)
    team.sync()
    assert team.state().round == "cross_check"


def test_submissions_before_the_watermark_are_received(team: Team) -> None:
    """A restored server counts its annotations from a lower number than the journal has, and its clock was wrong."""
    with team.journal.transaction():
        team.journal.add_versions(99, [{"id": 10**6, "completed_by": ANN, "result": []}])
    team.studio.submit(1, ANN, record())
    team.studio.tasks[1].updated_at -= timedelta(hours=9)
    team.sync()
    assert team.state().round == "annotate"
    assert "submissions that were not received yet" in examine(team).sentences[0]
    repair(team)
    assert team.state().round == "cross_check"


def test_a_clock_that_was_set_back_loses_no_submission(team: Team) -> None:
    team.studio.clock -= timedelta(hours=5)
    team.hand_in("annotate", ANN, record())
    assert team.state().round == "cross_check"


def test_the_rework_after_a_void_submission_comes_in(team: Team) -> None:
    """It excludes nobody, so that its submission is the task's only annotation."""
    team.hand_in("annotate", ANN, [box(width=40, height=40), *record()[1:]])
    assert team.state().round == "rework"
    team.hand_in("rework", ANN, record())
    assert team.state().round == "cross_check"


@pytest.mark.parametrize("at", ["retire_tasks", "set_lost", "set_project"])
def test_a_repair_that_is_killed_is_repeated(team: Team, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    team.hand_in("annotate", ANN, record())
    team.hand_in("cross_check", BOB, rejects())
    for number in list(team.studio.tasks):
        team.studio.delete_task(number)

    def die(*given: object, **more: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(team.journal), at, die)
        with pytest.raises(KeyboardInterrupt):
            repair(team)
    repair(team)
    assert examine(team).sentences == []
    team.hand_in("rework", CEM, record())
    team.hand_in("cross_check", BOB, accepts())
    team.hand_in("accept", EVE, accepts())
    assert team.state().stage == "accepted"
