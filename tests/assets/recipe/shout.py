"""A family in one file and one prompt: the policy repeats the answer in capitals, after computing nothing much."""

from pathlib import Path

from pipelines.checks import answer_matches, executes
from pipelines.images import ImageStore
from pipelines.policies.base import Turn
from pipelines.prompts import load_prompt
from pipelines.protocols import Thyme
from pipelines.recipes import Recipe
from pipelines.records import Sample
from pipelines.tasks import Prepared


def prepare(sample: Sample, store: ImageStore) -> Prepared:
    return Prepared(sample.images, {"secret": sample.answer})


def script(turn: Turn) -> str:
    if not turn.rounds:
        return Thyme().write_round("Loudly now.", f"print({turn.task.sample.answer!r}.upper())", first=True)
    said = turn.rounds[0].observation.text.strip()
    return Thyme().write_answer("It was loud.", said, first=False)


recipe = Recipe(
    family="shout",
    description="A toy family.",
    file=Path(__file__),
    prompt=load_prompt(Path(__file__).with_suffix(".md")),
    protocol=Thyme(),
    prepare=prepare,
    script=script,
    checks=(executes, answer_matches),
)
