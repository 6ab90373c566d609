"""The acts that belong to a row: program runs by their keys, and what policies wrote by the seeds that only it has.

A program's key can be computed again from the row. A turn's cannot (the conversation isn't kept), but its seed can:
seeds come from the family and the sample, a plan's from its prompt, a vote's from the question and the trajectory.
Turns of earlier policies and prompts have the same seeds, so they are found as well. An answer without aid has its
sample's seed: every family that asked for it shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines import prompts
from pipelines.checks.necessity import VIEWS, answer_seed
from pipelines.digest import seed_from
from pipelines.judges.policy import judge_seed
from pipelines.ledger import Ledger, Recorded, act_key
from pipelines.protocols import PROTOCOLS
from pipelines.recipes import load_recipes
from pipelines.rl.asking import seed_of
from pipelines.rl.necessity import MAX_ROUNDS, MODES, necessity_seed

_TURNS_AHEAD = 2
"""Turns after the last round on record: the answer, and one that was cut off or malformed."""
_MOST_VOTES = 16
RL_PROMPTS = ("belongs_together", "self_contained", "relabel", "pass_rate", "suitability")


@dataclass(frozen=True, slots=True)
class RowAct:
    """One act: what it was for the row, who did it, what it took, and what it gave."""

    what: str
    kind: str
    key: str
    model: str
    seconds: float
    cost_usd: float
    made_at: str
    said: str
    """A policy's words; of a program its status."""


def acts_of(
    ledger: Ledger, row: Mapping[str, Any], sample: Mapping[str, Any], *, family: str, trajectory_id: str
) -> tuple[RowAct, ...]:
    """The acts of one rollout on a sample, oldest first. ``row`` is the latest form of it that there is."""
    seeds = dict(_turns(row, sample["sample_id"], family))
    seeds |= _plans(sample["sample_id"], family)
    if trajectory_id:
        seeds |= _votes(row, trajectory_id) | _unaided(row, sample["sample_id"])
    programs = _programs(row, sample)
    found = [_row_act(seeds[act.request["seed"]], act) for act in ledger.with_seeds("policy", list(seeds))]
    found += [_row_act(programs[key], act) for key, act in ledger.look_up(list(programs)).items()]
    return tuple(sorted(found, key=lambda act: act.made_at))


def rl_acts(ledger: Ledger, sample_id: str) -> tuple[RowAct, ...]:
    """What was asked about a sample on its way to an RL row, oldest first."""
    seeds = {
        seed_of(stage, sample_id) + n: f"{stage}, answer {n + 1}" for stage in RL_PROMPTS for n in range(_MOST_VOTES)
    }
    for mode in MODES:
        first = necessity_seed(mode, sample_id)
        for n in range(_MOST_VOTES):
            seeds[first + n] = f"{mode} {n + 1}, turn 1"
            seeds |= {
                seed_from(first + n, turn): f"{mode} {n + 1}, turn {turn + 1}" for turn in range(1, MAX_ROUNDS + 1)
            }
    found = [_row_act(seeds[act.request["seed"]], act) for act in ledger.with_seeds("policy", list(seeds))]
    return tuple(sorted(found, key=lambda act: act.made_at))


def _turns(row: Mapping[str, Any], sample_id: str, family: str) -> Iterator[tuple[int, str]]:
    seed = (row.get("provenance") or {}).get("seed", seed_from(family, sample_id))
    for n in range(len(row.get("rounds") or ()) + _TURNS_AHEAD):
        yield seed_from(seed, n), f"turn {n + 1}"


def _plans(sample_id: str, family: str) -> dict[int, str]:
    recipe = load_recipes().get(family)
    if recipe is None or recipe.plan is None:
        return {}
    name = recipe.plan.prompt.name
    return {seed_from(seed_from(name, sample_id), 0): f"plan {name}"}


def _votes(row: Mapping[str, Any], trajectory_id: str) -> dict[int, str]:
    return {
        judge_seed(name, trajectory_id) + n: f"{name}, vote {n + 1}"
        for name in _question_names(row.get("checks") or ())
        for n in range(_MOST_VOTES)
    }


def _unaided(row: Mapping[str, Any], sample_id: str) -> dict[int, str]:
    """The answers that ``pipelines/checks/necessity.py`` asked for."""
    n_answers = max((check.get("n_trials", 0) for check in row.get("checks") or ()), default=0)
    return {answer_seed(view, sample_id) + n: f"answer {n + 1}, {view}" for view in VIEWS for n in range(n_answers)}


def _question_names(checks: Iterable[Mapping[str, Any]]) -> set[str]:
    """What a judge may have been asked: questions are named after their check or their prompt."""
    names = {check["name"] for check in checks}
    names |= {path.stem for path in Path(prompts.__file__).parent.glob("*.md")}
    return names | {name.removeprefix("judge_") for name in names}


def _programs(row: Mapping[str, Any], sample: Mapping[str, Any]) -> dict[str, str]:
    """The keys of the row's program runs, as ``pipelines/execution.py`` makes them."""
    if not row.get("rounds"):
        return {}
    protocol = PROTOCOLS.get(row["protocol"])
    setup = [protocol.setup] if protocol is not None and protocol.setup else []
    programs = [*setup, *(turn["code"] for turn in row["rounds"])]
    names = [*(["setup"] if setup else []), *(f"program {n + 1}" for n in range(len(row["rounds"])))]
    videos = [video["sha256"] for video in sample.get("videos") or ()]
    request = {
        "sandbox": row["provenance"]["sandbox_digest"],
        "images": [image["sha256"] for image in row["images"]],
        "seed": row["provenance"]["seed"],
        **({"videos": videos} if videos else {}),
    }
    return {act_key("sandbox", {**request, "programs": programs[: n + 1]}): name for n, name in enumerate(names)}


def _row_act(what: str, found: Recorded) -> RowAct:
    said = found.act.result.get("text" if found.kind == "policy" else "status", "")
    model = found.request.get("identity", {}).get("model", "")
    return RowAct(what, found.kind, found.key, model, found.act.seconds, found.act.cost_usd, found.made_at, said)
