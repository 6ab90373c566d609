"""Launching: command lines as data, jobs as texts that a shell understands, and what comes back from programs."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import kubernetes_validate
import pytest
import yaml

from assets.graph.training_config import (
    DEMO_SETTINGS,
    BaseModelConfig,
    EvaluationConfig,
    GrpoConfig,
    SftConfig,
    evaluation_program,
    grpo_program,
    sft_program,
    tiny_program,
)
from assets.launching import LauncherResource, Program, launch
from assets.launching.handoff import HandedOverJob, kubernetes_manifest, slurm_script
from assets.launching.jobs import LaunchError, submission
from assets.launching.order import MOST_OBSERVATIONS, _is_alive, _is_observed
from train.runs.supervisor import JobDirectory

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[3]
HERE, DATA, MODEL = Path("/data/out"), Path("/data/rows"), Path("/data/model")
NASTY = 'it\'s "here" $HOME; `x`'


def flags(program: Program) -> dict[str, list[str]]:
    """Values by flag."""
    found: dict[str, list[str]] = {}
    for word in program.arguments:
        if word.startswith("--"):
            name = word
            found.setdefault(name, [])
        else:
            found[name].append(word)
    return found


def test_flags_are_written_as_a_person_would() -> None:
    given = {
        "max_steps": 3,
        "lora": 0,
        "resume": True,
        "force": False,
        "judge": "",
        "rate": None,
        "dataset": ["a", "b"],
    }
    program = Program.of("train.x", HERE, given)
    assert program.arguments == (
        *("--max-steps", "3", "--lora", "0", "--resume", "--dataset", "a", "--dataset", "b"),
        *("--output", "/data/out"),
    )


def test_one_process_is_a_module_and_several_are_launched_by_accelerate() -> None:
    program = Program.of("train.sft", HERE, {"seed": 1})
    assert program.command("python") == ["python", "-m", "train.sft", "--seed", "1", "--output", "/data/out"]
    several = program.command("python", n_processes=4)
    assert several[:5] == ["python", "-m", "accelerate.commands.launch", "--num_processes", "4"]
    assert several[several.index("--module") + 1 :] == ["train.sft", "--seed", "1", "--output", "/data/out"]


@pytest.mark.parametrize("tiny", [True, False])
@pytest.mark.parametrize(
    "program",
    [
        lambda tiny: sft_program([DATA], MODEL, HERE, SftConfig(max_pixels=1000, lora=8), tiny=tiny),
        lambda tiny: grpo_program(DATA, MODEL, HERE, GrpoConfig(save_steps=5), tiny=tiny),
        lambda tiny: evaluation_program([DATA], MODEL, HERE, EvaluationConfig(benchmarks={"a": "/b"}), tiny=tiny),
    ],
    ids=["sft", "grpo", "evaluate"],
)
def test_every_flag_is_one_of_the_program(program: Any, tiny: bool) -> None:
    built = program(tiny)
    known = set(inspect.signature(import_module(built.module).main).parameters)
    assert {name.removeprefix("--").replace("-", "_") for name in flags(built)} <= known


def test_what_is_not_set_is_left_to_the_program_but_for_the_tiny_model() -> None:
    assert "--learning-rate" not in flags(sft_program([DATA], MODEL, HERE, SftConfig(), tiny=False))
    assert flags(sft_program([DATA], MODEL, HERE, SftConfig(), tiny=True))["--learning-rate"] == ["0.008"]
    assert flags(sft_program([DATA], MODEL, HERE, SftConfig(learning_rate=1e-5), tiny=True))["--learning-rate"] == [
        "1e-05"
    ]


def test_a_recipe_is_not_overridden_by_what_was_left_alone() -> None:
    found = flags(sft_program([DATA], MODEL, HERE, SftConfig(recipe="thyme"), tiny=True))
    assert set(found) == {"--dataset", "--model", "--recipe", "--output"}


def test_any_other_flag_can_be_given_by_name() -> None:
    found = flags(grpo_program(DATA, MODEL, HERE, GrpoConfig(flags={"beta": "0.01", "ats": "true"}), tiny=False))
    assert (found["--beta"], found["--ats"]) == (["0.01"], [])


def test_the_demos_settings_stand_over_those_of_the_tiny_model() -> None:
    base, sft = BaseModelConfig(**DEMO_SETTINGS["base_model"]), SftConfig(**DEMO_SETTINGS["sft_checkpoint"])
    grpo, asked = GrpoConfig(**DEMO_SETTINGS["grpo_checkpoint"]), EvaluationConfig(**DEMO_SETTINGS["evaluation"])
    built = tiny_program(HERE, [DATA], base)
    assert built.arguments[0] == str(HERE)
    assert built.arguments[1:] == ("--dataset", str(DATA), "--seed", "0", "--digits", "--spread", "0.1")
    assert flags(sft_program([DATA], MODEL, HERE, sft, tiny=True))["--max-steps"] == ["300"]
    rollouts = flags(grpo_program(DATA, MODEL, HERE, grpo, tiny=True))
    assert (rollouts["--max-steps"], rollouts["--no-ats"]) == (["3"], [])
    assert flags(evaluation_program([DATA], MODEL, HERE, asked, tiny=True))["--limit"] == ["48"]


def test_fields_of_a_method_are_set_on_the_launchpad() -> None:
    config = GrpoConfig(method="codev", method_fields={"weight_tool": "0.3", "weight_accuracy": "0.9"})
    found = flags(grpo_program(DATA, MODEL, HERE, config, tiny=False))
    assert found["--set"] == ["method.weight_tool=0.3", "method.weight_accuracy=0.9"]
    assert "--set" not in flags(grpo_program(DATA, MODEL, HERE, GrpoConfig(), tiny=False))


@pytest.mark.parametrize(
    ("program", "config"),
    [(partial(sft_program, [DATA]), SftConfig), (partial(grpo_program, DATA), GrpoConfig)],
    ids=["sft", "grpo"],
)
def test_evaluations_during_training_are_set_on_the_launchpad(program: Any, config: Any) -> None:
    asked = config(eval_every=5, early_stop=2, keep_best=True, flags={"eval_limit": "9"})
    found = flags(program(MODEL, HERE, asked, tiny=False))
    assert [found[name] for name in ("--eval-every", "--early-stop", "--keep-best")] == [["5"], ["2"], []]
    assert found["--eval-limit"] == ["9"]
    assert (
        not {"--eval-every", "--early-stop", "--keep-best"} & flags(program(MODEL, HERE, config(), tiny=False)).keys()
    )


def test_settings_come_from_the_environment() -> None:
    environment = {"DARKROOM_LAUNCH": "slurm", "DARKROOM_LAUNCH_PROCESSES": "4", "DARKROOM_LAUNCH_SUBMIT": "1"}
    found = LauncherResource.from_environment(environment)
    assert (found.kind, found.n_processes, found.submit, found.n_gpus) == ("slurm", 4, True, 0)


@pytest.mark.parametrize(("variable", "value"), [("DARKROOM_LAUNCH", "mars"), ("DARKROOM_LAUNCH_PROCESSES", "many")])
def test_a_setting_that_cannot_be_is_named(variable: str, value: str) -> None:
    with pytest.raises(LaunchError, match=f"{variable} is '{value}'"):
        LauncherResource.from_environment({variable: value})


def script(folder: Path, log: Path) -> str:
    command = [sys.executable, "-c", "import os, sys; print(sys.argv[1:], os.environ['NOTE'], os.getcwd())", NASTY]
    launcher = LauncherResource(folder=str(folder), n_gpus=2, options="--time=1:00:00 --comment='a b'")
    return slurm_script(command, {"NOTE": NASTY}, launcher, name="darkroom-x", log=log)


def test_a_slurm_script_is_what_bash_understands_and_runs_the_very_command(tmp_path: Path) -> None:
    folder = tmp_path / "it's here"
    folder.mkdir()
    path = tmp_path / "job.sbatch"
    path.write_text(script(folder, tmp_path / "log-%j"))
    subprocess.run(["bash", "-n", str(path)], check=True)
    said = subprocess.run(["bash", str(path)], check=True, capture_output=True, text=True).stdout
    assert said.strip() == f"{[NASTY]} {NASTY} {folder}"


def test_a_slurm_script_asks_for_what_is_set() -> None:
    lines = script(Path("/code"), Path("/out/log-%j")).splitlines()
    asked = [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH")]
    assert asked == [
        "--job-name=darkroom-x",
        "--output=/out/log-%j",
        "--nodes=1",
        "--ntasks=1",
        "--gpus-per-node=2",
        "--time=1:00:00",
        "'--comment=a b'",
    ]
    assert lines[0] == "#!/bin/bash"


def test_a_kubernetes_manifest_runs_the_very_command_once_with_the_workspace_mounted() -> None:
    launcher = LauncherResource(folder="/code", image="registry/darkroom:1", claim="home", n_gpus=1)
    command = ["python", "-c", NASTY]
    text = kubernetes_manifest(command, {"NOTE": NASTY}, launcher, name="darkroom-x", home=Path("/data"))
    manifest = yaml.safe_load(text)
    kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
    pod = manifest["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (manifest["apiVersion"], manifest["kind"], manifest["spec"]["backoffLimit"]) == ("batch/v1", "Job", 0)
    assert container["command"] == ["python", "-c", NASTY]
    assert container["env"] == [{"name": "NOTE", "value": NASTY}]
    assert container["volumeMounts"] == [{"name": "home", "mountPath": "/data"}]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 1}}
    assert pod["volumes"][0]["persistentVolumeClaim"] == {"claimName": "home"}


def test_a_ray_job_is_a_line_that_a_shell_runs_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "it's here"
    folder.mkdir()
    command = [sys.executable, "-c", "import os, sys; print(sys.argv[1:], os.getcwd())", NASTY]
    body = submission(command, {"NOTE": NASTY}, LauncherResource(folder=str(folder)), name="darkroom-x")
    said = subprocess.run(body["entrypoint"], shell=True, check=True, capture_output=True, text=True).stdout
    assert said.strip() == f"{[NASTY]} {folder}"
    assert body["runtime_env"] == {"env_vars": {"NOTE": NASTY}}
    assert "entrypoint_num_gpus" not in body
    assert submission(command, {}, LauncherResource(n_gpus=4), name="x")["entrypoint_num_gpus"] == 4


@pytest.mark.parametrize("n_steps", [1, 7, 100, 101, 250, 10_000])
def test_a_run_has_few_observations_and_the_first_and_last_step_among_them(n_steps: int) -> None:
    observed = [step for step in range(1, n_steps + 1) if _is_observed(step, n_steps)]
    assert len(observed) <= MOST_OBSERVATIONS + 2
    assert {1, n_steps} <= set(observed)
    assert n_steps > MOST_OBSERVATIONS or len(observed) == n_steps


def run(
    output: Path, launcher: LauncherResource, instance: dg.DagsterInstance, *words: str
) -> dg.ExecuteInProcessResult:
    """A run of an asset that launches the little program."""

    def little(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        return launch(context, Program("tests.assets.little", output, words), launcher)

    little.__annotations__ = {"context": dg.AssetExecutionContext}
    return dg.materialize([dg.asset(little)], instance=instance, raise_on_error=False)


def failure(result: dg.ExecuteInProcessResult) -> str:
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    return str(failed.step_failure_data.user_failure_data.description)


def materialized(result: dg.ExecuteInProcessResult) -> Mapping[str, Any]:
    (event,) = result.get_asset_materialization_events()
    made = event.step_materialization_data.materialization
    assert made.tags is not None
    return {name: value.value for name, value in made.metadata.items()} | {"version": made.tags["dagster/data_version"]}


def losses(instance: dg.DagsterInstance) -> list[Any]:
    records = instance.fetch_observations(dg.AssetKey("little"), limit=10, ascending=True).records
    return [
        record.asset_observation.metadata["loss"].value
        for record in records
        if "loss" in record.asset_observation.metadata
    ]


def test_steps_are_observed_and_the_result_is_the_assets(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    result = run(tmp_path / "out", LauncherResource(), instance)
    assert losses(instance) == [3.0, 1.5, 1.0]
    found = materialized(result)
    assert (found["final_loss"], found["version"]) == (1.0, "of its inputs")
    assert found["command"] == f"{sys.executable} -m tests.assets.little"
    assert found["ran_on"].startswith("this machine, process ")


def test_a_program_that_fails_says_why_in_the_runs_failure(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    assert failure(run(tmp_path / "out", LauncherResource(), instance, "no", "dataset")) == "no dataset"


class CancelledAtOnce:
    """A job whose run is cancelled while its first line is written to the log, whose logger swallows it."""

    def __init__(self) -> None:
        self.n_asked, self.is_stopped = 0, False

    @property
    def where(self) -> str:
        self.n_asked += 1
        if self.n_asked == 1:
            with suppress(BaseException):
                signal.raise_signal(signal.SIGINT)
        return "a job"

    def ended(self, *, closed: bool) -> None:
        raise AssertionError("nobody waits for it")

    def stop(self) -> None:
        self.is_stopped = True


def test_a_run_that_is_cancelled_as_its_job_starts_ends_the_job(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = CancelledAtOnce()
    monkeypatch.setattr("assets.launching.run.start", lambda *_: job)
    with suppress(dg.DagsterExecutionInterruptedError):
        run(tmp_path / "out", LauncherResource(), instance)
    assert job.is_stopped


SLURM = LauncherResource(kind="slurm", wait_hours=0.05, folder=str(ROOT))


def test_a_job_that_may_have_been_started_when_the_run_was_cancelled_is_told_to_stop(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancelled(*_: object) -> None:
        raise dg.DagsterExecutionInterruptedError

    monkeypatch.setattr("assets.launching.run.start", cancelled)
    with suppress(dg.DagsterExecutionInterruptedError):
        run(tmp_path / "out", SLURM, instance)
    assert (tmp_path / "out.job" / "1" / "stop").exists()


def started_by_hand(output: Path) -> threading.Thread:
    """Somebody who waits for the script, and runs it as Slurm would."""

    def start() -> None:
        path = output.with_name("out.job") / "1" / "job.sbatch"
        deadline = time.monotonic() + 120
        while not (path.exists() and path.read_text().endswith("\n")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        subprocess.run(["bash", str(path)], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    thread = threading.Thread(target=start)
    thread.start()
    return thread


def test_a_job_that_was_handed_over_reports_back(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    somebody = started_by_hand(tmp_path / "out")
    result = run(tmp_path / "out", SLURM, instance)
    somebody.join()
    assert losses(instance) == [3.0, 1.5, 1.0]
    assert materialized(result)["final_loss"] == 1.0
    assert materialized(result)["ran_on"] == f"handed over: sbatch {tmp_path}/out.job/1/job.sbatch"


def test_a_job_that_was_handed_over_and_fails_says_why(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    somebody = started_by_hand(tmp_path / "out")
    assert failure(run(tmp_path / "out", SLURM, instance, "no", "dataset")) == "no dataset"
    somebody.join()


def test_a_job_started_after_the_run_gave_up_is_taken_in_by_the_next_one(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    at_once = LauncherResource(kind="slurm", wait_hours=0.0, folder=str(ROOT))
    said = failure(run(tmp_path / "out", at_once, instance))
    assert f"sbatch {tmp_path}/out.job/1/job.sbatch" in said
    started_by_hand(tmp_path / "out").join()
    assert materialized(run(tmp_path / "out", at_once, instance))["final_loss"] == 1.0
    assert "the job was not started yet" in failure(run(tmp_path / "out", at_once, instance))


def test_a_job_of_another_command_at_work_on_the_output_is_left_alone(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    exchange = JobDirectory(tmp_path / "out.job" / "1")
    exchange.folder.mkdir(parents=True)
    (exchange.folder / "order.json").write_text(json.dumps({"command": ["another"], "job_id": ""}))
    exchange.alive.write_text("0")
    over = threading.Event()

    def live() -> None:
        while not over.wait(0.2):
            exchange.alive.write_text(str(time.monotonic()))

    alive = threading.Thread(target=live)
    alive.start()
    try:
        said = failure(run(tmp_path / "out", SLURM, instance))
    finally:
        over.set()
        alive.join()
    assert "another job writes to" in said
    assert str(exchange.stop) in said


def test_a_sign_of_life_that_is_late_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange, clock = JobDirectory(tmp_path), [0.0]
    exchange.alive.write_text("1")

    def sleep(seconds: float) -> None:
        clock[0] += seconds
        if clock[0] > 20:
            exchange.alive.write_text("2")

    monkeypatch.setattr("assets.launching.order.time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    assert _is_alive(exchange)
    assert 20 < clock[0] < 21


def test_a_sign_of_life_that_is_being_written_is_the_last_one(tmp_path: Path) -> None:
    exchange = JobDirectory(tmp_path)
    job = HandedOverJob(exchange, start_with="sbatch job", wait_hours=0.0)
    exchange.alive.write_text("1")
    assert job.ended(closed=False) is None
    exchange.alive.write_text("")
    assert job.ended(closed=False) is None


def test_a_job_that_starts_when_another_one_has_its_place_ends_and_is_not_heard(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    at_once = LauncherResource(kind="slurm", wait_hours=0.0, folder=str(ROOT))
    for words in ("another", "dataset"), ():
        assert "the job was not started yet" in failure(run(tmp_path / "out", at_once, instance, *words))
    late, wanted = (tmp_path / "out.job" / number / "job.sbatch" for number in ("1", "2"))
    assert subprocess.run(["bash", str(late)], check=False, capture_output=True, timeout=300).returncode == 128 + 15
    assert "the job was not started yet" in failure(run(tmp_path / "out", at_once, instance))
    subprocess.run(["bash", str(wanted)], check=True, capture_output=True)
    assert materialized(run(tmp_path / "out", at_once, instance))["final_loss"] == 1.0


def test_a_manifest_wants_an_image_and_a_claim(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    said = failure(run(tmp_path / "out", LauncherResource(kind="kubernetes"), instance))
    assert "DARKROOM_LAUNCH_IMAGE" in said


def test_no_key_is_written_into_a_job(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("DARKROOM_STUDIO_TOKEN", "t-secret")
    monkeypatch.setenv("DARKROOM_LEDGER", "postgresql://a:p-secret@db/x")
    launcher = LauncherResource(kind="kubernetes", image="i", claim="c", wait_hours=0.0)
    assert "kubectl create -f" in failure(run(tmp_path / "out", launcher, instance))
    text = (tmp_path / "out.job" / "1" / "job.yaml").read_text()
    assert "secret" not in text
    assert os.environ["DARKROOM_HOME"] in text


def test_where_no_ray_cluster_answers_that_is_said(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    launcher = LauncherResource(kind="ray", url="http://127.0.0.1:9")
    assert "DARKROOM_LAUNCH_URL" in failure(run(tmp_path / "out", launcher, instance))
