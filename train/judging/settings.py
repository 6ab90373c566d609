"""A judge for a training program: where it answers, and how it is opened without Dagster.

    settings = JudgeSettings.from_environment()                 # DARKROOM_JUDGE…, or None where nobody judges
    judge = open_judge(settings, home)
    picture = judge.pictures.add_pixels(crop)
    await evidence(question, picture, judge, n_votes=settings.n_votes)
    await judge.close()

Votes are on the ledger of the workspace, and what they cost in its purse ``training``. Pictures that rollouts made lie
in a folder of their own, which is gone when the judge is closed. A judge belongs to the event loop that first asked it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from pipelines.database import LedgerUnavailable
from pipelines.images import ImageStore
from pipelines.policies import Account, Budget, Endpoint, OpenAIPolicy, PolicyUnavailable, Purse, RecordedPolicy
from pipelines.policies.variables import FAMILY, role_settings
from pipelines.workspace import Workspace
from train.faults import TrainFault

PURSE = "training"


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Where a judge answers, how it is asked, and what it may cost. All fields can be part of a checkpoint's inputs."""

    url: str
    """OpenAI-compatible endpoint, with /v1."""
    model: str
    key_variable: str = "OPENAI_API_KEY"
    """NAME of the environment variable with the key."""
    n_votes: Annotated[int, Field(ge=1)] = 1
    temperature: Annotated[float, Field(ge=0)] = 0.1
    """Of several votes at 0 each is the first."""
    max_tokens: Annotated[int, Field(ge=1)] = 512
    max_pixels: int | None = None
    """Larger pictures are reduced before they are sent."""
    revision: str = ""
    concurrency: Annotated[int, Field(ge=1)] = 32
    send_stop: bool = False
    send_schema: bool = True
    send_n: bool = True
    usd_per_million_prompt_tokens: Annotated[float, Field(ge=0)] = 0.0
    usd_per_million_completion_tokens: Annotated[float, Field(ge=0)] = 0.0
    budget_usd: float | None = None
    budget_tokens: int | None = None
    budget_hours: float | None = None
    purse: str = PURSE

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> JudgeSettings | None:
        """``DARKROOM_JUDGE`` and the variables that begin with it, else those of ``DARKROOM_POLICY``; None for the
        embedded judge, which knows no rollouts.

        Raises ``TrainFault``, naming the variable, for a value that cannot be one.
        """
        try:
            given = role_settings("JUDGE", environment)
        except PolicyUnavailable as fault:
            raise TrainFault(str(fault)) from fault
        if given.kind == "oracle":
            return None
        for field, ending in (("base_url", "URL"), ("model", "MODEL")):
            if field not in given.values:
                raise TrainFault(f"the judge needs {given.prefix}_{ending}: set it, or {given.prefix}=oracle for none")
        values = {"url" if field == "base_url" else field: value for field, value in given.values.items()}
        values["purse"] = values.get("purse", FAMILY).replace(FAMILY, PURSE)
        try:
            return TypeAdapter(cls).validate_python(values)
        except ValidationError as fault:
            raise TrainFault(str(given.unreadable(fault))) from fault

    @property
    def endpoint(self) -> Endpoint:
        """As policies know it."""
        return Endpoint(
            self.url,
            self.model,
            key_variable=self.key_variable,
            revision=self.revision,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            send_stop=self.send_stop,
            send_schema=self.send_schema,
            send_n=self.send_n,
            concurrency=self.concurrency,
            usd_per_million_prompt_tokens=self.usd_per_million_prompt_tokens,
            usd_per_million_completion_tokens=self.usd_per_million_completion_tokens,
            max_pixels=self.max_pixels,
        )


class OpenJudge(RecordedPolicy):
    """A judge on the ledger. ``pictures`` is the store of what it is shown; ``spent`` is what this process paid."""

    def __init__(self, settings: JudgeSettings, workspace: Workspace) -> None:
        budget = Budget(usd=settings.budget_usd, tokens=settings.budget_tokens, hours=settings.budget_hours)
        purse = Purse(budget, account=Account(workspace.ledger, settings.purse))
        self._workspace = workspace
        self._folder = TemporaryDirectory(prefix="judged-")
        self.pictures = ImageStore(self._folder.name)
        super().__init__(OpenAIPolicy(settings.endpoint, self.pictures, purse=purse), workspace.ledger)

    def forget_pictures(self) -> None:
        """Empties the store, for a training that goes on for days. Not while a question is open."""
        for entry in Path(self._folder.name).iterdir():
            shutil.rmtree(entry)

    async def close(self) -> None:
        """Closes connections and ledger, and deletes the pictures."""
        await super().close()
        self._workspace.ledger.close()
        self._folder.cleanup()


def open_judge(settings: JudgeSettings, home: Path | None = None) -> OpenJudge:
    """A judge on the ledger of the workspace ``home`` (default: ``DARKROOM_HOME``).

    Raises ``TrainFault`` when the ledger cannot be opened; whether the judge answers, ``judges.check_judge`` says.
    """
    placed = {} if home is None else {"DARKROOM_HOME": str(home)}
    workspace = Workspace.from_environment({**os.environ, **placed})
    try:
        return OpenJudge(settings, workspace)
    except LedgerUnavailable as fault:
        raise TrainFault(f"votes cannot be put on record: {fault}") from fault
