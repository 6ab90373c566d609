"""The oracle of ``direct``: the plan that no operation is needed, then what the image shows and the answer."""

from __future__ import annotations

import random

from pipelines.demo.oracle.family_script import closing_of, family_script, operation_plan
from pipelines.models.policies.base import CompletionRequest
from pipelines.models.protocols import Thyme
from pipelines.models.tasks import spelled_answer


def _answer(turn: CompletionRequest) -> str:
    sample, rng = turn.task.sample, random.Random(turn.task.seed)
    usable, looked = rng.choice(_USABLE), rng.choice(_LOOKED)
    shows = rng.choice(_SHOWS).format(seen=spelled_answer(sample))
    return Thyme().write_answer(f"{usable} {looked} {shows}{closing_of(sample)}", sample.answer, first=True)


script = family_script(_answer, plan=operation_plan)


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
