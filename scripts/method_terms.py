"""Writes ``docs/method_terms.md`` from the methods: every term, its default, and where the paper states it.

python -m scripts.method_terms            # after a change of a method's terms; a test compares page and methods
"""

from __future__ import annotations

from pathlib import Path

from train.rl.methods import named_method
from train.rl.settings import MethodDefaults

PAGE = Path(__file__).parents[1] / "docs" / "method_terms.md"
PAPERS = {
    "thyme": "Thyme",
    "pyvision": "PyVision-RL",
    "codev": "CodeV",
    "adaptive": "Look Less, Reason More",
    "figr": "FIGR",
}
INTRODUCTION = """# Terms of the methods

What `python -m train.grpo --method …` trains with where you set nothing else. Every term is an option
(`--learning-rate`), and `--print-config` prints all of them as YAML. In brackets where the paper states it. *Ours*: the
paper does not, and the value is this project's choice. This page is generated (`python -m scripts.method_terms`).
"""


def page() -> str:
    """The page's text."""
    rows = [[f"`{term}`", *(_cell(name, term) for name in PAPERS)] for term in MethodDefaults.model_fields]
    rows.append(["batch of the paper (yours: `batch_size`, `accumulation`, `max_steps`)", *map(_batch, PAPERS)])
    head = ["term", *(f"`{name}` ({paper})" for name, paper in PAPERS.items())]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join([INTRODUCTION, *("| " + " | ".join(line) + " |" for line in lines), ""])


def _cell(name: str, term: str) -> str:
    method = named_method(name)
    value, source = getattr(method.terms, term), method.sources.get(term)
    if value is None:
        return "the model's"
    shown = f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
    return f"{shown} ({source})" if source else f"{shown} *ours*"


def _batch(name: str) -> str:
    return named_method(name).sources.get("batch", "not stated")


if __name__ == "__main__":
    PAGE.write_text(page())
