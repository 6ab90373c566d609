"""The settings of a GRPO checkpoint besides its dataset and its model, and the terms that a paper names for it, which
fill unset ones (``darkroom.train.rl.methods.settings_of``)."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from darkroom.pipelines.storage.user_files import added_files
from darkroom.train.runs import TrainError
from darkroom.train.runs.command_line import Flag, ProgramSettings
from darkroom.train.runs.options import (
    MaxPixels,
    TrainingSettings,
    assigned,
    chosen_wording,
    without_unset,
    wording_record,
)

Engine = Literal["transformers", "vllm_colocate", "vllm_server"]
"""The generator of rollouts. ``transformers``: the training process itself, on one machine or many. ``vllm_colocate``:
vLLM inside the training process, on GPUs. ``vllm_server``: ``vllm serve`` elsewhere; every rollout goes on by itself,
and no process waits for another one's."""
LossType = Literal["grpo", "group", "dapo"]
"""The mean that is the loss (``rollouts/loss.py``). ``grpo``: each rollout's tokens, then rollouts (FIGR eq. 9).
``group``: all tokens of a group, then groups (Thyme §4.2). ``dapo``: all tokens of the batch (CodeV eq. 4)."""
ProtocolName = Literal["thyme", "pyvision", "tool_call"]
RepetitionStop = Literal["darkroom", "paper", "off"]
"""The rule by which a rollout in circles is ended (``pipelines/verification/repetition.py``)."""
Rubric = Literal["strict", "paper"]
"""The score of an image that is no evidence (``darkroom.train.rl.judging.judges.MATCHES``)."""
Scale = Literal["group", "none"]
"""``group``: advantages are divided by the group's standard deviation."""
Schedule = Literal["linear", "cosine", "constant"]
"""The learning rate after its peak: to 0 in a line, in half a cosine, or constant."""


class MethodDefaults(ProgramSettings):
    """A paper's training settings; the command line overrides each."""

    epochs: float = Field(default=1.0, ge=0.0)
    """Passes over the prompts."""
    generations: int = Field(ge=2)
    """Rollouts per prompt."""
    learning_rate: float = Field(ge=0.0)
    """Peak of the schedule."""
    beta: float = Field(default=0.0, ge=0.0)
    """Weight of the KL divergence; 0 needs no reference model."""
    epsilon: float = Field(default=0.2, ge=0.0)
    """Clipping range of the probability ratio."""
    loss_type: LossType = "dapo"
    """Weighs the same: grpo: every rollout; group: every token of its group; dapo: every token."""
    scale: Scale = "none"
    """group: advantages are divided by the group's standard deviation."""
    temperature: float = Field(default=1.0, ge=0.01)
    """Of sampling."""
    top_p: float = Field(default=1.0, ge=0.01, le=1.0)
    """Of sampling; 1 is all."""
    repetition_penalty: float = Field(default=1.0, ge=1.0)
    """1 is none."""
    adaptive_temperature: Annotated[bool, Flag(declaration="--ats/--no-ats")] = False
    """GRPO-ATS: temperature 0 inside code."""
    oversample: float = Field(default=1.0, ge=1.0)
    """Groups rolled out per trained group (PyVision-RL, algorithm 1)."""
    max_rounds: int = Field(ge=1)
    """Limit of code executions per rollout."""
    max_tokens: int = Field(default=4096, ge=1)
    """Token limit of a rollout after the prompt, with observations."""
    schedule: Schedule = "linear"
    """Shape of the learning rate after its peak."""
    min_pixels: int | None = Field(default=None, ge=784)
    """Scale smaller images up to this many pixels."""
    max_pixels: MaxPixels = None


class GrpoSettings(MethodDefaults, TrainingSettings):
    """The inputs of a GRPO checkpoint, besides dataset and model. Raises ``TrainError`` where batch and groups do not
    fit together, and for a vLLM server with several processes."""

    filled_later: ClassVar[frozenset[str]] = frozenset([*MethodDefaults.model_fields, "protocol", "batch_size"])

    method: Annotated[str, Flag(hidden=True)]
    options: Annotated[dict[str, Any], Flag("set", repeated=True)] = Field(default_factory=dict)
    """A field of the method, method.FIELD=VALUE, or an argument of TRL's trainer, as trainer.beta=0.01; repeatable."""
    method_file: Annotated[str, Flag(hidden=True)] = ""
    """The digest of the file that defines a method of the user's own."""
    protocol: ProtocolName = Field()
    """thyme, pyvision or tool_call, for rl rows; default: the method's."""
    prompt: str | None = None
    """Put questions as a paper does: thyme_paper, codev_paper, pyvision_paper, adaptive_paper, figr_paper; or a .md."""
    max_steps: int = -1
    """Stop after this many steps; -1: after the epochs."""
    batch_size: int = Field(ge=1)
    """Trained rollouts per batch and process; default: one group."""
    accumulation: int = Field(default=1, ge=1)
    """Batches per step: a larger batch without more memory."""
    engine: Engine = "transformers"
    """What generates: this process, or vLLM in it, or a `vllm serve`."""
    repetition: RepetitionStop | None = None
    """What ends a rollout in circles: darkroom, paper (Thyme §4.3: a substring that covers more than half), off."""
    repetition_chars: int | None = Field(default=None, ge=2)
    """Length of the substring; default: 40, 80, 160, 320 and 640 characters."""
    repetition_share: float | None = Field(default=None, ge=0.01, le=1.0)
    """More of the rollout than this is covered; default: 0.5."""
    repetition_times: int | None = Field(default=None, ge=2)
    """Least number of places; default: 5, of the paper's rule 2."""
    repetition_min_chars: int | None = Field(default=None, ge=0)
    """No shorter rollout is ended; default: 800, of the paper's rule 0."""
    judge: Annotated[str, Flag(hidden=True)] = ""
    """Model, votes and settings of the judge, as one text."""
    seed: int = 0
    """Seed of sampling and of the order of prompts."""

    @model_validator(mode="before")
    @classmethod
    def _assigned(cls, values: Any) -> Any:
        """Read the command line: ``--set method.weight_tool=0.3 --set trainer.epsilon_high=0.28``."""
        options = values.get("options")
        if isinstance(options, dict):
            return values
        texts = [str(text) for text in options or ()]
        own = [text for text in texts if not text.startswith("trainer.")]
        pairs = [text.partition("=")[::2] for text in own]
        if wrong := [key for key, setting in pairs if not key.startswith("method.") or not setting]:
            expected = "method.FIELD=VALUE, as in method.weight_tool=0.3"
            others = "(arguments of TRL's trainer: trainer.NAME=VALUE)"
            raise TrainError(f"--set takes {expected}; found {wrong[0]!r} {others}")
        options = {key.removeprefix("method."): setting for key, setting in pairs}
        trainer = assigned(values.get("trainer")) | assigned(text for text in texts if text not in own)
        return {**values, "options": options, "trainer": trainer}

    @property
    def record(self) -> dict[str, Any]:
        """The settings as JSON: part of the checkpoint's inputs."""
        return {**without_unset(self.model_dump(exclude={"prompt"})), **wording_record(self.prompt)}

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        chosen_wording(self.prompt, protocol=self.protocol)
        generations, oversample = self.generations, self.oversample
        n_trained = self.batch_size * self.accumulation
        if n_trained % generations:
            problem = f"batch size x accumulation is {n_trained}, which is no multiple of {generations} generations"
            raise TrainError(f"{problem}: the rollouts of a prompt must be in one batch")
        oversampled = self.batch_size * oversample
        if oversampled != round(oversampled) or round(oversampled) * self.accumulation % generations:
            batch = f"--oversample {oversample:g} of a batch of {self.batch_size} x {self.accumulation}"
            mend = f"choose a batch size of which {oversample:g} times is a multiple of them"
            raise TrainError(f"{batch} gives no whole groups of {generations}; {mend}")
        return self


METHODS_VARIABLE = "DARKROOM_METHODS"
"""Lists folders with methods of the user's own."""


def added_names() -> str:
    """Name the user's own methods for the help, by their files, none of which is imported."""
    try:
        names = [path.stem for path in added_files(METHODS_VARIABLE, TrainError)]
    except TrainError as error:
        return f"; {error}."
    return f"; of your own {', '.join(names)}." if names else "; of your own: a file in a folder of DARKROOM_METHODS."


class JudgeOptions(ProgramSettings):
    """The judge of a training on the command line; what is not set comes from ``DARKROOM_JUDGE…``."""

    url: Annotated[str, Flag("judge_url")] = ""
    """OpenAI-compatible endpoint of the judge; default: DARKROOM_JUDGE… of the environment."""
    model: Annotated[str, Flag("judge_model")] = ""
    """The judge's name at --judge-url."""
    n_votes: Annotated[int | None, Flag("judge_votes")] = Field(default=None, ge=1)
    """Votes per question; default: as in the environment, else 1."""
    rubric: Annotated[Rubric, Flag("judge_rubric")] = "strict"
    """Score of an image that shows nothing of the question: 0 (strict), or 0.25 (paper)."""
