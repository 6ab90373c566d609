"""What the pages of the RL assets show: votes and pass rates as histograms, the mix of what ships, who was asked."""

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from pipelines.charts import histogram, mix
from pipelines.records import RLRow, ToolNecessity
from pipelines.rl import necessity, pass_rates, suitability
from pipelines.rl.agreement import agreement_in_words
from pipelines.rl.facts import all_votes, grader_counts, polled
from pipelines.rl.shard import Shard
from pipelines.sources.catalog import source_of

_BAR = 24
_MOST_NAMES = 8


def stage_page(shard: Shard, asset: str) -> dict[str, dg.MetadataValue]:
    """The plot of one stage of a shard, and its figures."""
    pages = {
        "rl_candidates": _graders,
        pass_rates.ASSET: _pass_rates,
        necessity.ASSET: _necessity,
        suitability.VOTES: _suitability,
        suitability.LABELS: _labels,
    }
    facts = shard.workspace.tables.facts(shard.key(asset))
    asked = facts.get("notes", {})
    page = {f"asked_{role}": dg.MetadataValue.text(model) for role, model in asked.get("models", {}).items()}
    return {**page, **(pages[asset](shard, asked.get("settings", {})) if asset in pages else {})}


def dataset_page(rows: Sequence[RLRow]) -> dict[str, dg.MetadataValue]:
    """The mix of what ships."""
    groups = {
        "category": _largest(Counter(row.sample.category or "none" for row in rows)),
        "difficulty": _largest(Counter(row.difficulty for row in rows)),
        "grader": _largest(Counter(row.grader.kind for row in rows)),
        "source": _largest(Counter(row.sample.source for row in rows)),
    }
    found = {f"by_{name}": bars(counts) for name, counts in groups.items()}
    if rows:
        found["plot_mix"] = picture(mix(groups, title=f"{len(rows):,} RL rows"))
    return found


def bars(counts: Mapping[Any, int]) -> dg.MetadataValue:
    """A histogram in text, short enough for the page itself."""
    widest = max(counts.values(), default=0) or 1
    lines = [f"{str(name)[:22]:<22} {'█' * round(_BAR * n / widest):<{_BAR}} {n:,}" for name, n in counts.items()]
    return dg.MetadataValue.md("\n".join(["```", *lines, "```"]))


def picture(png: bytes) -> dg.MetadataValue:
    """A plot that needs no file server."""
    return dg.MetadataValue.md(f"![](data:image/png;base64,{base64.b64encode(png).decode()})")


def _largest(counts: Counter[str]) -> dict[str, int]:
    """The largest groups by name, the others together."""
    named = dict(counts.most_common(_MOST_NAMES))
    rest = counts.total() - sum(named.values())
    return named | ({"others": rest} if rest else {})


def _graders(shard: Shard, settings: Mapping[str, Any]) -> dict[str, dg.MetadataValue]:
    return {"graders": bars(dict(grader_counts(shard.workspace, [shard.partition]).most_common()))}


def _pass_rates(shard: Shard, settings: Mapping[str, Any]) -> dict[str, dg.MetadataValue]:
    found = polled(all_votes(shard.workspace, [shard.partition], pass_rates.ASSET))
    n, most = settings["n_answers"], settings["max_rate"]
    plot = histogram(
        found.by_yes,
        top=n,
        title=f"Rows by right answers of {n}",
        marked=[right for right in range(n + 1) if right / n > most],
        note=f"orange: taken out, above {most:.0%}",
    )
    return {
        "pass_rates": bars(found.by_yes),
        "plot_pass_rates": picture(plot),
        "answers_saved": dg.MetadataValue.int(found.n_saved),
        "answers_invalid": dg.MetadataValue.int(found.n_invalid),
    }


def _suitability(shard: Shard, settings: Mapping[str, Any]) -> dict[str, dg.MetadataValue]:
    found = polled(all_votes(shard.workspace, [shard.partition], suitability.VOTES))
    n = settings["n_votes"]
    plot = histogram(
        found.by_yes,
        top=n,
        title=f"Problems by votes for a drawing, of {n}",
        marked=[n // 2] if n % 2 == 0 else [],
        note="orange: as many on either side, where every vote is valid",
    )
    return {
        "votes": bars(found.by_yes),
        "plot_votes": picture(plot),
        "mean_agreement": dg.MetadataValue.float(round(found.mean_agreement, 4)),
        "ties": dg.MetadataValue.int(found.n_tied),
        "votes_saved": dg.MetadataValue.int(found.n_saved),
        "votes_invalid": dg.MetadataValue.int(found.n_invalid),
    }


def _labels(shard: Shard, settings: Mapping[str, Any]) -> dict[str, dg.MetadataValue]:
    votes = all_votes(shard.workspace, [shard.partition], suitability.VOTES)
    said = agreement_in_words([shard], [source_of(shard.partition)])
    return {
        "majorities": bars(Counter(one.majority for one in votes)),
        "agreement_with_people": dg.MetadataValue.text(said),
    }


def _necessity(shard: Shard, settings: Mapping[str, Any]) -> dict[str, dg.MetadataValue]:
    rows = shard.workspace.tables.read(shard.key(necessity.ASSET), ToolNecessity)
    gains = Counter("tools help" if row.prior > 0 else "no difference" if row.prior == 0 else "harm" for row in rows)
    shares = {
        name: sum(getattr(row, name).share for row in rows) / len(rows) if rows else 0.0
        for name in ("forced", "forbidden")
    }
    return {
        "prior": bars(dict(gains.most_common())),
        **{f"accuracy_{name}": dg.MetadataValue.float(round(share, 4)) for name, share in shares.items()},
    }
