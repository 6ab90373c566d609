"""What fails while a family is made: one row's error is its reject, a stage's is said and nothing is written."""

from __future__ import annotations

import dataclasses
import io
from dataclasses import replace
from typing import Any

import pytest
from PIL import Image

from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.models.policies import (
    Completion,
    CompletionRequest,
    OraclePolicy,
    PolicyError,
    PolicyUnavailable,
    oracle_script,
)
from darkroom.pipelines.records import Check, Draft, Trajectory
from darkroom.pipelines.storage.storage_errors import StorageError
from darkroom.pipelines.storage.tables import TableMissing, TableReplaced, TableStale
from darkroom.pipelines.storage.workspace import Workspace
from tests.pipelines.generation.conftest import PARTITION
from tests.pipelines.scripted import Scripted, oracle, run_all, taken_out


def test_a_stage_without_its_input_names_the_command_that_makes_it(workspace: Workspace, recipe: Recipe) -> None:
    with pytest.raises(TableMissing, match="Run: darkroom materialize nowhere"):
        Family(workspace, recipe, "nowhere-0000").draft(oracle(recipe))


def test_a_policy_that_writes_nonsense_gives_only_typed_rejects_that_keep_its_words(family: Family) -> None:
    reports = run_all(family, Scripted(lambda turn: Completion("blub <co")))
    assert reports["trajectories"].n_out == 0
    rejects = taken_out(family)
    malformed = [reject for reject in rejects if reject.reason == "malformed_turn"]
    assert len(malformed) == 4
    assert all("blub" in reject.row for reject in malformed)


def test_a_turn_that_the_token_limit_cut_is_rejected_as_truncated(family: Family) -> None:
    reports = run_all(family, Scripted(lambda turn: Completion("<think>I", finished=False)))
    assert reports["drafts"].reasons == {"not_applicable": 1, "truncated_turn": 4}


def test_what_a_rejected_row_cost_is_part_of_the_stages_cost(family: Family) -> None:
    from darkroom.pipelines.records import Usage

    paid = Completion("no code at all", usage=Usage(calls=1, prompt_tokens=10, completion_tokens=2, cost_usd=0.5))
    reports = run_all(family, Scripted(lambda turn: paid))
    assert reports["drafts"].usage == Usage(calls=4, prompt_tokens=40, completion_tokens=8, cost_usd=2.0)


def test_a_row_whose_endpoint_gave_up_is_quarantined_and_tried_again_by_the_next_run(family: Family) -> None:
    def give_up(turn: CompletionRequest) -> Completion:
        raise PolicyError("HTTP 503")

    first = family.draft(Scripted(give_up))
    assert first.n_quarantined == 4
    again = Scripted(oracle(family.recipe)._script)
    second = family.draft(again)
    assert (second.reused, second.n_out, len(again.turns)) == (False, 4, 4)


def test_turns_that_were_paid_for_are_not_paid_for_again_when_one_row_failed(family: Family) -> None:
    script = oracle_script(family.recipe.family)

    def fail_once(turn: CompletionRequest) -> Completion:
        if turn.task.sample.source_row == "row/2":
            raise PolicyError("HTTP 503")
        return Completion(script(turn))

    family.draft(Scripted(fail_once))
    again = Scripted(script)
    family.draft(again)
    assert len(again.turns) == 1


def test_an_unreachable_policy_is_said_before_any_row_is_touched(family: Family) -> None:
    class Absent(Scripted):
        async def check(self) -> None:
            raise PolicyUnavailable("set DARKROOM_POLICY_URL")

    policy = Absent(lambda turn: Completion(""))
    with pytest.raises(PolicyUnavailable, match="DARKROOM_POLICY_URL"):
        family.draft(policy)
    assert len(policy.turns) == 0
    assert not family.workspace.tables.exists(family.key("drafts"))


def test_a_failed_check_is_a_reject_that_names_the_check_and_keeps_the_whole_row(family: Family) -> None:
    def wrong(turn: CompletionRequest) -> Completion:
        if turn.rounds:
            return Completion("so</think>\n<answer>something else</answer>")
        return Completion(oracle_script(family.recipe.family)(turn))

    reports = run_all(family, Scripted(wrong))
    assert reports["trajectories"].reasons == {"check_failed: answer_matches": 4}
    reject = family.workspace.tables.read_rejects(family.key("trajectories"))[0]
    assert "something else" in reject.row
    assert "expected 'S0X'" in reject.evidence


def test_an_error_of_a_check_quarantines_the_row_and_the_run_goes_on(family: Family) -> None:
    def broken(case) -> Check:
        raise ZeroDivisionError("a bug in a check")

    faulty = dataclasses.replace(family, recipe=replace(family.recipe, checks=(broken,)))
    reports = run_all(faulty)
    assert reports["verdicts"].n_quarantined == 4
    assert "a bug in a check" in faulty.workspace.tables.read_rejects(faulty.key("verdicts"))[0].evidence


def test_an_error_of_a_recipe_quarantines_the_row_and_the_run_goes_on(family: Family) -> None:
    def broken(sample, store):
        raise KeyError("a bug in a recipe")

    faulty = dataclasses.replace(family, recipe=replace(family.recipe, prepare=broken))
    assert run_all(faulty)["drafts"].n_quarantined == 4, "the fifth is not applicable"


def test_an_error_of_the_oracles_script_quarantines_the_row_and_the_run_goes_on(family: Family) -> None:
    def broken(turn: CompletionRequest) -> str:
        if turn.task.sample.source_row == "row/2":
            raise KeyError("a bug in a script")
        return oracle_script(family.recipe.family)(turn)

    report = family.draft(OraclePolicy(broken, revision="broken"))
    assert (report.n_out, report.reasons["stage_failed"]) == (3, 1)


def test_an_error_in_the_second_turn_quarantines_the_row_and_the_run_goes_on(family: Family) -> None:
    def broken(turn: CompletionRequest) -> str:
        if turn.rounds and turn.task.sample.source_row == "row/2":
            raise KeyError("a bug in a script")
        return oracle_script(family.recipe.family)(turn)

    family.draft(OraclePolicy(broken, revision="broken"))
    report = family.run(OraclePolicy(broken, revision="broken"))
    assert (report.n_out, report.reasons) == (3, {"stage_failed": 1})


def test_a_broken_disk_is_no_rows_error_and_stops_the_stage(family: Family) -> None:
    def full(turn: CompletionRequest) -> str:
        raise OSError(28, "No space left on device")

    with pytest.raises(StorageError, match=r"No space left on device\. To do: free or enlarge the disk"):
        family.draft(OraclePolicy(full, revision="full"))
    assert not family.workspace.tables.exists(family.key("drafts"))


def test_another_policy_than_the_one_that_drafted_is_refused(family: Family) -> None:
    family.draft(oracle(family.recipe))
    with pytest.raises(TableStale, match="materialise the drafts again"):
        family.run(Scripted(lambda turn: Completion("")))


def test_a_stage_made_from_samples_that_are_gone_says_what_to_run(family: Family, small_source) -> None:
    family.draft(oracle(family.recipe))
    fewer = dataclasses.replace(small_source, n_rows=3, fingerprint="fewer")
    engine.intake(family.workspace, fewer, 0, PARTITION)
    with pytest.raises(TableStale, match=r"run: darkroom materialize small --family crop$"):
        family.run(oracle(family.recipe))


def test_an_image_that_a_recipe_cannot_read_is_that_rows_error_alone(family: Family) -> None:
    def unreadable(sample, store):
        if sample.source_row == "row/2":
            Image.open(io.BytesIO(b"no image"))
        return family.recipe.prepare(sample, store)

    faulty = dataclasses.replace(family, recipe=replace(family.recipe, prepare=unreadable))
    report = faulty.draft(oracle(faulty.recipe))
    assert (report.n_out, report.reasons["stage_failed"]) == (3, 1)


def test_a_stage_whose_input_another_run_replaces_meanwhile_writes_nothing(
    ran: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, key = ran.workspace.tables, ran.key("verdicts")
    rows, keep = tables.read(key, Trajectory), engine.Trajectories.measure

    async def measure(stage: engine.Trajectories, *row: Any) -> Any:
        tables.write(key, Trajectory, rows[:-1], [], inputs="another run's", facts=tables.facts(key))
        return await keep(stage, *row)

    kept = tables.path(ran.key("trajectories")).read_bytes()
    tables.write(key, Trajectory, rows[::-1], [], inputs="", facts=tables.facts(key))
    monkeypatch.setattr(engine.Trajectories, "measure", measure)
    with pytest.raises(TableReplaced, match="DARKROOM_HOME each"):
        ran.keep()
    assert tables.path(ran.key("trajectories")).read_bytes() == kept


def test_runs_of_drafts_that_another_run_replaced_are_not_judged(ran: Family) -> None:
    tables, key = ran.workspace.tables, ran.key("drafts")
    drafts = [dataclasses.replace(draft, trajectory_id=f"other{n}") for n, draft in enumerate(tables.read(key, Draft))]
    tables.write(key, Draft, drafts, [], inputs="another run's", facts=tables.facts(key))
    with pytest.raises(TableReplaced, match="DARKROOM_HOME each"):
        ran.check()
