"""What the campaign's lead is told, and that every command that it names is one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.quality.metrics import measure
from darkroom.annotation.quality.progress import TEXTS, CampaignFinding
from darkroom.annotation.quality.report import render
from darkroom.annotation.rounds.submissions import PlantedErrorCheck
from tests.command_lines import ANNOTATE as app
from tests.json_endpoint import ScriptedServer

ANN, BO, EVE = (
    Person(2, "ann", "Ann", "annotator"),
    Person(3, "bo", "Bo", "annotator"),
    Person(5, "eve", "Eve", "expert"),
)
TEAM = [ANN, BO, EVE]
NOW = "2026-03-09T12:00:00Z"


def kinds(states, **more) -> list[tuple[str, str]]:
    return [(found.kind, found.subject) for found in measure(states, as_of=NOW, **{"people": TEAM, **more}).findings]


def at(event, day, hour=10):
    return replace(event, at=f"2026-03-{day:02}T{hour:02}:00:00Z")


def test_a_round_that_nobody_can_do_is_named_with_the_role(event, state):
    waiting = state(at(event("annotate", "ann"), 9), at(event("cross_check", "bo", "accept"), 9))
    (found,) = measure([waiting], people=[ANN, BO], as_of=NOW).findings
    assert found.sentence == "1 waiting for accept, and nobody has the role"
    assert found.command == "darkroom annotate users add EMAIL --role expert"
    closed = EVE._replace(is_active=False)
    assert kinds([waiting], people=[ANN, BO, closed]) == [("nobody", "accept")]


def test_a_record_that_waits_for_more_than_three_days_is_named(event, state):
    def waiting(day):
        return state(at(event("annotate", "ann"), day), at(event("cross_check", "bo", "accept"), day))

    busy = state(at(event("accept", "eve", "accept"), 9), at(event("annotate", "ann"), 9), stage="accepted")
    assert kinds([waiting(7), busy]) == []
    found = next(found for found in measure([waiting(6), waiting(7), busy], people=TEAM, as_of=NOW).findings)
    assert found.sentence == "2 waiting for accept, which 1 may do; the oldest since 2026-03-06"


def test_who_does_nothing_while_records_wait_is_idle_and_who_never_came_gets_a_password(event, state):
    zoe = Person(9, "zoe", "Zoe", "annotator")
    states = [state(at(event("annotate", "ann"), 1)), state(at(event("annotate", "bo"), 8)), state(authors=[])]
    found = {each.subject: each for each in measure(states, people=[*TEAM, zoe], as_of=NOW).findings}
    assert set(found) == {"ann", "zoe", "cross_check"}
    assert found["ann"].sentence == "ann: no submission since 2026-03-01, and 3 waiting that they may do"
    assert found["ann"].command == "darkroom annotate users remove ann"
    assert (found["zoe"].kind, found["zoe"].command) == ("absent", "darkroom annotate users password zoe")


def test_nobody_is_idle_while_nothing_waits_for_them_or_in_the_first_days(event, state):
    done = state(at(event("annotate", "ann"), 1), at(event("accept", "eve", "accept"), 1), stage="accepted")
    assert kinds([done]) == []
    assert kinds([state(), state()]) == [], "nobody has begun"
    mine = state(at(event("annotate", "ann"), 9), authors=[2])
    assert kinds([mine, done], people=[ANN, EVE]) == [], "she wrote it"


def test_a_campaign_where_nobody_works_is_one_finding_and_not_one_for_each_person(event, state):
    states = [state(at(event("annotate", "ann"), 3)), state(at(event("annotate", "bo"), 4)), state()]
    found = [each for each in measure(states, people=TEAM, as_of=NOW).findings if each.kind != "waits"]
    assert [each.sentence for each in found] == ["everybody: no submission since 2026-03-04, and 3 waiting"]
    assert kinds([state(at(event("accept", "eve", "accept"), 1), stage="accepted")]) == [], "nothing waits"


def test_a_check_of_a_planted_error_is_work(event, state):
    planted = [PlantedErrorCheck("moved_box", "bo", True, "2026-03-08T10:00:00Z")]
    assert kinds([state(at(event("annotate", "ann"), 9), planted_checks=planted)]) == []


def test_who_is_blocked_again_and_again_is_stuck_until_a_submission_is_valid(event, state):
    def blocked(hour, person="bo"):
        return {
            "person": person,
            "task_id": 1,
            "problems": ["Draw a box.", "Say more."],
            "at": f"2026-03-09T{hour:02}:00:00+00:00",
        }

    states = [state(at(event("annotate", "bo"), 9, hour=9), stage="accepted")]
    assert kinds(states, blocked=[blocked(7), blocked(8), blocked(10), blocked(11)]) == []
    found = measure(
        states, blocked=[blocked(10), blocked(10), blocked(11), blocked(11, "")], people=TEAM, as_of=NOW
    ).findings
    assert [each.sentence for each in found] == [
        "bo: 3 submissions blocked since the last valid one: Draw a box. Say more."
    ]
    assert kinds([], blocked=[blocked(7, "new")] * 3) == [("stuck", "new")]


def test_who_takes_less_than_a_third_of_the_others_time_is_named(event, state):
    def wrote(person, seconds, n=10):
        return [state(at(event("annotate", person, lead_seconds=seconds), 9), stage="rejected") for _ in range(n)]

    assert kinds([*wrote("ann", 300.0), *wrote("bo", 240.0), *wrote("jo", 100.0)]) == []
    found = measure([*wrote("ann", 300.0), *wrote("bo", 240.0), *wrote("jo", 80.0)], as_of=NOW).findings
    assert [each.sentence for each in found if each.kind == "fast"] == [
        "jo, annotate: 80 s, the median of 10; 2 others take 270 s"
    ]
    few = kinds([*wrote("ann", 300.0), *wrote("bo", 240.0), *wrote("jo", 9.0, n=9)])
    assert [kind for kind, _ in few if kind == "fast"] == []


def test_a_played_campaign_names_who_waves_everything_through(quality):
    found = {(each.kind, each.subject.partition("@")[0]) for each in quality.findings}
    assert {("fast", "jonas"), ("outlier", "jonas")} <= found
    assert {name for kind, name in found if kind == "fast"} == {"jonas"}


def test_a_name_with_braces_or_markup_stays_a_name(event, state):
    name = "{share.__class__}</code><img src=x>"
    many = [state(at(event("annotate", name, lead_seconds=1.0), 9), stage="rejected") for _ in range(10)]
    others = [
        state(at(event("annotate", who, lead_seconds=100.0), 9), stage="rejected") for who in "ab" for _ in range(10)
    ]
    quality = measure([*many, *others], as_of=NOW)
    assert any(each.subject == name and each.sentence.startswith(name) for each in quality.findings)
    assert "<img" not in render(quality)


@pytest.mark.parametrize("kind", [kind for kind in TEXTS if kind != "measures"])
def test_every_command_runs(kind: str, server: ScriptedServer, tmp_path: Path) -> None:
    """Against a server that has the account."""
    account = {"id": 2, "email": "ann@example.com", "name": "Ann", "role": "annotator", "is_active": True, "token": "x"}
    server.answers = [(200, {"people": [account]}), (200, {"n_released": 0, **account}), (200, {"people": [account]})]
    command = TEXTS[kind]["command"].format(subject="ann@example.com", role="annotator")
    program, group, *words = command.replace("EMAIL", "ann@example.com").split()
    said = CliRunner().invoke(app, words)
    assert (program, group, said.exit_code) == ("darkroom", "annotate", 0), said.output
    assert said.output


def test_every_finding_is_on_the_page_with_its_command(quality):
    page = render(quality)
    assert quality.findings
    assert all(found.sentence in page and f"<code>{found.command}</code>" in page for found in quality.findings)
    assert all(isinstance(found, CampaignFinding) for found in quality.findings)
