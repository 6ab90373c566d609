"""Direct: the image answers the question as it is, so no code is written (Thyme appendix B, table 9).

The policy decides first (``pipelines/decision.py``); what it calls directly answerable it answers in one turn. Samples
that need work on their image are not applicable, nor are samples without one. Which of the right answers are kept is
the selection's business: a seeded sample of as many as are wanted.
"""

from __future__ import annotations

import random
from pathlib import Path

from pipelines.checks import Necessity, answer_matches, consistency, hint_stays_hidden, no_program
from pipelines.closeups import closing_of, seen_in
from pipelines.decision import plan
from pipelines.images import ImageStore
from pipelines.policies.base import Turn
from pipelines.prompts import bundled_prompt
from pipelines.protocols import Thyme
from pipelines.recipes.base import Recipe
from pipelines.records import Sample
from pipelines.rejects import Reason, RowFault
from pipelines.tasks import Prepared


def prepare(sample: Sample, store: ImageStore) -> Prepared:
    """The images as they are."""
    if not sample.images:
        raise RowFault(Reason.NOT_APPLICABLE, "the sample has no image")
    return Prepared(sample.images)


def script(turn: Turn) -> str:
    """The oracle: what is seen, and the answer."""
    sample = turn.task.sample
    draw = random.Random(turn.task.seed)
    usable, looked = draw.choice(_USABLE), draw.choice(_LOOKED)
    shows = draw.choice(_SHOWS).format(seen=seen_in(sample))
    return Thyme().write_answer(f"{usable} {looked} {shows}{closing_of(sample)}", sample.answer, first=True)


_USABLE = (
    "The image can be used as it is: it is upright, well lit, and nothing that matters is too small.",
    "This picture needs no processing; what the question is about is plain to see.",
    "Nothing has to be cropped, turned or brightened here, the image is ready to be read.",
    "I can answer this straight from the picture, without any code.",
)
_LOOKED = (
    "I look at the picture as a whole and compare it with what is asked.",
    "The part that matters is large enough to judge in the full view.",
    "Going over the scene once is enough.",
)
_SHOWS = (
    "What I see settles it: {seen}.",
    "It clearly shows the following: {seen}.",
    "There is no doubt about what it is: {seen}.",
    "So the answer has to be: {seen}.",
)

recipe = Recipe(
    family="direct",
    description="No code: the policy calls the question directly answerable and answers it (Thyme App. B, table 9).",
    file=Path(__file__),
    prompt=bundled_prompt("direct"),
    protocol=Thyme(),
    prepare=prepare,
    script=script,
    checks=(no_program, answer_matches, consistency, hint_stays_hidden),
    max_rounds=0,
    plan=plan(keeps=lambda decided: not decided.needs_work),
    n_wanted=100_000,
    necessity=Necessity(max_without_tools=None),
)
