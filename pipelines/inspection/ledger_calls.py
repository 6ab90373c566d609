"""Ledger calls of a row: code runs by their keys, model calls by seeds that only this row has.

The key of a code run can be computed again from the row. A turn's cannot (the conversation is not stored), but its seed
can: from the family and the sample, a plan's from its prompt, a vote's from the question and the trajectory. Turns of
earlier policies and prompts have the same seeds and are among the calls. An answer without aid has its sample's seed:
every family with such answers shows them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.models import prompts
from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.rl.candidates import seed_of
from darkroom.pipelines.rl.necessity import MAX_ROUNDS, MODES, necessity_seed
from darkroom.pipelines.storage.cached_calls import Recorded
from darkroom.pipelines.storage.ledger import Ledger, call_key
from darkroom.pipelines.verification.checks.necessity import VIEWS, answer_seed
from darkroom.pipelines.verification.judges.judge import judge_seed

_TURNS_AHEAD = 2
"""Turns after the last round on record: the answer, and one that was cut off or malformed."""
_MOST_VOTES = 16
RL_PROMPTS = ("belongs_together", "self_contained", "relabel", "pass_rate", "suitability")


@dataclass(frozen=True, slots=True)
class LedgerCall:
    """One call: what it was for the row, who did it, its cost, and its result."""

    what: str
    kind: str
    key: str
    model: str
    seconds: float
    cost_usd: float
    made_at: str
    output: str
    """A policy's text; of a code run its status."""


def rollout_calls(
    ledger: Ledger, row: Mapping[str, Any], sample: Mapping[str, Any], *, family: str, trajectory_id: str
) -> tuple[LedgerCall, ...]:
    """The calls of one rollout on a sample, oldest first. ``row`` is the latest form of it that there is."""
    seeds = dict(_policy_seeds(row, sample["sample_id"], family, trajectory_id))
    return _recorded_calls(ledger, seeds, _code_keys(row, sample))


def rl_calls(ledger: Ledger, sample_id: str) -> tuple[LedgerCall, ...]:
    """The questions about a sample on its way to an RL row, oldest first."""
    seeds = {seed_of(name, sample_id) + n: f"{name}, answer {n + 1}" for name in RL_PROMPTS for n in range(_MOST_VOTES)}
    for mode in MODES:
        first = necessity_seed(mode, sample_id)
        for n in range(_MOST_VOTES):
            seeds[first + n] = f"{mode} {n + 1}, turn 1"
            for turn in range(1, MAX_ROUNDS + 1):
                seeds[seed_from(first + n, turn)] = f"{mode} {n + 1}, turn {turn + 1}"
    return _recorded_calls(ledger, seeds, {})


def _recorded_calls(ledger: Ledger, seeds: Mapping[int, str], keys: Mapping[str, str]) -> tuple[LedgerCall, ...]:
    """The calls on record: of policies by their seeds, of the sandbox by their keys, each with what it was."""
    calls = [_ledger_call(seeds[call.request["seed"]], call) for call in ledger.with_seeds("policy", list(seeds))]
    calls += [_ledger_call(keys[key], call) for key, call in ledger.look_up(list(keys)).items()]
    return tuple(sorted(calls, key=lambda call: call.made_at))


def _policy_seeds(row: Mapping[str, Any], sample_id: str, family: str, trajectory_id: str) -> Iterator[tuple[int, str]]:
    """The seeds of turns, plan, judges' votes and answers without aid, each with what it is for."""
    seed = (row.get("provenance") or {}).get("seed", seed_from(family, sample_id))
    n_turns = len(row.get("rounds") or ()) + _TURNS_AHEAD
    yield from ((seed_from(seed, n), f"turn {n + 1}") for n in range(n_turns))
    recipe = load_recipes().get(family)
    if recipe is not None and recipe.plan is not None:
        plan = recipe.plan.prompt.name
        yield seed_from(seed_from(plan, sample_id), 0), f"plan {plan}"
    if not trajectory_id:
        return
    checks = row.get("checks") or ()
    # judges' questions are named after their check or their prompt
    names = {check["name"] for check in checks} | {path.stem for path in Path(prompts.__file__).parent.glob("*.md")}
    for name in names | {name.removeprefix("judge_") for name in names}:
        yield from ((judge_seed(name, trajectory_id) + n, f"{name}, vote {n + 1}") for n in range(_MOST_VOTES))
    n_answers = max((check.get("n_trials", 0) for check in checks), default=0)
    for view in VIEWS:
        yield from ((answer_seed(view, sample_id) + n, f"answer {n + 1}, {view}") for n in range(n_answers))


def _code_keys(row: Mapping[str, Any], sample: Mapping[str, Any]) -> dict[str, str]:
    """The keys of the row's code runs, as ``pipelines/generation/sandbox_sessions.py`` makes them."""
    if not row.get("rounds"):
        return {}
    protocol = PROTOCOLS.get(row["protocol"])
    setup = [protocol.setup] if protocol is not None and protocol.setup else []
    codes = [*setup, *(turn["code"] for turn in row["rounds"])]
    names = [*(["setup"] if setup else []), *(f"code {n + 1}" for n in range(len(row["rounds"])))]
    videos = [video["sha256"] for video in sample.get("videos") or ()]
    request = {
        "sandbox": row["provenance"]["sandbox_digest"],
        "images": [image["sha256"] for image in row["images"]],
        "seed": row["provenance"]["seed"],
        **({"videos": videos} if videos else {}),
    }
    return {call_key("sandbox", {**request, "programs": codes[: n + 1]}): name for n, name in enumerate(names)}


def _ledger_call(what: str, recorded: Recorded) -> LedgerCall:
    text = recorded.call.result.get("text" if recorded.kind == "policy" else "status", "")
    model = recorded.request.get("identity", {}).get("model", "")
    seconds, cost_usd = recorded.call.seconds, recorded.call.cost_usd
    return LedgerCall(what, recorded.kind, recorded.key, model, seconds, cost_usd, recorded.made_at, text)
