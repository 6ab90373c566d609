"""Settings of an evaluation (policy, questions, rollouts, measures) and of the agent, which mean the same."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.selection.sampling import SPLITS
from darkroom.train.runs import TrainError
from darkroom.train.runs.command_line import Flag, ProgramSettings
from darkroom.train.runs.options import MaxPixels, chosen_wording, local_datasets, wording_record

WHOLE_SHARE = 0.8
"""A crop with more than this proportion of an image is no crop (as ``vision.image_transform.PART_SHARE``)."""
COVER = 0.5
"""A crop shows a target when it covers at least this proportion of its box."""


class ExportFormat(StrEnum):
    """A file of the rollouts for other programs, beside the report (``output.export``)."""

    CSV = "csv"


class PolicySettings(ProgramSettings):
    """A model, its prompts and its sampling: ``model`` alone is a checkpoint folder, with ``url`` a name there."""

    model: str = ""
    """Folder of a checkpoint; with --url, the name of a model there."""
    url: str = ""
    """An OpenAI-compatible endpoint, with /v1. Key: OPENAI_API_KEY."""
    protocol: str = "thyme"
    """thyme, pyvision or tool_call: how the model writes code. SFT rows bring theirs."""
    mode: str = "free"
    """The protocol's prompt: free; tool_call also forced and forbidden; pyvision also forbidden (no code) and
    no_libraries (without cv2 and PIL, as its paper prints)."""
    frames: int | None = Field(default=None, ge=1)
    """Show so many frames of each video, uniformly sampled, in the prompt."""
    frame_rate: float | None = Field(default=None, ge=0.001)
    """Show so many frames per second of each video in the prompt."""
    prompt: str | None = None
    """Put questions as a paper prints it: thyme_paper, codev_paper, pyvision_paper, adaptive_paper, figr_paper, or a
    file .md; sets the protocol. Default: the protocol's own words."""
    temperature: float = Field(default=0.0, ge=0.0)
    """0 takes the likeliest token."""
    top_p: float = Field(default=1.0, ge=0.01, le=1.0)
    """Of sampling."""
    top_k: int | None = Field(default=None, ge=1)
    """Sample among so many of the likeliest tokens."""
    max_tokens: int = Field(default=1024, ge=1)
    """Token limit of one turn."""
    max_rounds: int = Field(default=6, ge=0)
    """Limit of code executions per rollout."""
    max_pixels: MaxPixels = None
    batch_size: int = Field(default=8, ge=1)
    """Conversations generated at once."""
    seed: int = 0
    """Seed of all rollouts."""


class EvaluationSettings(PolicySettings):
    """One evaluation, of a model or an ``oracle``. Questions: ``datasets``, ``benchmarks``, ``sources``."""

    output: Annotated[Path, Flag(hidden=True)]
    oracle: str = ""
    """A family, like `crop`: its oracle writes from the truth. A sanity check."""
    datasets: Annotated[
        tuple[Path, ...],
        BeforeValidator(lambda names: tuple(local_datasets([str(name) for name in names]))),
        Flag("dataset", repeated=True),
    ] = ()
    """Folder or URL of an RL dataset, or of an SFT dataset. May be repeated."""
    split: str = "validation"
    """Of datasets: validation, train or all."""
    benchmarks: Annotated[tuple[tuple[str, Path], ...], Flag("benchmark", repeated=True)] = ()
    """NAME=PATH: a bundled benchmark (docs/benchmarks.md) and its download, or your own YAML file; repeatable."""
    strict: Annotated[bool, Flag(declaration="--strict/--official")] = False
    """Score benchmarks by rules of our own, or as their authors' code does (the default; docs/benchmarks.md)."""
    sources: Annotated[tuple[str, ...], Flag("source", repeated=True)] = ()
    """A source of the catalog, like `demo`. May be repeated."""
    limit: int | None = Field(default=None, ge=1)
    """Only the first so many rows of each."""
    rollouts: int = Field(default=1, ge=1)
    """Per question, for avg@k and pass@k."""
    judge_url: str = ""
    """Endpoint of a judge that reads images: free answers, faithfulness."""
    judge_model: str = ""
    """The judge's name there."""
    judge_votes: int = Field(default=1, ge=1)
    """Votes on every image."""
    whole_share: float = Field(default=WHOLE_SHARE, ge=0.01, le=1.0)
    """A crop of more than this proportion of an image is no crop."""
    cover: float = Field(default=COVER, ge=0.01, le=1.0)
    """Proportion of a target's box that a crop must show."""
    controls: int = Field(default=0, ge=0)
    """Repeat so many rollouts with blank and swapped images. 0: none."""
    shown: int = Field(default=24, ge=0)
    """Rollouts in the gallery."""
    home: Annotated[str | None, BeforeValidator(lambda home: home and str(home))] = None
    """Workspace with ledger and images, a folder or a URL; default: DARKROOM_HOME."""

    def as_json(self) -> dict[str, Any]:
        """The settings that determine the results, besides the policy and the questions."""
        left_out = {"output", "home", "batch_size", "model", "datasets", "benchmarks", "prompt"}
        later = ("frames", "frame_rate", "top_k")  # reports from before do not have them
        unset = {name for name in later if getattr(self, name) is None}
        return self.model_dump(exclude=left_out | unset) | wording_record(self.prompt)


def check(settings: EvaluationSettings) -> None:
    """Raise ``TrainError`` for settings that contradict one another, before anything is opened."""
    check_policy(settings)
    if not (settings.datasets or settings.benchmarks or settings.sources):
        raise TrainError("name questions: --dataset FOLDER, --benchmark NAME=PATH or --source NAME")
    if (n := settings.rollouts) > 1 and settings.temperature == 0 and not settings.oracle:
        same = f"{n} rollouts at temperature 0 are the same rollout {n} times"
        raise TrainError(f"{same}; set --temperature above 0, or --rollouts 1")
    if settings.split not in (*SPLITS, "all"):
        raise TrainError(f"no split {settings.split!r}; there are {', '.join(SPLITS)} and all")
    if bool(settings.judge_url) != bool(settings.judge_model):
        raise TrainError("a judge needs both --judge-url and --judge-model")


def check_policy(settings: EvaluationSettings) -> None:
    """Raise ``TrainError`` where not exactly one policy is named, or no mode of its prompt."""
    if bool(settings.oracle) == bool(settings.model):
        raise TrainError("name one policy to evaluate: --model FOLDER, --url URL --model NAME, or --oracle FAMILY")
    if settings.url and not settings.model:
        raise TrainError("an endpoint serves several models: name one with --model")
    wording = chosen_wording(settings.prompt)
    if wording and settings.oracle:
        raise TrainError("--prompt is for models: an oracle reads no prompt")
    if wording and settings.mode not in wording.prompt.modes:
        modes = ", ".join(wording.prompt.modes)
        raise TrainError(f"no mode {settings.mode!r} of prompt {wording.name}; there are {modes}")
    modes_of = {name: protocol.modes for name, protocol in PROTOCOLS.items()}
    if wording is None and settings.mode not in modes_of.get(settings.protocol, ()):
        modes = "; ".join(f"{name}: {', '.join(modes)}" for name, modes in modes_of.items())
        raise TrainError(f"no mode {settings.mode!r} of protocol {settings.protocol!r}; there are {modes}")
    if settings.frames is not None and settings.frame_rate is not None:
        raise TrainError("frames are shown by number or by rate: choose --frames or --frame-rate")
    if settings.oracle and (settings.frames or settings.frame_rate):
        raise TrainError("an oracle writes from the truth and sees no frames: --frames and --frame-rate are for models")


class AgentSettings(PolicySettings):
    """The settings of ``darkroom agent``. ``seed``: where a request brings none."""

    batch_size: int = Field(default=32, ge=1)
    """Conversations generated at once; of --url, up to four times as many calls."""

    def as_evaluation(self) -> EvaluationSettings:
        """Convert to an evaluation's settings. Raises ``TrainError`` for settings that contradict one another."""
        if not self.model:
            raise TrainError("name the model to serve: --model FOLDER, or --url URL --model NAME")
        settings = EvaluationSettings(output=Path(), **self.model_dump())
        check_policy(settings)
        return settings
