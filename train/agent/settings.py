"""The settings of the agent: those of an evaluated policy, which mean the same."""

from pathlib import Path

from pydantic import Field

from darkroom.train.evaluation.settings import EvaluationSettings, PolicySettings, check_policy
from darkroom.train.runs import TrainError


class AgentSettings(PolicySettings):
    """A model behind an endpoint. ``seed``: where a request brings none."""

    batch_size: int = Field(
        default=32, ge=1, description="Conversations generated at once; of --url, up to four times as many calls."
    )

    def as_evaluation(self) -> EvaluationSettings:
        """The same as an evaluation's settings. Raises ``TrainError`` for settings that contradict one another."""
        if not self.model:
            raise TrainError("name the model to serve: --model FOLDER, or --url URL --model NAME")
        settings = EvaluationSettings(output=Path(), **self.model_dump())
        check_policy(settings)
        return settings
