"""Pass rates: what is too easy goes with its counts, what is never solved stays and says so."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from darkroom.pipelines.models.policies import Completion, PolicyUnavailable
from darkroom.pipelines.records import PassRate, Sample, Truth
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.rl.candidates import Candidates, turn_of
from darkroom.pipelines.rl.labels import CheckedLabels
from darkroom.pipelines.rl.pass_rates import ASSET, PassRates
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.storage.tables import TableStale
from tests.matrices import fewer_quickly
from tests.pipelines.rl.shards import N_PROBLEMS, N_SIGNS, Questions, answering, judging, source_row, taken_in
from tests.pipelines.scripted import Scripted


def student(n_right: dict[str, int]):
    """Right in so many of its answers to the row, wrong in the later ones."""

    def right(turn):
        first = turn_of(turn.task.sample, "pass_rate").seed
        return turn.seed - first < n_right.get(source_row(turn), 4)

    return answering(right)


def rows(shard):
    samples = shard.samples()
    found = shard.workspace.tables.read(shard.key(ASSET), PassRate)
    return {samples[row.sample_id].source_row: row for row in found}


def rejects(shard):
    return shard.workspace.tables.read_rejects(shard.key(ASSET))


def test_what_is_always_solved_goes_and_keeps_its_counts(checked):
    checked.materialize(PassRates(student=student({"sign/0": 8, "sum/0": 7})))
    (out,) = rejects(checked)
    assert (out.source_row, out.reason) == ("sign/0", Reason.TOO_EASY)
    assert json.loads(out.row)["votes"]["ballots"] == [True] * 8
    assert rows(checked)["sum/0"].votes.share == 0.875


def test_what_is_never_solved_stays_and_says_so(checked):
    checked.materialize(PassRates(student=student({"sign/0": 0})))
    assert {name for name, row in rows(checked).items() if row.never_solved} == {"sign/0"}
    checked.materialize(PassRates(student=student({"sign/0": 0}), drop_unsolved=True))
    assert [(one.source_row, one.reason) for one in rejects(checked)] == [("sign/0", Reason.NEVER_SOLVED)]


@pytest.mark.parametrize(("n_right", "n_asked"), [(8, 8), (7, 8), (4, 5), (1, 2), (0, 8)])
def test_an_early_stop_asks_until_it_is_certain_what_a_row_is(checked, n_right, n_asked):
    policy = student({"sign/0": n_right})
    checked.materialize(PassRates(student=policy, stop_early=True))
    assert sum(source_row(turn) == "sign/0" for turn in policy.turns) == n_asked
    out = {one.source_row for one in rejects(checked)}
    assert ("sign/0" in out) == (n_right == 8)
    if n_right < 8:
        row = rows(checked)["sign/0"]
        assert (row.never_solved, row.votes.n_saved) == (n_right == 0, 8 - n_asked)


@settings(max_examples=fewer_quickly(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stops=st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_however_often_it_is_stopped_no_answer_is_asked_for_twice(checked, stops, tmp_path_factory):
    from darkroom.pipelines.storage.ledger import Ledger
    from darkroom.pipelines.storage.workspace import Workspace

    home = tmp_path_factory.mktemp("ledger")
    fresh = Workspace(checked.workspace.home, checked.workspace.images_url, f"sqlite:///{home}/l", home, home)
    asked: list[tuple[str, int]] = []

    def policy(n_most: int):
        answers = student({})
        write = answers.write

        async def counted(turn):
            if len(answers.turns) >= n_most:
                raise PolicyUnavailable("gone")
            asked.append((source_row(turn), turn.seed))
            return await write(turn)

        answers.write = counted
        return answers

    checked.workspace.tables.path(checked.key(ASSET)).unlink(missing_ok=True)
    assert isinstance(fresh.ledger, Ledger)
    shard = type(checked)(fresh, checked.partition)
    with fresh:
        for n_most in stops:
            try:
                shard.materialize(PassRates(student=policy(n_most)))
            except PolicyUnavailable:
                continue
        shard.materialize(PassRates(student=policy(1000)))
    assert len(asked) == len(set(asked)) == 8 * (N_SIGNS + N_PROBLEMS)


def test_an_answer_that_is_none_is_not_right(checked):
    policy = student({})
    policy._answer = lambda turn: "I cannot tell."
    checked.materialize(PassRates(student=policy))
    assert {row.votes.n_invalid for row in rows(checked).values()} == {8}
    assert all(row.never_solved for row in rows(checked).values())


def test_a_right_answer_that_the_token_limit_cut_off_is_none(checked):
    cut = Scripted(lambda turn: Completion(f"<answer>{turn.task.sample.answer}</answer>", finished=False))
    checked.materialize(PassRates(student=cut))
    assert {(row.votes.n_yes, row.votes.n_invalid) for row in rows(checked).values()} == {(0, 8)}


def test_progress_says_where_it_is_and_what_it_cost(checked):
    stands = []
    shard = type(checked)(checked.workspace, checked.partition, stands.append)
    shard.materialize(PassRates(student=student({})))
    assert [stand.n_done for stand in stands] == list(range(1, 9))
    assert {stand.n_rows for stand in stands} == {8}
    assert stands[-1].usd == 8 * 8 * 0.5


def test_what_grading_by_a_judge_costs_is_part_of_a_row(workspace):
    told = Truth(details='{"grader": {"kind": "judged"}}')
    source = Questions(
        extra=(SourceRow("why", (), "Why is the shop shut?", "Because it is Sunday today.", truth=told),)
    )
    shard = taken_in(workspace, source)
    shard.materialize(Candidates(judge=None))
    shard.materialize(CheckedLabels(judge=answering(lambda turn: True, name="labels")))
    judge = judging(lambda turn: True)
    student = Scripted(lambda turn: "<answer>On Sundays nobody opens it.</answer>", name="student")
    shard.materialize(PassRates(student=student, judge=judge, n_answers=2, max_rate=1.0))
    row = rows(shard)["why"]
    assert (row.votes.n_yes, row.usage.calls) == (2, 2 + 2)
    assert len(judge.turns) == 1  # the same words are judged once


def test_a_shard_whose_samples_were_replaced_says_what_to_run(checked):
    checked.workspace.tables.write(checked.samples_key, Sample, [], [], inputs="", facts={"n_retryable": 0})
    with pytest.raises(TableStale, match=r"run: darkroom rl questions$"):
        checked.materialize(PassRates(student=student({})))
