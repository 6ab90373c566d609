"""What makes a stage's table stale: the code that decides its rows, and no other."""

from __future__ import annotations

import ast
import shutil
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
from darkroom.pipelines.models.policies.embedded import oracle_code, oracle_script
from darkroom.pipelines.publishing.dataset_writer import ROWS_CODE
from darkroom.pipelines.rl.candidates import Candidates
from darkroom.pipelines.rl.labels import CheckedLabels
from darkroom.pipelines.rl.necessity import ToolNecessities
from darkroom.pipelines.rl.pass_rates import PassRates
from darkroom.pipelines.rl.suitability import Suitability, SuitabilityLabels
from darkroom.pipelines.storage import stage_runs
from darkroom.pipelines.storage.stage_runs import code_digest
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
    "oracle": oracle_code("crop"),
}


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The packages' sources, to be edited."""
    copied = tmp_path / "darkroom"
    for package in ("pipelines", "annotation"):
        original = stage_runs.ROOT / "darkroom" / package
        shutil.copytree(original, copied / package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(stage_runs, "ROOT", tmp_path)
    stage_runs._source_digest.cache_clear()
    yield copied
    stage_runs._source_digest.cache_clear()


def digests() -> dict[str, str]:
    stage_runs._source_digest.cache_clear()
    return {name: code_digest(*code) for name, code in CODE.items()}


def stale_after(sources: Path, place: str) -> set[str]:
    """The stages that an edit of the first source below ``place`` makes stale."""
    before = digests()
    path = sources / place
    edited = path if path.is_file() else sorted(path.rglob("*.py"))[0]
    edited.write_text(edited.read_text() + "\n# edited\n")
    return {name for name, digest in digests().items() if digest != before[name]}


@pytest.mark.parametrize(
    "place",
    [
        "pipelines/inspection/gallery",
        "pipelines/inspection/explain.py",
        "pipelines/inspection/charts.py",
        "pipelines/publishing/layouts",
        "pipelines/models/serving",
        "pipelines/generation/funnel.py",
        "pipelines/rl/facts.py",
    ],
)
def test_what_decides_no_row_makes_no_table_stale(sources, place):
    assert stale_after(sources, place) == set()


@pytest.mark.parametrize("name", ["answer.py", "hint_phrases.toml"])
def test_an_edited_check_or_word_list_makes_verdicts_stale_and_no_draft(sources, name):
    assert stale_after(sources, f"pipelines/verification/checks/{name}") == {"Verdicts"}


@pytest.mark.parametrize("place", ["pipelines/demo/oracle", "pipelines/demo/oracle/crop.toml"])
def test_an_edited_annex_makes_the_embedded_policys_rows_stale_alone(sources, place):
    assert stale_after(sources, place) == {"oracle"}


def test_what_people_are_asked_makes_their_tables_stale(sources):
    assert stale_after(sources, "annotation/rounds/tables.py") == {"annotation"}


def test_records_and_the_store_decide_every_table(sources):
    assert stale_after(sources, "pipelines/storage/images.py") == set(CODE) - {"oracle"}
    assert stale_after(sources, "pipelines/records/samples.py") == set(CODE)


def test_tables_are_made_again_for_their_own_code_only(sources, workspace, small_source):
    intake(workspace, small_source, 0, PARTITION)
    recipe = load_recipes()["direct"]
    family = Family(workspace, recipe, PARTITION)
    writer, judge = Scripted(oracle_script(recipe.family)), Scripted(lambda turn: '{"verdict": true}')

    def reused() -> dict[str, bool]:
        reports = (family.draft(writer), family.run(writer), family.check(judge), family.keep())
        return {report.key.asset[1]: report.reused for report in reports}

    def edit(place: str) -> None:
        path = sources / place
        path.write_text(path.read_text() + "\n# edited\n")
        stage_runs._source_digest.cache_clear()

    assert not any(reused().values())
    n_turns = len(writer.turns), len(judge.turns)
    edit("pipelines/inspection/gallery/__init__.py")
    assert reused() == {"drafts": True, "runs": True, "verdicts": True, "trajectories": True}
    edit("pipelines/verification/checks/answer.py")
    # the rows are as they were, so what is made from them stands
    assert reused() == {"drafts": True, "runs": True, "verdicts": False, "trajectories": True}
    edit("pipelines/generation/drafting.py")
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
    named = (*RUNNER_CODE, *kind.code, *UNDECIDING[kind.__name__])
    unnamed = {
        module
        for module in imported(kind.__module__)
        if not any(module == name or module.startswith(f"{name}.") for name in named)
    }
    assert unnamed == set()


def test_a_name_without_sources_is_an_error():
    with pytest.raises(FileNotFoundError, match=r"pipelines\.nowhere: expected .*nowhere.py or a package"):
        code_digest("pipelines.nowhere")
