"""The engine, with the real sandbox, ledger and store: what it promises about rows, resuming and bytes."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import STAGES, Family
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.models.policies import (
    Completion,
    CompletionRequest,
    PolicyError,
    oracle_script,
)
from darkroom.pipelines.records import Reject, Trajectory
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from tests.pipelines.generation.conftest import PARTITION
from tests.pipelines.scripted import Scripted, oracle, run_all


def table_bytes(home: Path) -> dict[str, bytes]:
    root = home / "tables"
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.parquet"))}


def test_every_sample_becomes_a_trajectory_or_a_reject(family: Family) -> None:
    reports = run_all(family)
    tables = family.workspace.tables
    n_samples = tables.n_rows(family.samples_key)
    assert n_samples == 5
    assert reports["trajectories"].n_out + reports["rejects"].n_in == n_samples
    assert (reports["rejects"].n_out, reports["rejects"].n_not_applicable) == (0, 1)
    for report in reports.values():
        assert report.n_in == report.n_out + report.n_rejected + report.n_quarantined + report.n_not_applicable


def test_the_oracles_crops_pass_every_check(ran: Family) -> None:
    kept = ran.workspace.tables.read(ran.key("trajectories"), Trajectory)
    assert [len(made.rounds) for made in kept] == [1, 1, 1, 1]
    assert all(made.passed for made in kept)
    assert {check.name for made in kept for check in made.checks} >= {"crop_contains_target", "answer_matches"}
    assert {made.provenance.policy for made in kept} == {"oracle"}


def test_a_crops_image_names_its_parent_and_the_code_that_made_it(ran: Family) -> None:
    made = ran.workspace.tables.read(ran.key("trajectories"), Trajectory)[0]
    shown = made.rounds[0].observation.images[0]
    assert shown.parent == made.images[0].sha256
    assert shown.made_by


def test_a_sample_without_a_box_is_not_applicable_and_no_reject(ran: Family) -> None:
    tables, rejects = ran.workspace.tables, ran.key("rejects")
    assert [(row.disposition, row.source_row) for row in tables.read_rejects(rejects)] == [("not_applicable", "row/1")]
    assert tables.read(rejects, Reject) == []


def test_a_sample_that_its_source_keeps_for_other_families_is_not_paid_for(
    workspace: Workspace, recipe: Recipe, small_source
) -> None:
    def kept(row: SourceRow) -> SourceRow:
        families = ["direct"] if row.row == "row/2" else ["direct", recipe.family]
        return replace(row, truth=replace(row.truth, details=json.dumps({"families": families})))

    source = SimpleNamespace(
        name=small_source.name,
        fingerprint="kept",
        n_shards=1,
        rows=lambda shard: (kept(row) for row in small_source.rows(shard)),
    )
    everywhere = Family(workspace, recipe, "all-0000")
    engine.intake(workspace, small_source, 0, "all-0000")
    engine.intake(workspace, source, 0, PARTITION)
    policy = Scripted(oracle_script(recipe.family))
    report = Family(workspace, recipe, PARTITION).draft(policy)
    assert report.n_out == len(policy.turns) == everywhere.draft(oracle(recipe)).n_out - 1
    rejects = workspace.tables.read_rejects(TableKey((recipe.family, "drafts"), PARTITION))
    assert {reject.evidence for reject in rejects if reject.source_row == "row/2"} == {"its source keeps it for direct"}


def test_a_second_run_does_nothing_and_changes_no_byte(ran: Family) -> None:
    before = table_bytes(ran.workspace.home)
    again = run_all(ran)
    assert all(report.reused for report in again.values())
    assert table_bytes(ran.workspace.home) == before


def test_tables_made_anew_from_the_ledger_are_equal_byte_for_byte_and_perform_nothing(ran: Family) -> None:
    before = table_bytes(ran.workspace.home)
    acts = ran.workspace.ledger.totals()
    for stage in (*STAGES, "rejects"):
        ran.workspace.tables.path(ran.key(stage)).unlink()
    again = run_all(ran)
    assert not any(report.reused for report in again.values())
    assert sum(report.performed for report in again.values()) == 0
    assert ran.workspace.ledger.totals() == acts
    assert table_bytes(ran.workspace.home) == before


def test_another_workspace_gives_the_same_bytes(ran: Family, recipe: Recipe, small_source, tmp_path: Path) -> None:
    with Workspace.from_environment({"DARKROOM_HOME": str(tmp_path / "other")}) as other:
        engine.intake(other, small_source, 0, PARTITION)
        run_all(Family(other, recipe, PARTITION))
        assert table_bytes(other.home) == table_bytes(ran.workspace.home)


def test_a_policy_that_never_answers_is_stopped_after_the_recipes_rounds(family: Family) -> None:
    looping = Completion("<think>again\n<code>\n```python\nprint(1)\n```\n</code>")
    reports = run_all(family, Scripted(lambda turn: looping))
    assert reports["runs"].reasons == {"too_many_rounds": 4}
    reject = family.workspace.tables.read_rejects(family.key("runs"))[0]
    assert reject.row.count("again") == family.recipe.max_rounds


def test_state_lives_across_the_rounds_of_one_rollout(family: Family) -> None:
    def counts(turn: CompletionRequest) -> Completion:
        code = "n = 41" if not turn.rounds else "print(n + 1)"
        if len(turn.rounds) == 2:
            return Completion(f"so</think>\n<answer>{turn.rounds[1].observation.text.strip()}</answer>")
        return Completion(f"<think>go\n<code>\n```python\n{code}\n```\n</code>")

    run_all(family, Scripted(counts))
    runs = family.workspace.tables.read(family.key("runs"), Trajectory)
    assert {made.answer for made in runs} == {"42"}


def test_a_killed_rollout_replays_its_first_program_and_executes_only_the_second(family: Family) -> None:
    turns: list[str] = ["n = 41", "print(n + 1)"]

    def first_round_only(turn: CompletionRequest) -> Completion:
        if turn.rounds:
            raise PolicyError("killed here")
        return Completion(f"<think>go\n<code>\n```python\n{turns[0]}\n```\n</code>")

    def whole(turn: CompletionRequest) -> Completion:
        if len(turn.rounds) < 2:
            return Completion(f"<think>go\n<code>\n```python\n{turns[len(turn.rounds)]}\n```\n</code>")
        return Completion(f"so</think>\n<answer>{turn.rounds[1].observation.text.strip()}</answer>")

    family.draft(Scripted(first_round_only))
    family.run(Scripted(first_round_only))
    report = family.run(Scripted(whole))
    runs = family.workspace.tables.read(family.key("runs"), Trajectory)
    assert {made.answer for made in runs} == {"42"}
    # of each of the four rollouts: two turns written and one program executed; the first program is in the ledger
    assert report.performed == 4 * (2 + 1)


def test_editing_the_prompt_pays_for_its_rows_and_keeps_the_old_ones_in_the_ledger(family: Family) -> None:
    def make() -> Scripted:
        return Scripted(oracle_script(family.recipe.family))

    family.draft(make())
    edited = replace(family.recipe.prompt, user=family.recipe.prompt.user + "\nBe brief.", digest="edited")
    changed = dataclasses.replace(family, recipe=replace(family.recipe, prompt=edited))
    second = make()
    changed.draft(second)
    third = make()
    family.draft(third)
    assert (len(second.turns), len(third.turns)) == (4, 0)


def test_what_a_turn_cost_is_counted_by_the_stage_that_paid_for_it(family: Family) -> None:
    from darkroom.pipelines.records import Usage

    def paid(turn: CompletionRequest) -> Completion:
        return Completion(oracle_script(family.recipe.family)(turn), usage=Usage(calls=1, cost_usd=1.0))

    reports = run_all(family, Scripted(paid))
    costs = {stage: report.usage.cost_usd for stage, report in reports.items()}
    assert costs == {"drafts": 4.0, "runs": 4.0, "verdicts": 0.0, "trajectories": 0.0, "rejects": 0.0}
    assert family.workspace.ledger.totals()["policy"].cost_usd == 8.0


def test_a_multiple_choice_answer_is_its_letter_however_the_source_spells_it(
    workspace: Workspace, recipe: Recipe, small_source
) -> None:
    row = dataclasses.replace(small_source._row(2), choices=("A. nothing", "B. S2X"))
    asked = [
        dataclasses.replace(row, row=answer, question=f"{row.question} Write it as in {n}.", answer=answer)
        for n, answer in enumerate(["B", "b", "(B)", "S2X", "B. S2X"])
    ]
    only = dataclasses.replace(small_source, n_rows=0, extra=tuple(asked))
    engine.intake(workspace, only, 0, PARTITION)
    family = Family(workspace, recipe, PARTITION)
    run_all(family)
    rows = workspace.tables.read(family.key("trajectories"), Trajectory)
    assert [made.answer for made in rows] == ["B"] * len(asked)
    assert all("S2X. That is choice B." in made.final_thought for made in rows)


def test_a_target_without_a_name_reads_as_a_sentence(workspace: Workspace, recipe: Recipe, small_source) -> None:
    row = small_source._row(2)
    nameless = dataclasses.replace(row.truth.boxes[0], label="")
    only = dataclasses.replace(
        small_source, n_rows=0, extra=(dataclasses.replace(row, truth=replace(row.truth, boxes=(nameless,))),)
    )
    engine.intake(workspace, only, 0, PARTITION)
    family = Family(workspace, recipe, PARTITION)
    run_all(family)
    made = workspace.tables.read(family.key("trajectories"), Trajectory)[0]
    assert "the print " in made.rounds[0].thought
    assert "  " not in made.rounds[0].thought


def test_with_a_limit_no_more_samples_are_drawn_and_paid_for(family: Family) -> None:
    script = oracle_script(family.recipe.family)
    policy = Scripted(script)
    report = family.draft(policy, n_most=2)
    assert (report.n_out, len(policy.turns)) == (2, 2)
    assert report.reasons["not_drawn"] + report.reasons.get("not_applicable", 0) == report.n_in - 2


def test_a_larger_limit_pays_for_the_difference_alone(family: Family) -> None:
    script = oracle_script(family.recipe.family)
    family.draft(Scripted(script), n_most=2)
    more = Scripted(script)
    assert family.draft(more, n_most=3).n_out == 3
    assert len(more.turns) == 1


def test_a_limit_counts_drafts_and_not_samples_that_came_to_nothing(family: Family) -> None:
    script = oracle_script(family.recipe.family)

    def fail_first(turn: CompletionRequest) -> Completion:
        return Completion("no code" if turn.task.sample.source_row == "row/1" else script(turn))

    report = family.draft(Scripted(fail_first), n_most=3)
    assert report.n_out == 3


def test_more_than_there_are_is_all_there_are(family: Family) -> None:
    assert family.draft(oracle(family.recipe), n_most=100).n_out == 4
