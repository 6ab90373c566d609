"""What makes a stage's table stale: the code that decides its rows, and no other."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from darkroom.annotation.rounds.campaign import ANNOTATION_CODE
from darkroom.pipelines.generation.drafting import Drafts
from darkroom.pipelines.generation.engine import INTAKE_CODE, Family, Runs, Trajectories, intake
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.generation.stage import RUNNER_CODE
from darkroom.pipelines.generation.verdicts import Verdicts
from darkroom.pipelines.models.policies.embedded import SCRIPTS_CODE, oracle_policy, oracle_script
from darkroom.pipelines.publishing.dataset_writer import ROWS_CODE
from darkroom.pipelines.rl.candidates import Candidates
from darkroom.pipelines.rl.labels import CheckedLabels
from darkroom.pipelines.rl.necessity import ToolNecessities
from darkroom.pipelines.rl.pass_rates import PassRates
from darkroom.pipelines.rl.suitability import Suitability, SuitabilityLabels
from darkroom.pipelines.storage import stage_runs
from darkroom.pipelines.storage.stage_runs import code_digest, file_version
from scripts import code_versions
from scripts.code_versions import DATA, data_digests
from tests.pipelines.scripted import Scripted

PARTITION = "small-0000"
CODE: dict[str, tuple[str, ...]] = {
    "samples": INTAKE_CODE,
    **{
        kind.__name__: (*RUNNER_CODE, *kind.code)
        for kind in (
            Drafts,
            Runs,
            Verdicts,
            Trajectories,
            Candidates,
            CheckedLabels,
            PassRates,
            ToolNecessities,
            Suitability,
            SuitabilityLabels,
        )
    },
    "sft_dataset": ROWS_CODE,
    "annotation": ANNOTATION_CODE,
    "oracle": (*SCRIPTS_CODE, "darkroom.pipelines.demo.oracle"),
}


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The declared versions, to be raised."""
    raised = dict(stage_runs.code_versions())
    monkeypatch.setattr(stage_runs, "code_versions", lambda: raised)
    return raised


def stale_after(versions: dict[str, int], name: str) -> set[str]:
    """The stages that a new version of ``name`` makes stale."""
    before = {stage: code_digest(*code) for stage, code in CODE.items()}
    versions[name] += 1
    return {stage for stage, code in CODE.items() if code_digest(*code) != before[stage]}


@pytest.mark.parametrize(
    "module",
    [
        "inspection.gallery",
        "inspection.explain",
        "publishing.layouts.exporter",
        "models.serving",
        "generation.funnel",
        "rl.facts",
    ],
)
def test_what_decides_no_row_is_named_by_no_stage(module):
    assert not [
        name for code in CODE.values() for name in code if f"darkroom.pipelines.{module}.".startswith(f"{name}.")
    ]


@pytest.mark.parametrize(
    ("name", "stale"),
    [
        ("pipelines.verification", {"Verdicts"}),
        ("pipelines.demo.oracle", {"oracle"}),
        ("annotation.rounds", {"annotation"}),
        ("pipelines.publishing.layouts", set()),
        ("pipelines.generation.recipes.crop", {"oracle"}),  # the family's own tables, by its recipe
        ("pipelines.storage", set(CODE) - {"oracle"}),
        ("pipelines.records", set(CODE)),
    ],
)
def test_a_new_version_makes_the_stages_stale_that_name_it(versions, name, stale):
    assert stale_after(versions, f"darkroom.{name}") == stale


def test_a_package_has_the_versions_of_all_below_it(versions):
    graded = stale_after(versions, "darkroom.pipelines.verification.grading")
    assert {"Verdicts", "Drafts", "Runs", "Candidates"} <= graded


def test_a_recipes_version_and_a_users_file_decide_their_family(versions, tmp_path):
    recipes = Path(stage_runs.__file__).parents[1] / "generation" / "recipes"
    crop, rotation = file_version(recipes / "crop.py"), file_version(recipes / "rotation.py")
    versions["darkroom.pipelines.generation.recipes.crop"] += 1
    assert (file_version(recipes / "crop.py") != crop, file_version(recipes / "rotation.py")) == (True, rotation)
    policy = oracle_policy("rotation").identity
    versions["darkroom.pipelines.demo.oracle"] += 1
    assert oracle_policy("rotation").identity != policy, "the nearest package that has a version"
    (own := tmp_path / "mine.py").write_text("x = 1")
    before = file_version(own)
    own.write_text("x = 2")
    assert file_version(own) != before


def test_prompts_word_lists_and_templates_are_those_of_their_versions():
    """Whoever edits one raises the version of the package that has it: ``python -m scripts.code_versions NAME``."""
    assert data_digests() == json.loads(DATA.read_text())


def test_tables_are_made_again_for_their_own_code_only(versions, workspace, small_source):
    intake(workspace, small_source, 0, PARTITION)
    recipe = load_recipes()["direct"]
    family = Family(workspace, recipe, PARTITION)
    writer, judge = Scripted(oracle_script(recipe.family)), Scripted(lambda turn: '{"verdict": true}')

    def reused() -> dict[str, bool]:
        reports = (family.draft(writer), family.run(writer), family.check(judge), family.keep())
        return {report.key.asset[1]: report.reused for report in reports}

    assert not any(reused().values())
    n_turns = len(writer.turns), len(judge.turns)
    versions["darkroom.pipelines.publishing.layouts"] += 1
    assert reused() == {"drafts": True, "runs": True, "verdicts": True, "trajectories": True}
    versions["darkroom.pipelines.verification"] += 1
    # the rows are as they were, so what is made from them stands
    assert reused() == {"drafts": True, "runs": True, "verdicts": False, "trajectories": True}
    versions["darkroom.pipelines.generation.drafting"] += 1
    assert reused() == {"drafts": False, "runs": False, "verdicts": True, "trajectories": True}
    assert (len(writer.turns), len(judge.turns)) == n_turns, "the ledger pays"


UNDECIDING: dict[str, tuple[str, ...]] = {
    # a recipe names its checks and its oracle; drafts and runs call neither
    "Drafts": ("darkroom.pipelines.verification", "darkroom.pipelines.demo", "darkroom.pipelines.storage.stage_runs"),
    "Runs": (
        "darkroom.pipelines.verification",
        "darkroom.pipelines.demo",
        "darkroom.pipelines.storage.stage_runs",
        "darkroom.pipelines.generation.verdicts",
        "darkroom.pipelines.sources",
    ),
    "Verdicts": ("darkroom.pipelines.generation", "darkroom.pipelines.demo", "darkroom.pipelines.selection"),
}


def imported(module: str) -> set[str]:
    """The modules of ``pipelines`` that a module imports, directly or not."""
    modules: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in modules:
            continue
        modules.add(name)
        waiting += _imports(name)
    return modules


def _imports(name: str) -> Iterator[str]:
    place = stage_runs.ROOT.joinpath(*name.split("."))
    path = place / "__init__.py" if place.is_dir() else place.with_name(f"{place.name}.py")
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("darkroom.pipelines."):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                at = stage_runs.ROOT.joinpath(*inner.split("."))
                yield inner if at.is_dir() or at.with_name(f"{at.name}.py").is_file() else str(node.module)


@pytest.mark.parametrize("kind", [Drafts, Runs, Verdicts], ids=lambda kind: kind.__name__)
def test_what_a_stage_imports_is_in_its_digest_or_decides_nothing(kind: Any):
    code = (*RUNNER_CODE, *kind.code, *UNDECIDING[kind.__name__])
    named = [name.removesuffix(".__init__") for name in code]
    unnamed = {
        module
        for module in imported(kind.__module__)
        if not any(module == name or module.startswith(f"{name}.") for name in named)
    }
    assert unnamed == set()


def test_a_name_without_a_version_is_an_error():
    with pytest.raises(LookupError, match=r"run: python -m scripts.code_versions darkroom.pipelines.nowhere"):
        code_digest("darkroom.pipelines.nowhere", "darkroom.pipelines.records")


def test_a_version_of_one_package_does_not_accept_the_edited_prompts_of_another(monkeypatch, tmp_path):
    versions, data = tmp_path / "code_versions.json", tmp_path / "data.json"
    data.write_text(json.dumps(data_digests() | {"darkroom.pipelines.models.prompts": "edited since"}))
    monkeypatch.setattr(code_versions, "VERSIONS", versions)
    monkeypatch.setattr(code_versions, "DATA", data)
    with pytest.raises(SystemExit, match=r"templates of darkroom.pipelines.models.prompts have changed, too"):
        code_versions.main("darkroom.pipelines.vision")
    assert not versions.exists()
    raised = dict(stage_runs.code_versions())
    monkeypatch.setattr(code_versions, "code_versions", lambda: raised)
    before = raised["darkroom.pipelines.models.prompts"]
    code_versions.main("darkroom.pipelines.models.prompts")
    assert json.loads(versions.read_text())["darkroom.pipelines.models.prompts"] == before + 1
    assert json.loads(data.read_text()) == data_digests()
