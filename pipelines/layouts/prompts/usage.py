"""What the READMEs of all prompts share: what rows hold, what grades them, and the reward file beside them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pipelines.layouts.base import Facts

REWARD_FILE = "reward.py"
REWARD = Path(__file__).with_name(REWARD_FILE)
ALONE = ("choice", "number", "text")
"""The kinds of graders that ``reward.py`` knows by itself."""
FORBIDDEN = "forbidden"


def reward_file(facts: Facts) -> Mapping[str, str]:
    """The reward function, as a file of the export."""
    return {REWARD_FILE: REWARD.read_text()}


def about(facts: Facts) -> str:
    """Markdown for every README of prompts."""
    kinds = ", ".join(f"{kind} {n}" for kind, n in facts.graders.items())
    more = [kind for kind in facts.graders if kind not in ALONE]
    needs = (
        f"`reward.py` alone grades {', '.join(ALONE)}, more strictly than Darkroom.\n"
        f"Rows of the kinds {', '.join(more)} raise `NeedsToolkit` until `pip install darkroom-toolkit`:\n"
        "its rules then grade all kinds."
        if more
        else "`reward.py` alone grades all of them, more strictly than Darkroom;\n"
        "`pip install darkroom-toolkit` brings its rules."
    )
    judged = (
        "\nA judged answer is compared by its words only: ask a judge with `pipelines.grading.judged`."
        if "judged" in more
        else ""
    )
    return f"""\
Each row is a prompt in the protocol {facts.protocol}, mode {facts.mode}: its system words, the images, the question
with its choices, as Darkroom's own rollouts begin. Observations are made by your environment.
Graders: {kinds}.
{needs}{judged}
`pass_rate`, `suitable`, `necessity_prior` and `difficulty` were measured before training, and are null where they were
not; `boxes` are pixels of `images[image]`. None of them is in the prompt.
"""
