"""The card of the RL dataset: written from facts, never by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import jinja2
import yaml

from pipelines.records import RLRow
from pipelines.rl import pass_rates, suitability
from pipelines.rl.dataset import source_of
from pipelines.rl.facts import all_votes, polled, stage_facts
from pipelines.stages import Report
from pipelines.workspace import Workspace

RL_CARD_TEMPLATE = Path(__file__).with_name("card.md.jinja").read_text()
_ENVIRONMENT = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, autoescape=False)
_BAR = 24


def write_rl_card(
    workspace: Workspace,
    partitions: Sequence[str],
    rows: Sequence[RLRow],
    report: Report,
    *,
    n_by_split: Mapping[str, int],
    benchmarks: Sequence[str],
    agreement: str,
) -> str:
    """The card's text, with the front matter that the Hugging Face hub reads."""
    solved = polled(all_votes(workspace, partitions, pass_rates.ASSET))
    voted = polled(all_votes(workspace, partitions, suitability.VOTES))
    return _ENVIRONMENT.from_string(RL_CARD_TEMPLATE).render(
        front_matter=yaml.safe_dump(_front_matter(rows), sort_keys=False).strip(),
        rows=rows,
        report=report,
        n_by_split=n_by_split,
        benchmarks=benchmarks,
        counts={
            "origin": Counter(row.origin for row in rows),
            "source": Counter(row.sample.source for row in rows),
            "category": Counter(row.sample.category or "none" for row in rows),
            "difficulty": Counter(row.difficulty for row in rows),
            "grader": Counter(row.grader.kind for row in rows),
            "licence": Counter(row.sample.license or "not stated" for row in rows),
        },
        quota_names=sorted({source_of(row) for row in rows}),
        stages=stage_facts(workspace, partitions),
        solved=solved,
        voted=voted,
        agreement=agreement,
        bars=_bars,
        suitable=Counter(row.suitability.majority for row in rows if row.suitability is not None),
        priors=[row.necessity.prior for row in rows if row.necessity is not None],
    )


def _bars(counts: Mapping[int, int]) -> str:
    """A histogram in text: a line per value."""
    widest = max(counts.values(), default=0) or 1
    lines = [f"{value:>3}  {'█' * round(_BAR * n / widest):<{_BAR}} {n:,}" for value, n in counts.items()]
    return "\n".join(["```", *lines, "```"])


def _front_matter(rows: Sequence[RLRow]) -> dict[str, object]:
    # no `configs` here: with them, `load_dataset(folder)` answers from its cache after the folder was made anew
    licenses = sorted({part for row in rows for part in row.sample.license.split(" AND ") if part})
    return {
        "pretty_name": "Darkroom RL prompts",
        "license": "other",
        "license_name": " AND ".join(licenses) or "not stated",
        "task_categories": ["visual-question-answering"],
        "tags": ["darkroom", "thinking-with-images", "reinforcement-learning"],
    }
