"""Agentic video: the video is in the runtime only, and the policy shows itself the frames that it needs.

PyVision-RL §3.1 (on-demand context), §3.4, figures 8, 19 and 20. Kept are rows with the right answer, at least two tool
turns, none broken, few frames, and among them the ones that answer the question, where the truth names them.
"""

from pathlib import Path

from darkroom.pipelines.generation.applicability import Applicability
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols import PyVision
from darkroom.pipelines.models.tasks import PreparedSample
from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.samples import temporal_segments
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.checks import (
    answer_matches,
    frames_within_budget,
    has_tool_turns,
    hint_stays_hidden,
    no_round_is_broken,
    relevant_frames_shown,
    visual_tokens_within_budget,
)
from darkroom.sandbox.errors import raised_as


def prepare(sample: Sample, store: ImageStore) -> PreparedSample:
    """The images, if there are any, and no hint."""
    with raised_as(lambda error: RowError(Reason.MALFORMED_ROW, str(error)), ValueError):
        temporal_segments(sample)
    return PreparedSample(sample.images)


recipe = Recipe(
    family="agentic_video",
    description="Agentic video: the policy shows itself the frames that it needs, on demand (PyVision-RL §3.1).",
    file=Path(__file__),
    prompt=bundled_prompt("agentic_video"),
    protocol=PyVision(),
    samples=Applicability(videos=True),
    prepare=prepare,
    checks=(
        answer_matches,
        has_tool_turns,
        no_round_is_broken,
        frames_within_budget,
        visual_tokens_within_budget,
        relevant_frames_shown,
        hint_stays_hidden,
    ),
    loss_policy="all_rounds",
)
