"""Seeds, and the models that experiments of several papers start from."""

from measurements.ablations.models import Model

TUNED = (0, 1, 2)
"""Seeds that earlier versions of this project were run on."""
FRESH = (101, 102, 103, 104, 105, 106, 107, 108)
"""Seeds that nothing was tuned on."""
FEW = FRESH[:3]
FURTHER = tuple(range(109, 123))
"""Chosen, with how they are judged, before any of them was run."""


TO_SEE = {"max_steps": 200}
"""Settings of SFT on closeups."""


def seeing(name: str, *rows: str) -> Model:
    """A model that tells the colours of closeups and has never seen code; its tokens are those of ``rows``."""
    return Model(name, "sft", Model(f"{name}_random", "random", rows=(*rows, "closeups")), ("closeups",), "", TO_SEE)


SEEING = seeing("untrained", "train")
"""A start like a released model: it recognises the colours and has never seen code."""
SFT = Model("masked", "sft", SEEING)
GRPO = Model("grpo", "grpo", SFT, ("questions",), "thyme")

LOOKING = Model("looking", "sft", seeing("untrained_looks", "looks"), ("looks",))
"""Zooms in by tool call on signs seen from afar, answers about those seen from near, and knows the three modes."""
COUNTING = Model("counting", "sft", seeing("untrained_needed_looks", "needed_looks"), ("needed_looks",))
"""Looks once or twice, as often as the question needs, and in a third of its rows once more."""
_QUESTIONS = {LOOKING.name: "look_questions", COUNTING.name: "needed_look_questions"}


def reinforced(name: str, method: str, start: Model = SFT, **settings: object) -> Model:
    """GRPO by ``method`` on the questions of what ``start`` was trained on."""
    return Model(name, "grpo", start, (_QUESTIONS.get(start.name, "questions"),), method, settings)
