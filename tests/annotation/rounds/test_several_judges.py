"""Several experts, or two checkers, judge one record: what counts, and what comes of their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from darkroom.annotation.rounds.campaign import Campaign, Terms, is_selected, terms_of
from darkroom.annotation.rounds.journal_file import AnnotationVersion, RecordTask, TaskRequest
from darkroom.annotation.rounds.state_machine import StateMachine
from darkroom.annotation.rounds.submissions import RecordState, SubmissionReader
from darkroom.pipelines.records.reject_reasons import Reason
from tests.annotation.desk import (
    ANN,
    BOB,
    CEM,
    EVE,
    FAY,
    GUS,
    HAL,
    IDA,
    ITEM,
    PANEL,
    PEOPLE,
    SIZE,
    Desk,
    accepts,
    box,
    fixes,
    record,
    rejects,
)

EXPERTS = (EVE, FAY, GUS, HAL)
SUBMITTED = {
    "accept": accepts(),
    "fix": fixes("43"),
    "other fix": fixes("44"),
    "reject": rejects("ambiguous"),
    "too large": [box(width=90, height=90), *accepts()[:2]],
}
VALID = ("accept", "fix", "other fix", "reject")
TERMS = Terms(0.05, 2, "form")


def accept_terms(n_experts: int, rule: Any = "majority") -> Terms:
    return TERMS._replace(experts_per_record=n_experts, expert_rule=rule)


def play(verdicts: Sequence[tuple[int, str]], terms: Terms, *, first_id: int = 3) -> RecordState:
    """A record that was written and checked, with these submissions of experts, in this order."""
    works = [
        _work("annotate", 1, TERMS, [(1, ANN, record())]),
        _work("cross_check", 2, TERMS, [(2, BOB, accepts())]),
        _work("accept", 3, terms, [(n, p, SUBMITTED[kind]) for n, (p, kind) in enumerate(verdicts, first_id)]),
    ]
    people = {person.person_id: person for person in [*PEOPLE, *PANEL]}
    known = {one.digest: one for one in (TERMS, terms)}
    return StateMachine(people).state(ITEM, SubmissionReader(known, Terms(0.05, 2)).read(works, SIZE))


def _work(round: str, task_id: int, terms: Terms, submitted: Sequence[tuple[int, int, list]]) -> RecordTask:
    work = RecordTask(terms.asked(TaskRequest(round, ITEM, 0, 0)), task_id, 9, terms=terms.digest)
    for number, person, result in submitted:
        raw = {"id": number, "completed_by": person, "updated_by": person, "result": result, "created_at": ""}
        work.versions.append(AnnotationVersion(number, number, str(number), task_id, raw))
    return work


@given(
    st.permutations(EXPERTS).flatmap(
        lambda people: st.tuples(
            *(st.tuples(st.just(person), st.sampled_from(VALID)) for person in people),
        )
    ),
    st.integers(1, 4),
    st.sampled_from(["majority", "unanimity"]),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_verdicts_decides_nothing(verdicts: Any, n_experts: int, rule: str, random: Any) -> None:
    given_ = list(verdicts[:n_experts])
    shuffled = random.sample(given_, n_experts)
    one, other = (play(order, accept_terms(n_experts, rule)) for order in (given_, shuffled))
    assert (one.stage, one.round, one.fields, one.attempt) == (other.stage, other.round, other.fields, other.attempt)
    assert sorted(one.excluded) == sorted(other.excluded)


@given(st.lists(st.sampled_from(VALID), max_size=4), st.integers(1, 4), st.sampled_from(["majority", "unanimity"]))
def test_a_record_waits_for_every_verdict_that_its_terms_ask(kinds: list[str], n_experts: int, rule: str) -> None:
    kinds = kinds[:n_experts]
    state = play(list(zip(EXPERTS, kinds, strict=False)), accept_terms(n_experts, rule))
    assert len([event for event in state.history if event.round == "accept"]) == len(kinds), "every verdict is history"
    if len(kinds) < n_experts:
        assert (state.stage, state.round, state.n_missing) == ("waiting", "accept", n_experts - len(kinds))
        assert state.next_request is None, "its task is out"
        return
    n_same = max(kinds.count(kind) for kind in VALID if kind != "reject") if kinds else 0
    is_accepted = n_same == n_experts if rule == "unanimity" else 2 * n_same > n_experts
    assert (state.stage == "accepted") == is_accepted
    assert is_accepted or (state.round, state.attempt) == ("rework", 1)


@given(st.integers(1, 2), st.sampled_from(["accept", "fix"]))
def test_half_of_an_even_number_is_no_majority(half: int, kind: str) -> None:
    verdicts = list(zip(EXPERTS, [kind] * half + ["reject"] * half, strict=False))
    assert play(verdicts, accept_terms(2 * half)).round == "rework"


@given(st.permutations([*((person, "accept") for person in (EVE, FAY)), (EVE, "accept"), (GUS, "too large")]))
def test_what_does_not_count_takes_no_verdicts_place(submitted: list[tuple[int, str]]) -> None:
    """Twice by one person, and a void one: two of three verdicts, whatever came first."""
    state = play(submitted, accept_terms(3))
    assert (state.stage, state.n_missing) == ("waiting", 1)
    assert sorted(one.reason for one in state.invalid) == [Reason.BREAKS_RULES, Reason.DUPLICATE_SUBMISSION]
    assert state.next_request is not None
    assert (state.next_request.serial, state.next_request.n_wanted) == (1, 1), "one more person is asked"
    assert {ANN, BOB, EVE, FAY} == set(state.excluded)


@pytest.mark.parametrize(("kinds", "events"), [
    (["too large"], []), (["too large", "accept"], ["accept"]), (["accept", "too large"], ["accept"]),
    (["too large", "accept", "accept"], ["accept", "accept", "void"]),
    (["too large", "too large", "accept"], ["accept", "void", "void"]),
])  # fmt: skip
def test_a_void_verdict_is_history_once_the_task_is_over(kinds: list[str], events: list[str]) -> None:
    state = play(list(zip(EXPERTS, kinds, strict=False)), accept_terms(3))
    assert [event.verdict for event in state.history if event.round == "accept"] == events
    assert (state.next_request is None) == (len(kinds) < 3)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A record that waits for three experts."""
    desk = Desk(tmp_path / "annotation", terms=TERMS)
    desk.submit(desk.hand_out(), ANN, record())
    desk.submit(desk.hand_out(), BOB, accepts())
    desk.terms = accept_terms(3)
    return desk


def test_one_of_three_experts_is_overruled_and_stays_in_the_history(desk: Desk) -> None:
    task = desk.hand_out()
    for person, result in ((EVE, accepts()), (FAY, rejects("too_easy")), (GUS, accepts())):
        assert desk.state().stage == "waiting"
        desk.submit(task, person, result)
    state = desk.state()
    assert (state.stage, state.attempt, state.verdicts) == ("accepted", 0, [])
    said = [(event.person, event.verdict) for event in state.history if event.round == "accept"]
    assert said == [("eve@example.com", "accept"), ("fay@example.com", "reject"), ("gus@example.com", "accept")]


def test_the_fix_that_most_experts_made_is_the_record(desk: Desk) -> None:
    task = desk.hand_out()
    for person, result in ((EVE, fixes("43")), (FAY, fixes("43")), (GUS, accepts())):
        desk.submit(task, person, result)
    state = desk.state()
    assert state.fields is not None
    assert (state.stage, state.fields.answer) == ("accepted", "43")


def test_experts_who_fix_in_different_ways_send_the_record_back(desk: Desk) -> None:
    task = desk.hand_out()
    for person, result in ((EVE, fixes("43")), (FAY, fixes("44")), (GUS, accepts())):
        desk.submit(task, person, result)
    state = desk.state()
    assert (state.stage, state.round, state.fields and state.fields.answer) == ("waiting", "rework", "42")
    assert set(state.excluded) == {EVE, FAY, GUS}


def test_a_fourth_expert_comes_too_late(desk: Desk) -> None:
    task = desk.hand_out()
    for person in EXPERTS:
        desk.submit(task, person, accepts() if person != HAL else rejects())
    state = desk.state()
    assert (state.stage, [one.reason for one in state.invalid]) == ("accepted", [Reason.DUPLICATE_SUBMISSION])


def test_a_verdict_may_change_until_the_next_round_begins(desk: Desk) -> None:
    task = desk.hand_out()
    numbers = [desk.submit(task, person, rejects()) for person in (EVE, FAY, GUS)]
    assert desk.state().round == "rework"
    desk.hand_out()
    for number in numbers[1:]:
        desk.edit(task, number, result=accepts())
    state = desk.state()
    assert state.round == "rework", "all verdicts are frozen with the rework, not only the first"
    assert [one.reason for one in state.invalid] == [Reason.LATE_EDIT] * 2


def test_a_void_verdict_is_asked_again_of_somebody_else_and_the_others_stay(desk: Desk) -> None:
    task = desk.hand_out()
    desk.submit(task, EVE, accepts())
    desk.submit(task, ANN, accepts())
    assert desk.state().next_request is None, "somebody may still answer"
    desk.submit(task, FAY, accepts())
    again = desk.hand_out()
    kept = desk.state()
    assert (kept.n_missing, kept.excluded) == (1, [ANN, BOB, EVE, FAY])
    desk.submit(again, EVE, accepts())
    assert desk.state().stage == "waiting", "one person has one verdict"
    desk.submit(desk.hand_out(), GUS, accepts())
    assert desk.state().stage == "accepted"
    assert [event.verdict for event in desk.state().history if event.round == "accept"].count("void") == 2


def test_experts_who_submit_again_and_again_are_not_void(desk: Desk) -> None:
    desk.terms = accept_terms(4)
    for n_wanted, person in zip((4, 3, 2, 1), EXPERTS, strict=True):
        task = desk.hand_out()
        for _ in range(n_wanted):
            desk.submit(task, person, accepts())
    assert desk.state().stage == "accepted"


def test_a_round_whose_tasks_are_void_three_times_gives_the_record_up(desk: Desk) -> None:
    for expected in ("waiting", "waiting", "rejected"):
        task = desk.hand_out()
        for _ in range(3):
            desk.submit(task, ANN, accepts())
        assert desk.state().stage == expected
    assert desk.state().reason == "3 void submissions in accept"


def test_a_skip_leaves_the_place_to_another_expert(desk: Desk) -> None:
    task = desk.hand_out()
    desk.submit(task, HAL, [], was_cancelled=True)
    for person in (EVE, FAY, GUS):
        assert desk.state().stage == "waiting"
        desk.submit(task, person, accepts())
    assert desk.state().stage == "accepted"


def test_a_reworked_record_is_judged_anew_by_all(desk: Desk) -> None:
    task = desk.hand_out()
    for person in (EVE, FAY, GUS):
        desk.submit(task, person, rejects())
    desk.terms = TERMS
    desk.submit(desk.hand_out(), ANN, record("better"))
    desk.submit(desk.hand_out(), CEM, accepts("better"))
    desk.terms = accept_terms(3)
    task = desk.hand_out()
    for person in (EVE, FAY):
        desk.submit(task, person, accepts())
    assert desk.state().stage == "waiting"
    desk.submit(task, HAL, accepts())
    assert (desk.state().stage, desk.state().attempt) == ("accepted", 1)


def test_the_share_checked_twice_is_a_fixed_choice_and_a_larger_one_contains_it() -> None:
    items = [f"{number:064x}" for number in range(2000)]
    chosen = [{item for item in items if is_selected(share, "checked twice", item)} for share in (0, 0.1, 0.3, 1)]
    assert chosen[0] == set()
    assert chosen[0] <= chosen[1] <= chosen[2] <= chosen[3] == set(items)
    assert 150 < len(chosen[1]) < 250


@pytest.mark.parametrize(
    ("first", "second", "round"),
    [
        (accepts(), accepts(), "accept"),
        (fixes("43"), fixes("43"), "accept"),
        (accepts(), fixes("43"), "rework"),
        (accepts(), rejects(), "rework"),
        (rejects(), rejects(), "rework"),
    ],
)
def test_a_record_that_is_checked_twice_passes_when_both_name_the_same_version(
    tmp_path: Path, first: list, second: list, round: str
) -> None:
    desk = Desk(tmp_path, terms=TERMS._replace(checked_twice=1))
    desk.submit(desk.hand_out(), ANN, record())
    task = desk.hand_out()
    desk.submit(task, BOB, first)
    assert (desk.state().round, desk.state().n_missing) == ("cross_check", 1)
    desk.submit(task, IDA, second)
    assert desk.state().round == round
    assert round == "accept" or set(desk.state().excluded) == {BOB, IDA}, "neither of them reworks it"


def test_the_terms_of_a_round_are_its_own() -> None:
    campaign = Campaign(experts_per_record=3, expert_rule="unanimity", checked_twice=0.5)
    plain = Campaign()
    assert [terms_of(campaign, name) == terms_of(plain, name) for name in ("annotate", "rework")] == [True, True]
    assert terms_of(campaign, "accept").changes(terms_of(plain, "accept")) == [
        "experts_per_record 1 -> 3",
        "expert_rule majority -> unanimity",
    ]
    assert terms_of(campaign, "cross_check").changes(terms_of(plain, "cross_check")) == ["checked_twice 0 -> 0.5"]


def test_terms_of_a_version_before_several_experts_ask_one() -> None:
    written = '{"max_share": 0.05, "max_rework": 2, "form": "f", "categories": ["ocr"], "reasons": []}'
    terms = Terms.from_json(written)
    assert [terms.n_verdicts(name, ITEM) for name in ("cross_check", "accept")] == [1, 1]
