"""What a round showed, for the checks that measure it."""

from __future__ import annotations

from pipelines.cases import Case
from pipelines.locate import Located, locate
from pipelines.records import Round


def located(case: Case, turn: Round) -> Located | None:
    """The part of the question's image that a round's last image shows; None where it shows none of it."""
    if not turn.observation.images:
        return None
    original = case.store.open(case.trajectory.images[0])
    return locate(case.store.open(turn.observation.images[-1]), original, executed_code(turn))


def executed_code(turn: Round) -> str:
    """The code as it ran, and below it each box that the sandbox moved into its image, as it was used."""
    code, boxes = turn.code, ""
    for edit in turn.observation.edits:
        if edit.kind == "clamp_box":
            boxes += f"\n{edit.after}"
        elif edit.before:
            code = code.replace(edit.before, edit.after)
    return code + boxes
