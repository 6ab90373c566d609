"""A family in one file and one prompt: the policy repeats the answer in capitals, after computing nothing much."""

from pathlib import Path

from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.models.prompts import load_prompt
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.models.tasks import PreparedSample
from darkroom.pipelines.records import Sample
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.checks import answer_matches, executes


def prepare(sample: Sample, store: ImageStore) -> PreparedSample:
    return PreparedSample(sample.images, {"secret": sample.answer})


recipe = Recipe(
    family="shout",
    description="A toy family.",
    file=Path(__file__),
    prompt=load_prompt(Path(__file__).with_suffix(".md")),
    protocol=Thyme(),
    prepare=prepare,
    checks=(executes, answer_matches),
)
