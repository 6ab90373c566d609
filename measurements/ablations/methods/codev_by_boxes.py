"""CodeV whose judge is the truth: an image is evidence where it is a part that shows the region of the question."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from PIL import Image

from darkroom.pipelines.records import Round
from darkroom.pipelines.vision.image_transform import measure_transform
from darkroom.train.evaluation.code_analysis import crop_boxes
from darkroom.train.evaluation.settings import COVER, WHOLE_SHARE
from darkroom.train.rl.judging.judges import MATCHES, Judges
from darkroom.train.rl.methods.base import Method, RolloutOutcome, RolloutScore
from darkroom.train.rl.methods.judged import CodeVMethod
from measurements.ablations.world import named_regions


@dataclass(frozen=True, slots=True)
class CodeVByBoxes(CodeVMethod):
    """Evidence: clear is half of the region or more, partial some of it, none nothing or almost the whole image."""

    only_visual_search: bool = False
    """Every question of this world is visual search; its rows do not say so."""

    name: ClassVar[str] = "codev_by_boxes"
    says: ClassVar[str] = "answer and, block by block, whether its image shows the region of the question"

    async def score(self, group: Sequence[RolloutOutcome], judges: Judges) -> list[RolloutScore]:
        """Score as where a judge sees evidence: a group without a right answer is trained by its evidence."""
        return await Method.score(self, group, judges)

    async def score_one(self, outcome: RolloutOutcome, correct: float, judges: Judges) -> RolloutScore:
        """CodeV's, and in the part ``faithful`` whether any image is clear evidence, whatever that earns."""
        scored = await CodeVMethod.score_one(self, outcome, correct, judges)
        seen = [await self._evidence(judges, outcome, turn) for turn in outcome.rollout.rounds]
        return replace(scored, parts={**scored.parts, "faithful": float(MATCHES["strict"]["clear"] in seen)})

    async def _evidence(self, judges: Judges, outcome: RolloutOutcome, turn: Round | None) -> float | None:
        if turn is None or turn.observation.status != "ok" or not turn.observation.images:
            return None
        whole = outcome.question_images[0]
        return max(
            evidence_of(outcome.pixels[image.sha256], whole, turn.code, outcome.question.sample.question)
            for image in turn.observation.images
        )


def evidence_of(shown: Image.Image, whole: Image.Image, code: str, question: str) -> float:
    """The score of an image, 0..1, by the part of ``whole`` that it shows."""
    change = measure_transform(shown, whole, crop_boxes(code, *whole.size)[::-1])
    if change is None or change.share > WHOLE_SHARE:
        return MATCHES["strict"]["none"]
    region = named_regions(question)[0]
    covered = change.box.intersection(region).area
    match = "clear" if covered >= COVER * region.area else "partial" if covered else "none"
    return MATCHES["strict"][match]


method = CodeVByBoxes()
