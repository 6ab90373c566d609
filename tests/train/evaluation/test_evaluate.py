"""The program from end to end: a trained tiny model and the oracle, the real sandbox, killed and run again."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from PIL import ImageDraw
from typer.testing import CliRunner

from darkroom.pipelines.command_line.errors import program_of
from darkroom.pipelines.models.policies import PolicyUnavailable
from darkroom.sandbox.errors import UserError
from darkroom.train.evaluate import evaluate, main, metadata
from darkroom.train.evaluation.settings import EvaluationSettings, ExportFormat
from darkroom.train.finetuning.settings import SftSettings
from darkroom.train.runs import TrainError
from darkroom.train.sft import finetune
from tests.object_store import object_store_server
from tests.pipelines.publishing.shipping import edit_rows, write_held_out
from tests.train.conftest import sign
from tests.train.evaluation.conftest import COLOURS, TARGET, desert

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.filterwarnings(
        # PEFT 0.21 reads the name that transformers 5.23 deprecates
        "ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"
    ),
]
TURNS = 200


def replace(settings, **changes):
    return settings.model_copy(update=changes)


@pytest.fixture(scope="module")
def checkpoint(signs, tiny_signs, tmp_path_factory):
    """A tiny model that has learnt to crop the sign."""
    output = tmp_path_factory.mktemp("evaluate") / "checkpoint"
    finetune(signs, tiny_signs, output, SftSettings(epochs=3, batch_size=1, learning_rate=1e-2))
    return output


@pytest.fixture(scope="module")
def held_out(store, tmp_path_factory):
    """Eight signs in a validation split."""
    folder = tmp_path_factory.mktemp("held_out") / "signs"
    write_held_out(folder, [sign(store, 24 + index) for index in range(8)], store=store)
    return folder


@pytest.fixture(scope="module")
def settings(checkpoint, held_out, tmp_path_factory):
    folder = tmp_path_factory.mktemp("output")
    return EvaluationSettings(
        output=folder / "report",
        model=str(checkpoint),
        datasets=(held_out,),
        max_tokens=TURNS,
        max_rounds=3,
        controls=2,
        home=folder / "home",
    )


@pytest.fixture(scope="module")
def evaluated(settings):
    return evaluate(settings)


def test_the_model_writes_programs_that_the_sandbox_executes(evaluated):
    everything = evaluated.made["results"]["all"]
    assert everything["accuracy"]["n_rollouts"] == 8
    assert everything["code"]["tool_use"]["mean"] == 1.0
    assert everything["code"]["pass_rate"] == 1.0
    assert everything["tools"] == {"crop": 8}
    assert everything["broken"] == {}
    assert everything["lengths"]["completion_tokens"]["mean"] > 10


def test_the_folder_is_complete(evaluated):
    names = {path.name for path in evaluated.folder.iterdir()}
    assert {"report.json", "report.md", "report.html", "gallery.html", "rollouts.parquet"} <= names
    assert {"accuracy.png", "tool_calls.png", "tools.png", "controls.png"} <= names
    assert not [path for path in evaluated.folder.parent.iterdir() if path.name.startswith(".")]


def test_the_report_says_who_was_asked_what(evaluated, checkpoint):
    made = json.loads((evaluated.folder / "report.json").read_text())
    assert made["who"]["policy"] == "local"
    assert made["who"]["model"] == checkpoint.name
    assert len(made["who"]["revision"]) == 64
    assert made["asked"] == [{"name": "signs", "n": 8, "left_out": {}}]
    text = (evaluated.folder / "report.md").read_text()
    assert "| **signs** | 8 | 8 |" in text


def test_the_page_holds_its_charts(evaluated):
    page = (evaluated.folder / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 4
    assert 'src="accuracy.png"' not in page


def test_every_rollout_is_a_row(evaluated):
    rows = pq.read_table(evaluated.folder / "rollouts.parquet").to_pylist()
    assert len(rows) == 8
    assert {row["gold"] for row in rows} == {"red", "green", "blue", "white"}
    assert all(row["rounds"][0]["observation"]["status"] == "ok" for row in rows)
    assert all(row["tools"] == [["crop"]] for row in rows)
    assert [row["right"] for row in rows] == [row["answer"] == row["gold"] for row in rows]
    assert rows[0]["seen"][0]["box"] == [56, 28, 112, 84]
    assert rows[0]["seen"][0]["shows_target_by_boxes"] is None  # no box is known


def test_controls_are_played_for_as_many_as_were_asked_for(evaluated):
    found = evaluated.made["results"]["all"]["controls"]
    assert {name: one["n"] for name, one in found.items()} == {"blank": 2, "other_region": 2, "other_sample": 2}


def test_a_second_run_has_nothing_to_do(evaluated, settings, capsys):
    again = evaluate(settings, exports=list(ExportFormat))
    assert again.reused
    assert (evaluated.folder / "rollouts.csv").read_text().count('"signs"') == 8
    assert again.made == json.loads((evaluated.folder / "report.json").read_text())
    assert "nothing to do" in capsys.readouterr().out


def test_other_settings_are_another_evaluation(evaluated, settings, tmp_path):
    other = evaluate(replace(settings, output=tmp_path / "report", limit=2, controls=0))
    assert not other.reused
    assert other.made["inputs"] != evaluated.made["inputs"]
    assert other.made["results"]["all"]["accuracy"]["n_questions"] == 2


def test_dagster_is_told_figures_tables_and_charts(evaluated):
    found, right = metadata(evaluated), evaluated.made["results"]["all"]["accuracy"]["right"]
    assert found["accuracy"] == {"raw_value": right["mean"], "type": "float"}
    assert found["rollouts"]["raw_value"] == 8
    assert "| **signs** |" in found["by_benchmark"]["raw_value"]
    assert found["charts"]["raw_value"].count("data:image/png") == 4
    json.dumps(found)


def test_several_rollouts_are_drawn_by_their_seeds(settings, tmp_path):
    several = replace(settings, output=tmp_path / "a", rollouts=4, temperature=1.5, limit=2, controls=0)
    found = evaluate(several).made["results"]["all"]["accuracy"]
    assert (found["n_questions"], found["n_rollouts"]) == (2, 8)
    assert list(found["pass_at"]) == [1, 2, 4]
    elsewhere = replace(several, output=tmp_path / "b", home=tmp_path / "home")
    assert evaluate(elsewhere).made["results"]["all"]["accuracy"] == found


# --- the oracle: a sanity check


def test_a_home_on_an_object_store_gives_what_a_folder_gives(prompts, tmp_path, monkeypatch):
    with object_store_server() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        found = []
        for name, home in (("folder", str(tmp_path / "home")), ("store", server.url())):
            monkeypatch.setenv("DARKROOM_LOCAL", str(tmp_path / f"local_{name}"))
            asked = {"oracle": "crop", "datasets": (prompts,), "home": home, "shown": 2}
            made = evaluate(EvaluationSettings(output=tmp_path / name, **asked))
            found.append(pq.read_table(made.folder / "rollouts.parquet").drop_columns(["usage"]).to_pylist())
        assert found[0] == found[1]


def test_the_oracle_is_right_and_faithful(prompts, tmp_path):
    found = evaluate(
        EvaluationSettings(
            output=tmp_path / "report", oracle="crop", datasets=(prompts,), controls=1, home=tmp_path / "home"
        )
    ).made["results"]["all"]
    assert found["accuracy"]["right"]["mean"] == 1.0
    boxes = found["faithfulness"]["boxes"]
    assert boxes["n"] == 3
    for counted in ("as_codev", "parts_only"):
        assert boxes[counted]["given_correct"]["mean"] == boxes[counted]["over_all"]["mean"] == 1.0
    # it writes from the truth, whatever it is shown: just what the controls are there to find out
    assert {name: one["changed"]["mean"] for name, one in found["controls"].items()} == {
        "blank": 0.0,
        "other_region": 0.0,
        "other_sample": 0.0,
    }


def test_of_questions_that_name_a_region_the_pages_say_what_is_not_shown(prompts, tmp_path):
    named = Path(shutil.copytree(prompts, tmp_path / "named"))
    edit_rows(named, lambda row: {**row, "question": f"{row['question']} It is in the region 1, 2, 30, 40."})
    settings = EvaluationSettings(
        output=tmp_path / "report", oracle="crop", datasets=(named,), controls=1, home=tmp_path / "home"
    )
    folder = evaluate(settings).folder
    text = (folder / "report.md").read_text()
    assert "3 of 3 questions name four numbers in a row, as a region has" in text
    assert "- **Not shown** by their right answers: that the model finds a place by itself." in text
    assert "a blank crop changes 0.0% of 1 of the right answers; a wrong crop changes 0.0% of 1" in text
    assert "<strong>Not shown</strong>" in (folder / "report.html").read_text()
    assert (
        "(3 questions name four numbers, as a region has: finding it is not shown)"
        in (folder / "gallery.html").read_text()
    )
    evaluate(replace(settings, output=tmp_path / "without", controls=0))
    assert "no control was run (`--controls`)" in (tmp_path / "without" / "report.md").read_text()


@pytest.fixture
def own_set(tmp_path):
    """A benchmark whose own code, as its rules have it, counts no answer."""
    image = desert()
    ImageDraw.Draw(image).rectangle(TARGET, fill=COLOURS["red"])
    image.save(tmp_path / "1.png")
    row = {"image": "1.png", "question": "Which colour?", "answer": "red", "box": [*TARGET]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    path = tmp_path / "own.yaml"
    columns = "{boxes: box, box_frame: corners}"
    rows = f"kind: jsonl\npath: {tmp_path}\nquestions: rows.jsonl\ncolumns: {columns}\n"
    path.write_text(f"{rows}official: [{{compare: wrong}}]\n")
    return path


def test_another_scoring_is_another_evaluation(own_set, tmp_path):
    asked = {"oracle": "crop", "benchmarks": (("own", own_set),), "home": tmp_path / "home", "shown": 0}
    settings = EvaluationSettings(output=tmp_path / "report", **asked)
    official, strict = evaluate(settings), evaluate(replace(settings, strict=True))
    right = [made.made["results"]["all"]["accuracy"]["right"]["mean"] for made in (official, strict)]
    assert (right, strict.reused) == ([0.0, 1.0], False)
    assert [made.made["official"] for made in (official, strict)] == [["own"], []]
    assert [made.made["settings"]["strict"] for made in (official, strict)] == [False, True]
    assert metadata(official)["official"]["raw_value"] == "own"
    assert "Scoring: our own rules (--strict)" in (tmp_path / "report" / "report.md").read_text()
    assert evaluate(replace(settings, strict=True)).reused
    assert not evaluate(settings).reused
    assert "Scoring: as their authors' code does (own)" in (tmp_path / "report" / "report.md").read_text()


def test_what_an_oracle_cannot_be_asked_is_counted(held_out, tmp_path):
    """Rows without a box have nothing to crop."""
    with pytest.raises(TrainError, match=r"no question could be asked: \{'not_applicable': 8\}"):
        evaluate(EvaluationSettings(output=tmp_path / "r", oracle="crop", datasets=(held_out,), home=tmp_path / "home"))


# --- killed


def test_a_killed_evaluation_goes_on_and_pays_for_nothing_twice(evaluated, settings, tmp_path):
    home, output = tmp_path / "home", tmp_path / "report"
    command = [
        sys.executable,
        "-m",
        "darkroom.train.evaluate",
        "--output",
        str(output),
        "--home",
        str(home),
        "--controls",
        "2",
    ]
    command += ["--model", settings.model, "--dataset", str(settings.datasets[0]), "--max-tokens", str(TURNS)]
    command += ["--max-rounds", "3", "--batch-size", "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    ledger = home / "ledger.sqlite"
    while _acts(ledger) < 5:
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = _acts_made(ledger)
    assert not output.exists()
    again = evaluate(replace(settings, output=output, home=home))
    after = _acts_made(ledger)
    assert before.items() <= after.items()
    assert len(after) > len(before)
    assert again.made["results"] == evaluated.made["results"]


def _acts(ledger):
    return len(_acts_made(ledger)) if ledger.exists() else 0


def _acts_made(ledger):
    """Turns and executions on the ledger, with the moment at which each was made."""
    engine = sa.create_engine(f"sqlite:///{ledger}")
    try:
        with engine.connect() as connection:
            found = connection.execute(sa.text("select key, made_at from acts where kind in ('policy', 'sandbox')"))
            return dict(found.tuples().all())
    except sa.exc.OperationalError:
        return {}  # it is being made
    finally:
        engine.dispose()


# --- what cannot be evaluated


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model": ""}, "name one policy to evaluate"),
        ({"oracle": "crop"}, "name one policy to evaluate"),
        ({"datasets": ()}, "name questions"),
        ({"rollouts": 2}, "at temperature 0 are the same rollout 2 times"),
        ({"protocol": "react"}, "no mode 'free' of protocol 'react'; there are thyme: free"),
        ({"mode": "forced"}, "no mode 'forced' of protocol 'thyme'"),
        ({"split": "test"}, "no split 'test'"),
        ({"judge_url": "http://127.0.0.1:1/v1"}, "both --judge-url and --judge-model"),
        ({"sources": ("streets",)}, "there is no source 'streets'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, changes, says):
    with pytest.raises(UserError, match=says):
        evaluate(replace(settings, **changes), force=True)


def test_a_family_that_is_not_there_is_refused(settings, tmp_path):
    with pytest.raises(TrainError, match=r"no family 'crops' has an oracle.*there are .*crop"):
        evaluate(replace(settings, model="", oracle="crops"))


def test_an_endpoint_that_does_not_answer_is_said_so(settings, tmp_path):
    asked = replace(settings, url="http://127.0.0.1:9/v1", model="m", output=tmp_path / "r", home=tmp_path / "home")
    with pytest.raises(PolicyUnavailable, match=r"nothing answers at http://127\.0\.0\.1:9/v1 .* with --url$"):
        evaluate(asked)
    assert not (tmp_path / "r").exists()


def test_a_folder_with_other_things_in_it_is_not_replaced(settings, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(TrainError, match="is no evaluation; name a new folder"):
        evaluate(replace(settings, output=tmp_path))
    assert (tmp_path / "thesis.txt").exists()


def app():
    return program_of(main)


def test_help_teaches():
    said = CliRunner().invoke(app(), ["--help"], terminal_width=200).output
    assert "--oracle crop --source demo" in said
    assert "Interrupted? Run the same command" in said


def test_an_error_is_one_line(tmp_path):
    run = CliRunner().invoke(app(), ["--output", str(tmp_path / "r"), "--model", str(tmp_path)])
    assert run.exit_code == 1
    assert "name questions: --dataset FOLDER" in run.output
    assert "Traceback" not in run.output


def test_a_benchmark_needs_its_path(tmp_path):
    run = CliRunner().invoke(app(), ["--output", str(tmp_path / "r"), "--model", "m", "--benchmark", "vstar_bench"])
    assert run.exit_code == 1
    assert "a benchmark is given as NAME=PATH" in run.output


def test_the_program_takes_a_recipe_file_and_prints_its_table(evaluated, settings, tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(f"dataset: [{settings.datasets[0]}]\nmax-tokens: {TURNS}\nmax_rounds: 3\ncontrols: 5\n")
    arguments = ["--config", str(recipe), "--output", str(settings.output), "--model", settings.model]
    run = CliRunner().invoke(app(), [*arguments, "--controls", "2", "--home", str(settings.home)])
    assert run.exit_code == 0, run.output
    assert "nothing to do" in run.output
    assert "| **signs** | 8 | 8 |" in run.output
