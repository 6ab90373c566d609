"""The settings of the agent: the model, how its questions are put, and how it samples."""

from pathlib import Path

from pydantic import Field

from train.evaluation.settings import EvaluationSettings, check_policy
from train.runs.command_line import MaxPixels, ProgramSettings


class AgentSettings(ProgramSettings):
    """A model behind an endpoint. Every field is also one of an evaluation and means the same there."""

    model: str = Field(default="", description="Folder of a checkpoint; with --url, the name of a model there.")
    url: str = Field(default="", description="An OpenAI-compatible endpoint, with /v1. Key: OPENAI_API_KEY.")
    protocol: str = Field(default="thyme", description="thyme, pyvision or tool_call.")
    mode: str = Field(default="free", description="The protocol's prompt: free, forced, forbidden, no_libraries.")
    frames: int | None = Field(default=None, ge=1, description="Show so many frames of each video in the prompt.")
    prompt: str | None = Field(
        default=None, description="Put questions as a paper prints it (thyme_paper, …) or as a file .md does."
    )
    temperature: float = Field(default=0.0, ge=0.0, description="0 takes the likeliest token.")
    top_p: float = Field(default=1.0, ge=0.01, le=1.0, description="Of sampling.")
    top_k: int | None = Field(default=None, ge=1, description="Sample among so many of the likeliest tokens.")
    max_tokens: int = Field(default=1024, ge=1, description="Token limit of one turn.")
    max_rounds: int = Field(default=6, ge=0, description="Limit of code executions per answer.")
    max_pixels: MaxPixels = None
    batch_size: int = Field(default=32, ge=1, description="Conversations at once; four times as many calls.")
    seed: int = Field(default=0, description="Seed of all answers, where a request brings none.")

    def as_evaluation(self, seed: int | None = None) -> EvaluationSettings:
        """The same as an evaluation's settings. Raises ``TrainError`` for settings that contradict one another."""
        values = {**self.model_dump(), "seed": self.seed if seed is None else seed}
        settings = EvaluationSettings(output=Path(), **values)
        check_policy(settings)
        return settings
