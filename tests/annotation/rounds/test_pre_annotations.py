from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from darkroom.annotation import AnnotationError
from darkroom.annotation.rounds.campaign import Campaign, Terms
from darkroom.annotation.rounds.image_pool import POOL
from darkroom.annotation.rounds.pre_annotations import (
    PRE_ANNOTATIONS,
    materialize_pre_annotations,
    read_pre_annotation,
    read_predictions,
)
from darkroom.annotation.rounds.submissions import read_submission
from darkroom.pipelines.models.policies import Completion, CompletionRequest, PolicyError, PolicyIdentity
from darkroom.pipelines.models.policies.policy import SentImage as Seen
from darkroom.pipelines.records import ImageRef, PoolImage, PreAnnotation, Usage
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage.workspace import Workspace
from tests.annotation.desk import ITEM, SIZE

IMAGE = ImageRef(ITEM, *SIZE, "RGB", "JPEG")
GOOD = {"question": "What does the sign say?", "answer": "No. 7", "category": "ocr", "boxes": [[100, 200, 150, 240]]}


def completion(said: Any, **more: Any) -> Completion:
    text = said if isinstance(said, str) else json.dumps(said)
    return Completion(text, frames=(Seen(ITEM, 1000, 750),), usage=Usage(1, 10, 5, 0.01), **more)


def written(said: Any, frame: str = "pixels", **more: Any) -> Any:
    return read_pre_annotation(
        completion(said, **more), PoolImage(IMAGE, "ours", "a", "MIT"), Campaign(pre_annotate=frame)
    )  # type: ignore[arg-type]


def test_pixels_are_those_of_the_image_that_was_sent() -> None:
    assert written(GOOD).boxes == ((400, 800, 600, 960),)


def test_thousandths_are_those_of_the_sides() -> None:
    assert written(GOOD, "thousandths").boxes == ((400, 600, 600, 720),)


def test_the_last_object_counts_whatever_is_around_it() -> None:
    said = f'First I thought {{"question": 3}} but then:\n```json\n{json.dumps(GOOD)}\n```'
    assert written(said).answer == "No. 7"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("I see a street.", Reason.MALFORMED_TURN),
        ({"question": "x"}, Reason.MALFORMED_TURN),
        (GOOD | {"boxes": [[0, 0, 900, 700]]}, Reason.BREAKS_RULES),
        (GOOD | {"boxes": []}, Reason.BREAKS_RULES),
        (GOOD | {"boxes": [[1, 2, 3]]}, Reason.BREAKS_RULES),
        (GOOD | {"boxes": [[200, 200, 100, 240]]}, Reason.BREAKS_RULES),
        (GOOD | {"boxes": [[100, 200, 1500, 240]]}, Reason.BREAKS_RULES),
        (GOOD | {"category": "sport"}, Reason.BREAKS_RULES),
        (GOOD | {"category": "quantity"}, Reason.BREAKS_RULES),
        (GOOD | {"answer": " "}, Reason.BREAKS_RULES),
    ],
)
def test_what_is_no_record_is_a_typed_reject(said: Any, reason: Reason) -> None:
    with pytest.raises(RowError) as caught:
        written(said)
    assert caught.value.reason is reason


def test_a_record_that_was_cut_off_is_not_read() -> None:
    with pytest.raises(RowError) as caught:
        written(GOOD, finished=False)
    assert caught.value.reason is Reason.TRUNCATED_TURN


class Scripted:
    """A policy that answers by image, and counts."""

    identity = PolicyIdentity("scripted", "seer")
    concurrency = 4

    def __init__(self, answer: Callable[[str], Any]) -> None:
        self.n_calls = 0
        self._answer = answer

    async def check(self) -> None:
        """Always there."""

    async def write(self, turn: CompletionRequest) -> Completion:
        self.n_calls += 1
        said = self._answer(turn.task.trajectory_id)
        if said is None:
            raise PolicyError("gave up")
        return completion(said)

    async def close(self) -> None:
        """Nothing to close."""


@pytest.fixture
def pool(workspace: Workspace) -> list[PoolImage]:
    images = [ImageRef(letter * 64, *SIZE, "RGB", "JPEG") for letter in "abc"]
    pool = [PoolImage(image, "ours", image.sha256[:1], "CC0-1.0") for image in images]
    facts = {"n_in": 3, "n_out": 3, "n_rejected": 0, "n_quarantined": 0, "n_retryable": 0, "reasons": {}, "usage": {}}
    workspace.tables.write(POOL, PoolImage, pool, [], inputs="x", facts=facts)
    return pool


def test_pre_annotations_are_paid_once_and_failures_asked_for_again(
    workspace: Workspace, pool: list[PoolImage]
) -> None:
    answers: dict[str, Any] = {"a": GOOD, "b": "nothing", "c": None}
    policy = Scripted(lambda sha256: answers[sha256[0]])
    campaign = Campaign(pre_annotate="pixels")
    first = materialize_pre_annotations(workspace, campaign, policy)
    assert (first.n_out, first.reasons) == (1, {"malformed_turn": 1, "policy_failed": 1})
    answers["c"] = GOOD
    assert (materialize_pre_annotations(workspace, campaign, policy).n_out, policy.n_calls) == (2, 4)
    assert materialize_pre_annotations(workspace, campaign, policy).reused
    assert [row.sha256[0] for row in workspace.tables.read(PRE_ANNOTATIONS, PreAnnotation)] == ["a", "c"]


def test_pre_annotations_are_predictions_that_read_as_records(workspace: Workspace, pool: list[PoolImage]) -> None:
    assert read_predictions(workspace, pool) == {}
    materialize_pre_annotations(workspace, Campaign(pre_annotate="pixels"), Scripted(lambda sha256: GOOD))
    found = read_predictions(workspace, pool[:2])
    assert set(found) == {"a" * 64, "b" * 64}
    one = found["a" * 64]
    assert one["model_version"] == "pre-annotation by seer"
    raw = {"id": 1, "completed_by": 2, "result": one["result"]}
    assert read_submission(raw, Terms(0.05, 2).gate("annotate", SIZE)).fields.answer == "No. 7"


def test_a_campaign_that_wants_no_pre_annotations_says_so(workspace: Workspace, pool: list[PoolImage]) -> None:
    with pytest.raises(AnnotationError, match="set pre_annotate"):
        materialize_pre_annotations(workspace, Campaign(), Scripted(lambda sha256: GOOD))
