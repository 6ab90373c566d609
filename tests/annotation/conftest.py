"""What tests of annotation share: a desk, events and states written down by hand, and one campaign played out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from darkroom.annotation.label_studio.server import TOKEN, URL
from darkroom.annotation.quality.metrics import Quality, measure
from darkroom.annotation.rounds.submissions import RecordFields, RecordState
from darkroom.pipelines.records import AnnotationEvent, FieldChange
from darkroom.pipelines.records.geometry import Box
from tests.annotation.desk import Desk
from tests.annotation.simulation import Campaign, simulate
from tests.json_endpoint import ScriptedServer

WRITTEN = RecordFields("What is it?", "a heron", "object", None, (Box(0, 0, 10, 10),))
Event = Callable[..., AnnotationEvent]
MakeState = Callable[..., RecordState]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """One item on its way, without a server."""
    return Desk(tmp_path / "annotation")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """Answers as Label Studio with what a test scripts; the environment names it."""
    monkeypatch.setenv(TOKEN, "token")
    with ScriptedServer([]).serving() as server:
        monkeypatch.setenv(URL, server.url)
        yield server


@pytest.fixture
def event() -> Event:
    """``event("cross_check", "bo", "fix", changes=[("answer", "a", "b")], at="09:30")``, and more by name."""

    def make(round_: str, person: str, verdict: str = "", /, **more: Any) -> AnnotationEvent:
        changes = tuple(FieldChange(*change) for change in more.pop("changes", ()))
        at = f"2026-03-02T{more.pop('at')}:00Z" if "at" in more else ""
        known = {"attempt": 0, "lead_seconds": None, "reasons": (), "comment": "", "blind_answer": ""}
        known |= {"blind_match": None, "task_id": 1, "annotation_id": 1, **more}
        return AnnotationEvent(round=round_, person=person, verdict=verdict, at=at, changes=changes, **known)

    return make


@pytest.fixture
def state() -> MakeState:
    """A state with these events; it stands where the last one left it unless told otherwise."""

    def make(*events: AnnotationEvent, **more: Any) -> RecordState:
        last = next((event for event in reversed(events) if event.verdict != "void"), None)
        if last is not None and "stage" not in more:
            is_accepted = last.round == "accept" and last.verdict != "reject"
            following = {"annotate": "cross_check", "rework": "cross_check"}.get(last.round, "accept")
            more = {"round": "rework" if last.verdict == "reject" else following, **more}
            more |= {"stage": "accepted"} if is_accepted else {}
        return RecordState(more.pop("item_id", "item"), history=list(events), **more)

    return make


@pytest.fixture(scope="session")
def campaign() -> Campaign:
    return simulate()


@pytest.fixture(scope="session")
def quality(campaign: Campaign) -> Quality:
    return measure(campaign.states, blocked=campaign.hits, people=campaign.people)
