"""``darkroom export``: folders, names, and errors as messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from darkroom.assets.cli import app
from darkroom.pipelines.publishing.layouts import LAYOUTS, PROMPT_LAYOUTS

ROOT = Path(__file__).parents[4]
runner = CliRunner()


@pytest.fixture(autouse=True)
def _home(datasets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARKROOM_HOME", str(datasets.parents[1]))


def run(*arguments: str) -> tuple[int, str]:
    said = runner.invoke(app, ["export", *arguments])
    return said.exit_code, said.output


def test_a_family_is_exported_and_the_same_again_does_nothing(tmp_path: Path) -> None:
    arguments = ("mixed", "--layout", "llama_factory", "--out", str(tmp_path / "out"))
    code, said = run(*arguments)
    assert (code, f"10 rows, 19 images, 0 rejected: {tmp_path / 'out'}\n" in said) == (0, True)
    assert f"How to use it with LLaMA-Factory: {tmp_path / 'out' / 'README.md'}" in said
    assert "unchanged" in run(*arguments)[1]


def test_a_folder_is_exported_below_the_home_when_no_folder_is_named(datasets: Path) -> None:
    assert run(str(datasets / "mixed"), "--layout", "verl_sft")[0] == 0
    assert (datasets.parents[1] / "exports" / "verl_sft" / "mixed" / "README.md").is_file()


def test_a_trainer_of_texts_is_said_to_be_one(tmp_path: Path) -> None:
    code, said = run("mixed", "--layout", "openrlhf_sft", "--out", str(tmp_path / "out"))
    assert code == 0
    assert "openrlhf_sft takes texts only: 9 rows have images." in said


@pytest.fixture
def rl_home(prompts: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = prompts.parents[2]
    monkeypatch.setenv("DARKROOM_HOME", str(home))
    return home


@pytest.mark.parametrize("name", PROMPT_LAYOUTS)
def test_the_rl_dataset_is_exported_by_its_name(rl_home: Path, tmp_path: Path, name: str) -> None:
    code, said = run("rl", "--layout", name, "--protocol", "tool_call", "--out", str(tmp_path / "out"))
    assert (code, f"10 rows, 9 images, 0 rejected: {tmp_path / 'out'}\n" in said) == (0, True)
    assert (tmp_path / "out" / "reward.py").is_file()


def test_an_export_below_the_home_is_named_after_protocol_and_mode(rl_home: Path) -> None:
    assert run("rl", "--layout", "easyr1")[0] == 0
    assert run("rl", "--layout", "easyr1", "--protocol", "tool_call", "--mode", "forced")[0] == 0
    found = {path.name for path in (rl_home / "exports" / "easyr1").iterdir()}
    assert found == {"rl_thyme", "rl_tool_call_forced"}


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (("rl", "--layout", "trl_turns"), 1, "--layout is one of trl_grpo"),
        (("rl", "--layout", "easyr1", "--protocol", "morse"), 2, "'morse' is not one of 'thyme', 'pyvision',"),
        (("rl", "--layout", "easyr1", "--mode", "forced"), 1, "--mode of thyme is one of free"),
    ],
)
def test_what_a_user_can_mend_of_the_rl_dataset_is_said(
    rl_home: Path, arguments: tuple[str, ...], status: int, expected: str
) -> None:
    code, said = run(*arguments)
    assert code == status
    assert expected in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("mixed", "--layout", "axolotl"), "--layout is one of trl_turns"),
        (("nowhere", "--layout", "verl_rl"), "'nowhere' is neither a folder with a dataset nor a family"),
        (("mixed", "--layout", "verl_rl", "--split", "test"), "has no split 'test'"),
        (("mixed", "--layout", "verl_rl", "--protocol", "thyme"), "each in its own protocol"),
        (("rl", "--layout", "easyr1"), "Run: darkroom rl SOURCE"),
    ],
)
def test_what_a_user_can_mend_is_said_in_one_paragraph(arguments: tuple[str, ...], expected: str) -> None:
    code, said = run(*arguments)
    assert code == 1
    assert expected in said
    assert "Traceback" not in said


@pytest.mark.parametrize("name", [*LAYOUTS, *PROMPT_LAYOUTS])
def test_every_layout_is_in_the_help_and_in_the_docs(name: str) -> None:
    assert name in runner.invoke(app, ["export", "--help"], terminal_width=200).output
    assert f"| `{name}` |" in (ROOT / "docs" / "layouts.md").read_text()
