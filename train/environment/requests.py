"""What clients of the environment send, over HTTP and over OpenEnv's WebSocket."""

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from darkroom.pipelines.records import Grader
from darkroom.pipelines.services.json_bodies import WholeText


class ResetRequest(BaseModel):
    """Which row, and how it is asked."""

    model_config = ConfigDict(extra="forbid")
    row: StrictInt | str = Field(description="Its number, from 0 on, or its sample_id.")
    mode: str = Field(default="free", description="The protocol's prompt: free, forced, forbidden, no_libraries.")
    seed: int = Field(default=0, ge=0, lt=2**31, description="Of the sandbox; each rollout its own.")


class StepRequest(BaseModel):
    """The model's next turn."""

    model_config = ConfigDict(extra="forbid")
    text: WholeText
    finished: bool = Field(default=True, description="False: a token limit cut the turn off.")


class ScoreRequest(BaseModel):
    """Finished episodes of one row."""

    model_config = ConfigDict(extra="forbid")
    episodes: list[str] = Field(min_length=1, max_length=1024)


class GradedTruth(BaseModel):
    """What a rule compares an answer with, as exports have it."""

    model_config = ConfigDict(extra="forbid")
    question: str
    answer: str
    choices: list[str]
    grader: Grader


class GradeRequest(BaseModel):
    """A final answer and the row's truth."""

    model_config = ConfigDict(extra="forbid")
    answer: str
    truth: GradedTruth
