"""Training assets: programs of ``train/`` in their own processes, here or on a cluster, with live metrics."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import dagster as dg

from darkroom.assets.clusters.programs import LauncherResource, launch, run_here
from darkroom.assets.graph.datasets import RL_DATASET, SFT_DATASET
from darkroom.assets.graph.resources import WorkspaceResource
from darkroom.assets.graph.stage_assets import Decorator
from darkroom.assets.graph.training_config import (
    BaseModelConfig,
    EvaluationConfig,
    GrpoConfig,
    SftConfig,
    evaluation_program,
    grpo_program,
    sft_program,
    tiny_program,
)
from darkroom.pipelines.publishing.dataset_reader import dataset_files, dataset_folders, n_rows_of, origins_in
from darkroom.pipelines.publishing.rl_dataset import RL_PROMPTS
from darkroom.pipelines.storage.atomic_write import share_folder
from darkroom.pipelines.storage.workspace import Workspace

GROUP = "train"
_POINTER = "base_model.txt"
_TINY = "tiny"
HELD_OUT = "held_out_rows"
_EVALUATED = ("sft/crop", "rl/prompts")


def _asset(**declared: Any) -> Decorator:
    return cast(Decorator, dg.asset(owners=["team:research"], **{"group_name": GROUP, **declared}))


@_asset(group_name="demo", kinds={"parquet"})
def street_signs(workspace: WorkspaceResource) -> dg.MaterializeResult:
    """Rows that the demo's tiny model learns from: the colour of a street sign in a region that the question names.

    Trajectories of the family `crop` in few words, and held-out questions about other walls. `darkroom demo` trains
    and evaluates on them; the product's datasets do not have them.
    """
    opened = workspace.open()
    import_module("darkroom.pipelines.demo.street_sign_datasets").main()  # by its name: assets do not import the annex
    folders = dataset_folders(opened.local_datasets("street_signs"))
    n_rows = {folder.name: n_rows_of(dataset_files(folder)) for folder in folders}
    n_all = sum(n_rows.values())
    return dg.MaterializeResult(metadata={"dagster/row_count": n_all, "rows_out": n_all, **n_rows})


@_asset(kinds={"pytorch"}, deps=[SFT_DATASET, street_signs])
def base_model(config: BaseModelConfig, workspace: WorkspaceResource) -> dg.MaterializeResult:
    """The model that training starts from: yours, or a tiny random Qwen2.5-VL with a tokenizer trained on the dataset.

    Set `path` to a model's folder. The tiny model is for demonstration: it trains in seconds without a GPU, and learns
    only the format of the trajectories.
    """
    opened = workspace.open()
    folder = Path(config.path) if config.path else opened.checkpoint(_TINY)
    if not config.path:
        chosen = [opened.local_datasets(name) for name in config.datasets]
        run_here(tiny_program(folder, chosen or dataset_folders(opened.local_datasets("sft")), config))
    elif not (folder / "config.json").exists():
        raise dg.Failure(f"{folder} is no model: it has no config.json. Set `path` to a model's folder.")
    _pointer(opened).parent.mkdir(parents=True, exist_ok=True)
    _pointer(opened).write_text(str(folder))
    return dg.MaterializeResult(metadata={"folder": dg.MetadataValue.path(str(folder)), "tiny": not config.path})


@_asset(kinds={"pytorch", "huggingface"}, deps=[SFT_DATASET, street_signs, base_model])
def sft_checkpoint(
    context: dg.AssetExecutionContext, config: SftConfig, workspace: WorkspaceResource, launcher: LauncherResource
) -> dg.MaterializeResult:
    """Supervised fine-tuning on the shipped dataset; observations are masked out of the loss.

    Set `recipe` to a paper's, with its phases (`thyme`: images, then maths), or set the schedule. Steps, about a
    hundred of a long run, are observations of this asset, plotted while it runs (Metadata, Plots). Rows are checked
    against the model's tokenizer first; rows that do not conform fail the run with their ids. Unchanged inputs are not
    trained again. The resource `launcher` has the number of processes, the run's tag `darkroom/runs_on` the place.
    """
    opened = workspace.open()
    families = config.families or ([] if config.recipe or config.datasets else ["crop"])
    datasets = [opened.local_datasets("sft", family) for family in families]
    datasets += [opened.local_datasets(name) for name in config.datasets]
    datasets = datasets or [opened.local_datasets("sft")]
    program = sft_program(datasets, _base_model(opened), opened.checkpoint("sft"), config, tiny=_is_tiny(opened))
    context.add_output_metadata(origins_in(datasets))
    return launch(context, program, launcher)


@_asset(kinds={"pytorch", "huggingface"}, deps=[SFT_DATASET, RL_DATASET, sft_checkpoint])
def grpo_checkpoint(
    context: dg.AssetExecutionContext, config: GrpoConfig, workspace: WorkspaceResource, launcher: LauncherResource
) -> dg.MaterializeResult:
    """Reinforcement learning from the fine-tuned checkpoint: the model writes code, the sandbox runs it.

    The questions are those of `rl_dataset`, or with `prompts: sft` those of a family's SFT dataset. Watch the
    proportion of code that ran (`executable_rate`), of rollouts that were discarded (`broken_rate`), and the sandbox's
    share of the time; below are sample rollouts with code, images, reward and advantage.
    """
    opened = workspace.open()
    prompts = RL_PROMPTS if config.prompts == "rl" else ("sft", config.family)
    dataset = opened.local_datasets(*((config.dataset,) if config.dataset else prompts))
    if not dataset.exists():
        first = f"materialise `{config.prompts}_dataset` first"
        raise dg.Failure(f"there is no {dataset}: {first}, or set `prompts` to the other dataset (rl or sft)")
    program = grpo_program(dataset, opened.checkpoint("sft"), opened.checkpoint("grpo"), config, tiny=_is_tiny(opened))
    context.add_output_metadata(origins_in([dataset]))
    return launch(context, program, launcher)


@_asset(
    kinds={"pytorch"},
    deps=[SFT_DATASET, grpo_checkpoint],
    output_required=False,
    check_specs=[
        dg.AssetCheckSpec(
            HELD_OUT,
            asset="evaluation",
            description="The datasets have rows in the split that is evaluated. Without any there is no evaluation.",
        )
    ],
)
def evaluation(
    context: dg.AssetExecutionContext,
    config: EvaluationConfig,
    workspace: WorkspaceResource,
    launcher: LauncherResource,
) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
    """A checkpoint on held-out questions, with its tools: accuracy, use of code, and whether its images matter.

    Set `checkpoint` to compare stages (each has its own report), `benchmarks` for public benchmarks, `rollouts` for
    avg@k and pass@k, `controls` to measure whether the answer changes when the images are removed.
    """
    opened = workspace.open()
    datasets = [opened.local_datasets(name) for name in config.datasets]
    if not datasets and not config.benchmarks:
        split = None if config.split == "all" else config.split
        folders = [opened.local_datasets(name) for name in _EVALUATED]
        datasets = [folder for folder in folders if n_rows_of(dataset_files(folder, split=split))]
    if datasets or config.benchmarks:
        model = _base_model(opened) if config.checkpoint == "base" else opened.checkpoint(config.checkpoint)
        output = opened.local / "evaluations" / config.checkpoint
        authors = {"written_by": f"the authors of {', '.join(config.benchmarks)}"}
        context.add_output_metadata(origins_in(datasets) if datasets else authors, output_name="result")
        result = launch(context, evaluation_program(datasets, model, output, config, tiny=_is_tiny(opened)), launcher)
        share_folder(output, opened.evaluation(config.checkpoint))
        yield result
        yield dg.AssetCheckResult(passed=True)
    else:
        words = f"not evaluated: no row of {' or '.join(_EVALUATED)} is in the split {config.split}"
        mend = "set `split: all`, or ship the datasets with a larger `validation_share`"
        yield dg.AssetCheckResult(passed=False, severity=dg.AssetCheckSeverity.WARN, description=f"{words}; {mend}")


def _base_model(opened: Workspace) -> Path:
    pointer = _pointer(opened)
    if not pointer.exists():
        raise dg.Failure("there is no base model yet: materialise `base_model` first")
    return Path(pointer.read_text())


def _is_tiny(opened: Workspace) -> bool:
    return _base_model(opened) == opened.checkpoint(_TINY)


def _pointer(opened: Workspace) -> Path:
    """The file that names the base model for the assets downstream."""
    return opened.checkpoint(_POINTER)
