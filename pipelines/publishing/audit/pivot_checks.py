"""Rows of the pivots, rewarded again: the verified action reaches the goal, and no rejected one does."""

from collections.abc import Iterator

from darkroom.pipelines.publishing.audit.findings import AuditFinding, shortened
from darkroom.pipelines.publishing.pivots.rows import StepReward
from darkroom.pipelines.publishing.replay import Execute
from darkroom.pipelines.publishing.row_images import Row
from darkroom.pipelines.records import from_row
from darkroom.pipelines.records.pivots import Action, RejectedAction


def rewarded(row: Row, dataset: str, execute: Execute) -> Iterator[AuditFinding]:
    """Executes the row's actions after its prefix. Raises ``sandbox.SandboxError``, and what ``execute`` raises."""
    reward, kind = StepReward.of(row, execute=execute), f"reward: {row['goal']}"
    check = reward.of_action(from_row(Action, row["action"]))
    if not check.passed:
        reason = f"the verified action has none: {check.reason}: {check.detail}"
        yield AuditFinding(kind, dataset, row["pivot_id"], shortened(reason))
    for rejected in (from_row(RejectedAction, each) for each in row["rejected"]):
        check = reward.of_action(rejected.action)
        if check.reason != rejected.flaw:
            reason = f"a rejected action is stored as {rejected.flaw}, now {check.reason or 'it has the reward'}"
            yield AuditFinding(kind, dataset, row["pivot_id"], shortened(reason))
