"""A pivot's row, and its reward: from the row alone, for any turn that a policy writes after its prefix.

    reward = StepReward.of(row)(text)       # the text of one turn: Check(name="target", passed=True, …)

Code runs in the sandbox after the code of the prefix; what it shows is measured. No judge, no rollout to the end.
"""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from darkroom import sandbox
from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.models.protocols.markup import Malformed
from darkroom.pipelines.publishing.dataset_reader import dataset_files, map_in_threads
from darkroom.pipelines.publishing.parquet_shards import conversation_columns, embedded, record_columns
from darkroom.pipelines.publishing.replay import Execute, in_sandbox
from darkroom.pipelines.publishing.row_images import Row, RowImages, sample_of, trajectory_of
from darkroom.pipelines.records import Check, Edit, ImageRef, Observation, Round, Sample, Truth, TruthBox, from_row
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.records.pivots import Action, Goal, Pivot
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.step_rewards import judge_action

_IDS = ("pivot_id", "trajectory_id", "sample_id", "family", "protocol", "mode")
_GOAL = ("action", "goal", "evidence", "boxes", "angle", "gold", "rejected", "provenance")


def pivot_row(pivot: Pivot, sample: Sample, store: ImageStore) -> dict[str, Any]:
    """The columns of pivots: the prefix as trajectories have it, then the action, the goal and what decides it."""
    reference = pivot.reference
    return {
        **record_columns(pivot, *_IDS),
        **conversation_columns(sample, pivot, store),
        **record_columns(pivot, *_GOAL),
        "reference": None if reference is None else embedded(reference, store),
        "reference_ref": None if reference is None else record_columns(pivot, "reference")["reference"],
    }


@dataclass(frozen=True)
class StepReward:
    """The reward of one row. ``execute`` runs the code of a row in a session of its own."""

    row: Row
    case: Case
    """Of the prefix."""
    execute: Execute

    @classmethod
    def of(cls, row: Row, *, execute: Execute | None = None) -> Self:
        """``row`` has the columns of ``darkroom.pipelines.publishing.features.PIVOTS``; ``execute`` None: in the
        sandbox.

        Raises ``cattrs`` errors and ``KeyError`` for a row that is no pivot's."""
        refs = [from_row(ImageRef, ref) for ref in row["image_refs"]]
        files = {ref.sha256: image["bytes"] for ref, image in zip(refs, row["images"], strict=True)}
        original = tuple(refs[: row["n_question_images"]])
        if row["reference_ref"] is not None:
            reference = from_row(ImageRef, row["reference_ref"])
            files[reference.sha256] = row["reference"]["bytes"]
            original = (reference, *original[1:])
        boxes = tuple(from_row(TruthBox, box) for box in row["boxes"])
        sample = sample_of(row, images=original, answer=row["gold"], truth=Truth(boxes, row["angle"]))
        hint = {} if row["angle"] is None else {"angle": row["angle"]}
        unset = {"final_thought": "", "answer": "", "loss_policy": "all_rounds", "checks": []}
        return cls(
            row, Case(sample, trajectory_of({**row, **unset}), hint, RowImages(files, None)), execute or in_sandbox
        )

    def __call__(self, text: str) -> Check:
        """Of one turn. Raises ``sandbox.SandboxError`` where the sandbox itself fails: that is no flaw of the turn."""
        goal: Goal = self.row["goal"]
        turn = PROTOCOLS[self.row["protocol"]].parse(text)
        if isinstance(turn, Malformed):
            return Check(goal, False, detail=turn.evidence, reason="malformed_turn")
        return self.of_action(Action(turn.thought, turn.code or "", turn.answer or ""))

    def of_action(self, action: Action) -> Check:
        """Of a turn that was parsed. Raises as the call does."""
        prefix, goal = self.case.trajectory, self.row["goal"]
        if not action.code or goal == "answer":  # then nothing has to be executed
            case = replace(self.case, trajectory=replace(prefix, answer=action.answer))
            return judge_action(case, goal, is_answer=not action.code)
        *_, output = self.execute({**self.row, "rounds": [*self.row["rounds"], {"code": action.code}]})
        observation, files = _observed(output)
        extended = replace(prefix, rounds=(*prefix.rounds, Round(action.thought, action.code, observation)))
        store = RowImages(files, self.case.store)
        return judge_action(replace(self.case, trajectory=extended, store=store), goal, is_answer=False)


def _observed(output: sandbox.Observation) -> tuple[Observation, dict[str, bytes]]:
    """What the sandbox returned as a record, with its images' bytes."""
    refs: list[ImageRef] = []
    files: dict[str, bytes] = {}
    for image in output.images:
        buffer = io.BytesIO()
        image.pixels.save(buffer, "PNG", compress_level=1)
        sha256 = digest_bytes(buffer.getvalue())
        files[sha256] = buffer.getvalue()
        refs.append(ImageRef(sha256, image.pixels.width, image.pixels.height, image.pixels.mode, "PNG"))
    edits = tuple(Edit(edit.kind, edit.before, edit.after) for edit in output.edits)
    return Observation(output.status, output.text, tuple(refs), output.error, edits), files


def step_rewards(folder: Path | str) -> Callable[..., list[float]]:
    """A reward function for ``GRPOTrainer``: of turns, by the pivots in ``folder`` that their ``pivot_id`` names."""
    from datasets import Image, List, load_dataset  # takes a second

    files = list(map(str, dataset_files(Path(folder))))
    rows = load_dataset("parquet", data_files=files, split="train")
    for name, kind in (("images", List(Image(decode=False))), ("reference", Image(decode=False))):
        rows = rows.cast_column(name, kind)
    places = {pivot_id: place for place, pivot_id in enumerate(rows["pivot_id"])}

    def rewarded(pair: tuple[Sequence[dict[str, Any]] | str, str]) -> float:
        completion, pivot_id = pair
        text = completion if isinstance(completion, str) else _text(completion[-1]["content"])
        return float(StepReward.of(rows[places[pivot_id]])(text).passed)

    def step_reward(completions: Sequence[Any], pivot_id: Sequence[str], **_: Any) -> list[float]:
        pairs = zip(completions, pivot_id, strict=True)
        return list(map_in_threads(pairs, rewarded))

    return step_reward


def _text(content: str | Sequence[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)
