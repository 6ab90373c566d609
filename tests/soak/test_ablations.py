"""Every experiment of the papers' ablations from end to end at minimal size: one step of a training, four questions."""

from dataclasses import replace

import pytest

from darkroom.train.rl.settings import METHODS_VARIABLE
from measurements.ablations import report, results, runner, world as ablation_world
from measurements.ablations.catalog import EXPERIMENTS
from measurements.ablations.world import datasets

pytestmark = pytest.mark.filterwarnings(
    # TRL 1.16 reads the name that transformers 5.23 deprecates
    "ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"
)
SEED = 0
N_ROWS = {"agentic_video": 3, "film_questions": 2, "frames_in_context": 4, "math_code": 8}
"""By the writer; of walls a single one."""
# with so few texts a token may straddle two turns, and a row with such a token is not trained on
ONE_STEP = {
    "random": {},
    "sft": {"max_steps": 1, "batch_size": 2, "drop_nonconforming": True},
    "grpo": {"max_steps": 1, "generations": 4, "batch_size": 8, "max_tokens": 60},
    "steps": {
        "max_steps": 1,
        "num_generations": 4,
        "per_device_train_batch_size": 8,
        "max_completion_length": 16,
    },
}


def smallest(model):
    """The model after a single step, of a start that had a single one."""
    settings = {**model.settings, **ONE_STEP[model.program]}
    if "phases" in settings:
        settings["phases"] = [{**phase, "max_steps": 1} for phase in settings["phases"]]
    return replace(model, start=model.start and smallest(model.start), settings=settings)


def few(asked):
    """Four questions, where there are any."""
    return None if asked is None else {**asked, "limit": 4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where all experiments share rows and models."""
    with pytest.MonkeyPatch.context() as patch:
        small = {name: rows._replace(n=N_ROWS.get(rows.writer, 1)) for name, rows in datasets.ROWS.items()}
        for module in (datasets, ablation_world, results):
            patch.setattr(module, "ROWS", small)
        patch.setattr("measurements.ablations.models.ROWS", small)
        patch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
        yield tmp_path_factory.mktemp("ablations")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_runs_from_rows_to_its_table(name, folder, monkeypatch):
    monkeypatch.setenv(METHODS_VARIABLE, "")  # to which the runner adds
    experiment = EXPERIMENTS[name]
    arms = [replace(arm, model=smallest(arm.model), asked=few(arm.asked)) for arm in experiment.arms]
    experiment = replace(experiment, arms=tuple(arms), seeds=(SEED,))
    for rows in sorted(experiment.rows()):
        datasets.ship(folder, rows)
    runner.run_seed(folder, SEED, [experiment])
    found = results.figures(folder, experiment)
    assert [list(by_seed) for by_seed in found.values()] == [[SEED]] * len(experiment.arms)
    assert report.section(experiment, found).count("undecided: one seed") == len(experiment.comparisons)
    report.plot(experiment, found, folder / f"{name}.png")
    assert (folder / f"{name}.png").stat().st_size
