"""The command: help that teaches, errors as messages, a user's own folder taken in."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from darkroom.assets.cli import app
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.records import Sample
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification.calibration_store import BUNDLED
from tests.pipelines.publishing.shipping import edit_rows

runner = CliRunner()


def commands() -> list[list[str]]:
    found = []
    for name, command in get_command(app).commands.items():
        inner = getattr(command, "commands", None)
        found += [[name, sub] for sub in inner] if inner else [[name]]
    return found


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_command_has_a_help_text(command: list[str]) -> None:
    said = runner.invoke(app, [*command, "--help"], terminal_width=200)
    assert said.exit_code == 0
    assert "Usage:" in said.output
    assert len(said.output.splitlines()) > 5


@pytest.mark.parametrize(("typed", "completed"), [("darkroom eval", "evaluate"), ("darkroom train s", "sft")])
def test_a_shell_completes_commands(typed: str, completed: str) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1), "_DARKROOM_COMPLETE": "complete_bash"}
    assert runner.invoke(app, prog_name="darkroom", env=words).output.split() == [completed]


def test_the_module_is_the_command_too() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "darkroom.assets.main", "nonsense"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "Usage: darkroom" in ended.stderr
    assert "No such command 'nonsense'" in ended.stderr


HEAVY = {"aiohttp", "datasets", "duckdb", "label_studio_sdk.client", "matplotlib", "onnxruntime", "openai", "pandas"}
HEAVY |= {"polars", "rapidocr", "ray", "scipy", "skimage", "sklearn", "sympy", "torch", "transformers", "trl"}
"""Libraries that take a second or more to import."""
TRAINS = {"torch", "transformers", "trl", "peft"}
HELP = """
from typer.testing import CliRunner
from darkroom.assets.cli import app
assert not any(CliRunner().invoke(app, [*path, "--help"]).exit_code for path in ([], ["train"], ["annotate", "users"]))
"""
STARTS = {
    "a help": (HELP, {*HEAVY, "dagster", "pyarrow", "cattrs", "numpy", "pydantic", "fsspec", "jinja2", "sqlalchemy"}),
    "every command": ("import tests.command_lines", {*HEAVY, "dagster", "sqlalchemy", "cv2", "av"}),
    "the help of trainings": (
        "import darkroom.train.sft, darkroom.train.grpo, darkroom.train.tiny, darkroom.train.evaluate",
        {*TRAINS, "datasets", "dagster"},
    ),
    "the code location": (
        "from darkroom.assets.definitions import definitions; definitions().resolve_all_asset_keys()",
        HEAVY,
    ),
    "training with nothing to do": (
        "import darkroom.train.runs.job, darkroom.train.rl.rollouts.prompts, darkroom.train.models.sharding",
        TRAINS,
    ),
}
"""The code that each start runs, and the libraries that are not to be imported then."""


@pytest.fixture(scope="module")
def imported() -> dict[str, str]:
    """The libraries of ``STARTS`` that are there after each of them, and whether garbage is collected: one after the
    other in one process."""
    code = "import gc, sys\n"
    for start, heavy in STARTS.values():
        code += f"{start}\nprint(sorted({heavy} & set(sys.modules)), gc.isenabled())\n"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return dict(zip(STARTS, found.stdout.splitlines(), strict=True))


@pytest.mark.parametrize("start", STARTS)
def test_a_start_imports_no_heavy_library_and_collects_garbage_afterwards(start: str, imported: dict[str, str]) -> None:
    assert imported[start] == "[] True"


def test_ctrl_c_while_the_command_line_is_imported_leaves_no_traceback() -> None:
    code = (
        "import sys\n"
        "from darkroom.assets.main import main\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'darkroom.assets.cli':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "")


@pytest.fixture
def questions(signs: Path) -> Path:
    """The signs' questions, made ugly: line 3 asks for an image that is not there, 7 is broken, 8 is a duplicate."""
    lines = (signs / "questions.jsonl").read_text().splitlines()
    lines[2] = json.dumps({"image": "nowhere.jpg", "question": "?", "answer": "x"})
    path = signs / "ugly.jsonl"
    path.write_text("\n".join([*lines, '{"image": "0.jpg", "question": ', lines[0], '{"image": 7, "question": 1}']))
    return path


def test_ingest_sets_bad_rows_aside_with_their_line_and_takes_in_the_rest(
    signs: Path, questions: Path, workspace: Workspace
) -> None:
    said = runner.invoke(app, ["ingest", str(signs), "--questions", str(questions), "--name", "ugly"])
    assert said.exit_code == 0, said.output
    assert "9 rows: 4 samples, 5 rejects" in said.output
    key = TableKey(SAMPLES, "ugly-0000")
    rejects = {reject.source_row: reject.reason for reject in workspace.tables.read_rejects(key)}
    assert rejects == {
        "ugly.jsonl:3": "missing_image",
        "ugly.jsonl:6": "truncated_image",
        "ugly.jsonl:7": "malformed_row",
        "ugly.jsonl:8": "duplicate",
        "ugly.jsonl:9": "wrong_type",
    }
    (truncated,) = (reject for reject in workspace.tables.read_rejects(key) if reject.reason == "truncated_image")
    assert truncated.evidence.startswith("image 0 (5.jpg): ")


@pytest.mark.parametrize("lines", ["", '{"image": "none.jpg", "question": "?", "answer": "x"}'])
def test_ingest_of_no_row_that_is_kept_is_an_error(signs: Path, lines: str) -> None:
    (signs / "bad.jsonl").write_text(lines)
    said = runner.invoke(app, ["ingest", str(signs), "--questions", str(signs / "bad.jsonl"), "--name", "bad"])
    assert said.exit_code == 1
    assert "Next:" not in said.output
    assert "source 'bad' has no sample: correct its columns in" in " ".join(said.output.split())


def test_ingest_names_the_columns_that_are_there_when_the_mapping_is_wrong(signs: Path) -> None:
    arguments = ["ingest", str(signs), "--questions", str(signs / "questions.jsonl"), "--question", "prompt"]
    said = runner.invoke(app, arguments)
    assert said.exit_code == 1
    assert "no column 'prompt'" in said.output
    assert "'question'" in said.output


def test_a_source_that_could_not_be_read_is_not_added(signs: Path, workspace: Workspace) -> None:
    runner.invoke(app, ["ingest", str(signs), "--questions", str(signs / "nowhere.jsonl"), "--name", "other"])
    assert not (workspace.sources / "other.yaml").exists()


@pytest.mark.parametrize(("command", "status"), [("gallery", 1), ("audit", 2)])
def test_without_a_dataset_the_command_that_makes_it_is_named(command: str, status: int) -> None:
    said = runner.invoke(app, [command, "crop"])
    assert said.exit_code == status
    assert "darkroom materialize" in said.output


def test_gallery_writes_the_page_with_the_rejects(shipped: Path, workspace: Workspace) -> None:
    said = runner.invoke(app, ["gallery", "crop", "--rejects"])
    assert said.exit_code == 0, said.output
    assert "4 trajectories, 0 rejects, 1 not applicable" in said.output
    assert (workspace.home / "views" / "crop.html").exists()


def test_replay_prints_the_rate_and_ends_by_it(shipped: Path) -> None:
    said = runner.invoke(app, ["audit", "crop", "--only", "replay"])
    assert (said.exit_code, "100.00% of the rows" in said.output) == (0, True), said.output
    edit_rows(shipped, lambda row: row["rounds"][0]["observation"].update(text="something else"))
    for least, status in (("1", 1), ("0", 0)):
        words = ["audit", "crop", "--only", "replay", "--rows", "1", "--min-match", least]
        said = runner.invoke(app, words, terminal_width=200)
        assert said.exit_code == status
        assert "something" in said.output  # the table may break the line
        assert "0.00% of the rows" in said.output


def test_calibrate_prints_the_figures_and_the_lines_without_use_and_keeps_the_threshold(
    workspace: Workspace, tmp_path: Path
) -> None:
    labels = tmp_path / "labels.jsonl"
    labels.write_text((BUNDLED / "consistency.jsonl").read_text() + "nonsense\n")
    said = runner.invoke(app, ["calibrate", "consistency", "--labelled", str(labels), "--precision", "0.75"])
    assert said.exit_code == 0, said.output
    for part in (
        "precision",
        "kappa",
        "labels.jsonl:71",
        "malformed_row",
        "Where judge and people disagree:",
        "chosen on 35 other labels",
    ):
        assert part in said.output, part
    assert json.loads((workspace.calibrations / "consistency.json").read_text())["labelled"] == "labels.jsonl"


@pytest.mark.parametrize(
    ("judge", "precision", "said"),
    [("nobody", "0.5", "there is no judge"), ("consistency", "1", "no threshold reaches")],
)
def test_a_calibration_that_cannot_be_is_one_paragraph(judge: str, precision: str, said: str) -> None:
    arguments = ["calibrate", judge, "--labelled", str(BUNDLED / "consistency.jsonl"), "--precision", precision]
    found = runner.invoke(app, arguments)
    assert found.exit_code == 1
    assert said in found.output
    assert "Traceback" not in found.output


def test_explain_prints_everything_and_says_it_to_machines(shipped: Path) -> None:
    said = runner.invoke(app, ["explain", "row/0"], terminal_width=200)
    assert said.exit_code == 0, said.output
    for part in ("What does sign number 0 say?", "\ncrop  ", "\n verdicts ", "answer_matches", "code 1"):
        assert part in said.output, part
    (way,) = json.loads(runner.invoke(app, ["explain", "row/0", "--json"]).output)["histories"]
    assert way["family"] == "crop"


def test_explain_of_an_unknown_row_is_one_paragraph() -> None:
    said = runner.invoke(app, ["explain", "nowhere"])
    assert said.exit_code == 1
    assert "Traceback" not in said.output
    assert "darkroom demo" in said.output


def test_an_unreachable_ledger_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARKROOM_LEDGER", "postgresql+psycopg://nobody:secret@127.0.0.1:9/none")
    said = runner.invoke(app, ["summary"])
    assert said.exit_code == 1
    assert "DARKROOM_LEDGER" in said.output
    assert "secret" not in said.output


@pytest.mark.usefixtures("shipped")
def test_the_summary_for_programs_has_counts_and_cost() -> None:
    crop = json.loads(runner.invoke(app, ["summary", "--json"]).stdout)["families"]["crop"]
    assert crop.keys() == {"steps", "usage", "accepted", "shipped"}
    assert crop["usage"].keys() == {"calls", "prompt_tokens", "completion_tokens", "cost_usd"}
    assert [step["name"] for step in crop["steps"]] == ["samples", "drafts", "runs", "verdicts", "trajectories"]


def test_a_ledger_of_garbage_is_said_in_one_line(workspace: Workspace) -> None:
    workspace.home.mkdir()
    (workspace.home / "ledger.sqlite").write_bytes(b"garbage" * 1000)
    said = runner.invoke(app, ["summary"])
    assert said.exit_code == 1
    assert said.stderr.count("\n") == 1
    assert "move the file away" in said.stderr  # its answers are paid for again


@pytest.mark.parametrize("name", ["demo", "My Photos", "../out", ""])
def test_a_name_that_cannot_be_a_sources_is_refused_before_anything_is_written(
    signs: Path, workspace: Workspace, name: str
) -> None:
    said = runner.invoke(
        app, ["ingest", str(signs), "--questions", str(signs / "questions.jsonl"), "--boxes", "boxes", f"--name={name}"]
    )
    if name:
        assert said.exit_code == 1
        assert "a source is named" in said.output
        assert not (workspace.home / "tables").exists()
    else:  # no name: the folder's
        assert said.exit_code == 0


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DARKROOM_POLICY", "foo"),
        ("DARKROOM_RECIPES", "/nonexistent"),
        ("DARKROOM_POLICY_TEMPERATURE", "warm"),
        ("DARKROOM_POLICY_TEMPERATURE", "-1"),
    ],
)
def test_a_setting_that_cannot_be_is_said_in_one_paragraph(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    said = runner.invoke(app, ["materialize", "demo"])
    assert said.exit_code == 1
    assert variable in said.output
    assert "Traceback" not in said.output


def test_an_unknown_source_names_those_that_there_are(signs: Path) -> None:
    said = runner.invoke(app, ["materialize", "nowhere"])
    assert said.exit_code == 1
    assert "'demo'" in said.output
    assert "'signs'" in said.output


@pytest.fixture
def films(tmp_path: Path, clip) -> Path:
    """Questions about videos, made ugly: missing, no video, empty, cut off, of the wrong type, outside, none at all."""
    folder = tmp_path / "films"
    folder.mkdir()
    whole = clip(0)
    (folder / "whole.mp4").write_bytes(whole)
    (folder / "other.mp4").write_bytes(clip(1))
    (folder / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    (folder / "notes.mp4").write_text("no video")
    (folder / "empty.mp4").write_bytes(b"")
    shown = ["whole.mp4", ["whole.mp4", "other.mp4"], "nowhere.mp4", "notes.mp4", "empty.mp4", "cut.mp4", 7]
    shown += ["../films/whole.mp4", None, "whole.mp4"]
    lines = [{"clip": one, "question": "What moves?", "answer": "a dot"} for one in shown]
    (folder / "metadata.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


def test_ingest_takes_videos_in_and_sets_ugly_ones_aside(films: Path, workspace: Workspace) -> None:
    said = runner.invoke(app, ["ingest", str(films), "--video", "clip"])
    assert said.exit_code == 0, said.output
    key = TableKey(SAMPLES, "films-0000")
    samples = workspace.tables.read(key, Sample)
    assert [(len(sample.images), len(sample.videos)) for sample in samples] == [(0, 1), (0, 2)]
    rejects = {reject.source_row.partition(":")[2]: reject.reason for reject in workspace.tables.read_rejects(key)}
    assert rejects == {
        "3": "missing_video",
        "4": "unreadable_video",
        "5": "unreadable_video",
        "6": "unreadable_video",
        "7": "wrong_type",
        "8": "malformed_row",
        "9": "missing_video",
        "10": "duplicate",
    }


def test_ingest_takes_images_and_videos_of_one_row_in(films: Path, signs: Path, workspace: Workspace) -> None:
    (films / "0.jpg").write_bytes((signs / "0.jpg").read_bytes())
    line = {"clip": "whole.mp4", "still": "0.jpg", "question": "What moves?", "answer": "a dot"}
    (films / "both.jsonl").write_text(json.dumps(line))
    both = ["--questions", str(films / "both.jsonl"), "--video", "clip", "--image", "still"]
    said = runner.invoke(app, ["ingest", str(films), *both])
    assert said.exit_code == 0, said.output
    (sample,) = workspace.tables.read(TableKey(SAMPLES, "films-0000"), Sample)
    assert (len(sample.images), len(sample.videos)) == (1, 1)


def test_a_column_of_videos_that_is_not_there_is_named(films: Path, workspace: Workspace) -> None:
    said = runner.invoke(app, ["ingest", str(films), "--video", "film"])
    assert said.exit_code == 1
    assert "no column 'film'" in said.output
    assert not (workspace.sources / "films.yaml").exists()
