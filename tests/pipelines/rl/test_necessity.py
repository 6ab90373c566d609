"""Tool necessity: accuracy with the tool forced and forbidden, in real rollouts."""

from __future__ import annotations

from darkroom.pipelines.generation.sandbox_sessions import Sandboxes
from darkroom.pipelines.models.policies import PolicyError
from darkroom.pipelines.models.protocols import ToolCall
from darkroom.pipelines.records import ToolNecessity
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.rl.necessity import ASSET, ToolNecessities
from tests.pipelines.rl.shards import N_SIGNS, source_row
from tests.pipelines.scripted import Scripted

LOOK = ToolCall().write_round(
    "Closer.", "crop_image_normalized(bbox_2d=[0.1, 0.1, 0.5, 0.5], target_image=1)", first=True
)


def says(answer: str, *, first: bool) -> str:
    return ToolCall().write_answer("So.", answer, first=first)


def answer(turn) -> str:
    """Right only after a look; what it saw is in the conversation."""
    if turn.task.mode == "forced" and not turn.rounds:
        return LOOK
    seen = bool(turn.rounds) and bool(turn.rounds[0].observation.images)
    return says(turn.task.sample.answer if seen else "nothing", first=not turn.rounds)


def measured(shard, student, **settings):
    stage = ToolNecessities(
        student=student, sandboxes=Sandboxes(shard.workspace.images, shard.workspace.ledger), **settings
    )
    return shard.materialize(stage)


def rows(shard):
    samples = shard.samples()
    found = shard.workspace.tables.read(shard.key(ASSET), ToolNecessity)
    return {samples[row.sample_id].source_row: row for row in found}


def test_a_question_that_is_answered_only_after_a_look_needs_its_tool(rated):
    report = measured(rated, Scripted(answer))
    found = rows(rated)
    assert (report.n_in, set(found)) == (N_SIGNS, {f"sign/{n}" for n in range(N_SIGNS)})
    for row in found.values():
        assert (row.forced.ballots, row.forbidden.ballots, row.prior) == ((True,) * 4, (False,) * 4, 1.0)
        assert row.usage.calls == 4 * 2 + 4


def test_a_rollout_that_does_not_do_as_it_is_told_is_no_vote(rated):
    disobedient = Scripted(lambda turn: says("S0X", first=True) if turn.task.mode == "forced" else LOOK)
    measured(rated, disobedient, n_forced=2, n_forbidden=3)
    row = rows(rated)["sign/0"]
    assert (row.forced.ballots, row.forbidden.ballots) == ((None, None), (None, None, None))
    assert "no tool was used" in row.forced.reasons[0]
    assert "too_many_rounds" in row.forbidden.reasons[0]


def test_words_that_are_no_turn_are_no_vote(rated):
    measured(rated, Scripted(lambda turn: "<tool_call>{"))
    assert {row.forced.ballots for row in rows(rated).values()} == {(None,) * 4}


def test_a_row_that_cannot_be_asked_is_tried_again_and_the_others_are_not(rated):
    def failing(turn):
        if source_row(turn) == "sign/1":
            raise PolicyError("busy")
        return answer(turn)

    measured(rated, Scripted(failing))
    (out,) = rated.workspace.tables.read_rejects(rated.key(ASSET))
    assert (out.source_row, out.reason, out.disposition) == ("sign/1", Reason.POLICY_FAILED, "quarantined")
    healthy = Scripted(answer)
    report = measured(rated, healthy)
    assert (report.reused, report.n_out) == (False, N_SIGNS)
    assert {source_row(turn) for turn in healthy.turns} == {"sign/1"}
