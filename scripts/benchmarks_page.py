"""Writes ``docs/benchmarks.md`` from the bundled benchmarks' files.

python -m scripts.benchmarks_page            # after a change of such a file; a test compares page and files
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from darkroom.pipelines.inspection.pages import markdown_table
from darkroom.train.evaluation.benchmarks import BenchmarkConfig, bundled

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
INTRODUCTION = """# Benchmarks

The benchmarks of the five papers' tables, and VisualProbe, are files in `train/evaluation/benchmarks/`. Download one,
then run `darkroom evaluate --model CHECKPOINT --benchmark mathvista=FOLDER --output OUT`; FOLDER may be a single
parquet or TSV file. Columns are from cards and public code, tested with such rows; no set was downloaded. A missing
column stops the evaluation and lists the existing ones.

**`--official`** (the default) scores as the set's own code does, quirks included, by rules in its file; the marked
answer stands for what a set's model extracts. Of 244 answers scored by hand from that code, `--strict` scores 34 lower,
44 higher. The report names these sets.

**`--strict`**: choices by choice; `grader`: the rule that fits the answer ([graders](graders.md)); `judged`: a judge
(`--judge-url`; without one the same words), comparable only with the same judge; `share`: a judge in tenths; `anls`:
likeness; `relaxed`: numbers within 5 % (ChartQA §5.1); `relative`: mean relative accuracy; `rounded`: to the row's
precision; `close`: within 0.001; `contains`: an accepted text in the answer; `braced`: the text in braces. *versions*:
rows of one problem; intervals are over problems, "every order right" is worst-case accuracy.
`--rollouts 32 --temperature 1` gives avg@32 and pass@k, `--top-k 20` PyVision-RL's sampling. T Thyme, P PyVision-RL,
C CodeV, L Look Less, Reason More, F FIGR. Generated: `python -m scripts.benchmarks_page`.
"""
LETTERS = {"Thyme": "T", "PyVision-RL": "P", "CodeV": "C", "Look Less, Reason More": "L", "FIGR": "F"}


def page() -> str:
    configs = bundled()
    by_rules = {name: config for name, config in configs.items() if config.official}
    reasons: dict[str, list[str]] = {}
    for name, config in configs.items():
        if name not in by_rules:
            reasons.setdefault(config.differs, []).append(f"`{name}` {config.official_code}".strip())
    parts = [
        INTRODUCTION,
        markdown_table(["set (papers), hub: rows", "strict; own figures", "unchecked"], _grouped(_row, configs)),
        "",
        markdown_table(["set", "its code", "otherwise than `--strict`"], _grouped(_scored, by_rules)),
        "",
        "Without rules both score alike:",
        "",
        *(f"- {reason}: {', '.join(names)}" for reason, names in reasons.items()),
        "",
    ]
    return "\n".join(parts)


Cells = Callable[[str, BenchmarkConfig], tuple[str, ...]]


def _grouped(cells_of: Cells, configs: Mapping[str, BenchmarkConfig]) -> list[list[str]]:
    """A row for all sets that agree in every cell but the first, unless the last one is empty."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for name, config in configs.items():
        head, *cells = cells_of(name, config)
        rows.setdefault((*cells, "" if cells[-1] else name), []).append(head)
    return [[cell.replace("|", "\\|") for cell in ("; ".join(heads), *cells)] for (*cells, _), heads in rows.items()]


def _row(name: str, config: BenchmarkConfig) -> tuple[str, ...]:
    about = config.about
    assert about is not None
    scorings = [config.scoring, *sorted(set(config.scoring_by_category.values()))]
    own = [config.figures or "", "versions" if config.variants else "", "orders" if config.cycle else ""]
    hub = f"[TSV]({about.hub})" if "://" in about.hub else about.hub
    papers = "".join(LETTERS[paper] for paper in config.papers)
    head = f"`{name}` ({papers}) {hub}: {about.rows}".replace("() ", "")
    return head, "; ".join(filter(None, [", ".join(scorings), *own])), config.unchecked


def _scored(name: str, config: BenchmarkConfig) -> tuple[str, ...]:
    return f"`{name}`", config.official_code, config.differs


if __name__ == "__main__":
    PAGE.write_text(page())
