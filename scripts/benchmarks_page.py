"""Writes ``docs/benchmarks.md`` from the bundled benchmarks' files.

python -m scripts.benchmarks_page            # after a change of such a file; a test compares page and files
"""

from pathlib import Path

from darkroom.pipelines.inspection.pages import markdown_table
from darkroom.train.evaluation.benchmarks import BenchmarkConfig, bundled

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
INTRODUCTION = """# Benchmarks

The benchmarks of the five papers' tables, and VisualProbe, are files in `train/evaluation/benchmarks/`. Download one,
then run `darkroom evaluate --model CHECKPOINT --benchmark mathvista=FOLDER --output OUT`; FOLDER may be a single
parquet or TSV file. No benchmark was downloaded to write these files: columns are from cards and public code, each
mapping is tested with rows of these columns, and the last column says what remains unchecked. A missing column stops
the evaluation and lists the existing ones.

Questions with choices are graded by choice. Other scorings: `grader`: the rule that fits the answer
([graders](graders.md)); `judged`: a judge (`--judge-url`; without one the same words); `share`: a judge in tenths;
`anls`: likeness; `relaxed`: numbers within 5 % (ChartQA §5.1); `relative`: mean relative accuracy, ten thresholds
from 0.5 to 0.95, error below 1 - θ; `rounded`: to the row's precision; `close`: within 0.001; `contains`: an accepted
text in the answer; `letters`: the set of option letters; `braced`: the text in braces; also `positions`, `overlap`,
`numbers`, `yes_no`. *own* figures are below the accuracy table. *versions*: rows of one problem; intervals are over
problems, and "every order right" is worst-case accuracy. `--rollouts 32 --temperature 1` gives avg@32 and pass@k,
`--top-k 20` PyVision-RL's sampling. T Thyme, P PyVision-RL, C CodeV, L Look Less, Reason More, F FIGR. This page is
generated (`python -m scripts.benchmarks_page`).
"""
LETTERS = {"Thyme": "T", "PyVision-RL": "P", "CodeV": "C", "Look Less, Reason More": "L", "FIGR": "F"}


def page() -> str:
    head = ["name", "papers", "hub", "rows", "scoring", "own", "not checked without the hub"]
    rows = [_row(name, config) for name, config in bundled().items()]
    return "\n".join([INTRODUCTION, markdown_table(head, rows), ""])


def _row(name: str, config: BenchmarkConfig) -> list[str]:
    about = config.about
    assert about is not None
    scorings = [config.scoring, *sorted(set(config.scoring_by_category.values()))]
    own = [config.figures or "", "versions" if config.variants else "", "orders" if config.cycle else ""]
    hub = f"[TSV]({about.hub})" if "://" in about.hub else about.hub
    papers = "".join(LETTERS[paper] for paper in config.papers)
    cells = [f"`{name}`", papers, hub, about.rows, ", ".join(scorings), ", ".join(filter(None, own)), config.unchecked]
    return [cell.replace("|", "\\|") for cell in cells]


if __name__ == "__main__":
    PAGE.write_text(page())
