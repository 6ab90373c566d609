"""Writes ``docs/method_terms.md`` from the methods: every term, its default, and where the paper states it.

python -m scripts.method_terms            # after a change of a method's terms; a test compares page and methods
"""

from __future__ import annotations

import json
from pathlib import Path

from darkroom.pipelines.inspection.pages import markdown_table
from darkroom.train.rl.methods import named_method
from darkroom.train.rl.methods.base import LOSS
from darkroom.train.rl.settings import MethodDefaults

PAGE = Path(__file__).parents[1] / "docs" / "method_terms.md"
PAPERS = {
    "thyme": "Thyme",
    "pyvision": "PyVision-RL",
    "codev": "CodeV",
    "adaptive": "Look Less, Reason More",
    "figr": "FIGR",
}
INTRODUCTION = """# Terms of the methods

The defaults of `darkroom train grpo --method …`. Every term is an option (`--learning-rate`), and `--print-config`
prints all of them as YAML. Brackets say where the paper states the value; in *italics*: it states none, and the
value is our choice. This page is generated (`python -m scripts.method_terms`).
"""
_LOSS_HEAD = """
## TRL's loss

The rest of what enters it, set by all methods (`--set trainer.NAME=VALUE`). The KL is estimated as in GRPO.
"""
_OWN_WORDS = "the papers' printed texts are used in evaluation and RL alone (`--prompt`)"
DIFFERENCES = (
    ("Thyme", "table 9", "the decision and the code are two calls", "two families share the decision: it is paid once"),
    (
        "Thyme",
        "appendix B",
        "clean images of contrast rows are faded by a seed",
        "the restored image can be compared with the original",
    ),
    (
        "Thyme",
        "§4.3",
        "the rule against repetition ignores texts below 800 characters and tables of numbers",
        "code is naturally repetitive; `--repetition paper` is the paper's rule",
    ),
    (
        "Thyme",
        "§4.4",
        "choices, numbers and boxes are graded by rule alone",
        "the judge gets only what no rule can decide",
    ),
    (
        "Thyme",
        "appendix A",
        "boxes are clamped when code runs, whatever their variable is called",
        "names do not say what a variable is",
    ),
    ("PyVision-RL", "eq. 1", "a failed execution earns nothing", "`pyvision_released` pays for it"),
    (
        "CodeV",
        "§5, §12",
        "an image that does not match scores 0, not 0.25",
        "any crop would pay; `--judge-rubric paper` has the paper's scores",
    ),
    ("CodeV", "eq. 3", "ratios are to the policy that rolled out, not to π_ref", "GRPO's; eq. 3 is probably a slip"),
    ("CodeV", "§8, §13", "judges are asked in words of our own", _OWN_WORDS),
    (
        "Look Less",
        "eq. 5",
        "obedience is judged over the whole rollout",
        "taken literally, forbidden tools cannot be used wrongly",
    ),
    (
        "Look Less",
        "table A1",
        "one update for each batch of rollouts, not two (512 rollouts, 256 trained at a time)",
        "tokens are weighed over one batch; `trainer.num_iterations=2` trains each batch twice",
    ),
    ("FIGR", "figure 5", "suitability is asked for in words of our own, without examples", _OWN_WORDS),
    ("FIGR", "figure 7", "no GRPO on text alone", "it needs no sandbox: TRL's own trainer does it"),
    (
        "Thyme, PyVision-RL",
        "§3.1; figures 11, 12",
        "no source files for MM-RLHF and MMPR",
        "[public datasets](public_sources.md#not-bundled) says why",
    ),
)
"""Paper, where in it, what is done otherwise, and why. What the table of terms has is not repeated."""


def page() -> str:
    rows = [[f"`{term}`", *(_cell(name, term) for name in PAPERS)] for term in MethodDefaults.model_fields]
    rows.append(["batch of the paper (yours: `batch_size`, `accumulation`, `max_steps`)", *map(_batch, PAPERS)])
    head = ["term", *(f"`{name}` ({paper})" for name, paper in PAPERS.items())]
    otherwise = markdown_table(["paper", "where", "here", "because"], DIFFERENCES)
    table, differences = markdown_table(head, rows), "## Differences from the papers\n"
    return "\n".join([INTRODUCTION, table, _LOSS_HEAD, _loss_table(), "", differences, otherwise, ""])


def _loss_table() -> str:
    """One row for each argument that a paper speaks of, and one for all others."""
    rows, others = [], []
    for name, value in LOSS.items():
        argument = f"`{name}={json.dumps(value)}`"
        places = [(paper, named_method(method).sources.get(f"trainer.{name}")) for method, paper in PAPERS.items()]
        stated = "; ".join(f"{paper} {place}" for paper, place in places if place)
        if stated:
            rows.append([argument, stated])
        else:
            others.append(argument)
    return markdown_table(["argument", "stated"], [*rows, [" ".join(others), "nowhere"]])


def _cell(name: str, term: str) -> str:
    method = named_method(name)
    value, source = getattr(method.terms, term), method.sources.get(term)
    if value is None:
        return "model's"
    shown = f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
    return f"{shown} ({source})" if source else f"*{shown}*"


def _batch(name: str) -> str:
    return named_method(name).sources.get("batch", "not stated")


if __name__ == "__main__":
    PAGE.write_text(page())
