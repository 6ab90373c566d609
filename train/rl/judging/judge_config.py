"""The judge of a training or evaluation: its endpoint, and how it is opened without Dagster.

Votes are on the ledger of the workspace, their cost in its budget pool ``training``. Images from rollouts are stored in
a temporary folder, which is deleted when the judge is closed. A judge belongs to the event loop of its first call.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from darkroom.pipelines.models.policies import OpenAIPolicy, RecordedPolicy
from darkroom.pipelines.models.policies.settings import FAMILY, EndpointSettings
from darkroom.pipelines.records.digest import canonical
from darkroom.pipelines.storage.database import LedgerUnavailable
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.settings import setting
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.errors import raised_as
from darkroom.train.rl.judging.judges import Judges
from darkroom.train.rl.settings import Rubric
from darkroom.train.runs import TrainError

BUDGET_POOL = "training"


class NamedJudge(OpenAIPolicy):
    """A judge behind HTTP; where nothing answers, the error names its option."""

    another = f"name the one to use with --judge-url or {EndpointSettings.variables('DARKROOM_JUDGE')['base_url']}"


class JudgeSettings(EndpointSettings):
    """Endpoint, votes and budget of a judge of rollouts. Its defaults differ from those of a policy that writes."""

    kind: Literal["oracle", "openai", "local"] = setting("", "openai")
    """`openai`; `oracle`: no judge. A policy in its own process (`local`) judges nothing."""
    temperature: float = setting("_TEMPERATURE", 0.1, ge=0)
    """Sampling temperature; at 0 all votes are the same."""
    max_tokens: int = setting("_MAX_TOKENS", 512, ge=1)
    """Token limit of one vote."""
    send_stop: bool = setting("_SEND_STOP", False)
    """Send stop strings, which votes have none of."""
    purse: str = setting("_BUDGET_POOL", BUDGET_POOL, formerly="_PURSE")
    """Name of the budget pool."""

    @classmethod
    def for_training(cls, environment: Mapping[str, str] = os.environ) -> JudgeSettings | None:
        """Read ``DARKROOM_JUDGE``; None for the embedded judge, which cannot read rollouts, and where only a policy in
        its own process is set. Raises ``PolicyUnavailable``, naming the variable, ``TrainError`` without endpoint."""
        settings = cls.from_environment("JUDGE", environment, kind="oracle")
        variables = cls.variables("DARKROOM_JUDGE")
        own_kind = variables["kind"]
        if environment.get(own_kind) == "local":
            raise TrainError(f"{own_kind} is 'local': a judge of rollouts is an endpoint (`darkroom serve` makes one)")
        if settings.kind != "openai":
            return None
        for field in ("base_url", "model"):
            if not getattr(settings, field):
                raise TrainError(f"the judge needs {variables[field]}: set it, or {own_kind}=oracle for no judge")
        return settings.model_copy(update={"purse": settings.purse.replace(FAMILY, BUDGET_POOL)})


class OpenJudge(RecordedPolicy):
    """A judge on the ledger. ``images`` is the store of the images it is shown."""

    def __init__(self, settings: JudgeSettings, workspace: Workspace) -> None:
        ledger = workspace.ledger  # before the folder: it may not open
        self._workspace = workspace
        self._folder = TemporaryDirectory(prefix="judged-")
        self.images = ImageStore(self._folder.name)
        super().__init__(NamedJudge.on_ledger(settings, self.images, ledger, purse=settings.purse), ledger)

    def forget_images(self) -> None:
        """Empty the store, for a training that goes on for days. Not while a question is open."""
        for entry in Path(self._folder.name).iterdir():
            shutil.rmtree(entry)

    async def close(self) -> None:
        await super().close()
        self._workspace.ledger.close()
        self._folder.cleanup()


def open_judge(settings: JudgeSettings, home: Path | None = None) -> OpenJudge:
    """Open a judge on the ledger of the workspace ``home`` (default: ``DARKROOM_HOME``). Raises ``TrainError`` when the
    ledger cannot be opened; ``judges.check_judge`` asks if the judge answers."""
    home_variable = {} if home is None else {"DARKROOM_HOME": str(home)}
    workspace = Workspace.from_environment({**os.environ, **home_variable})
    with raised_as(lambda error: TrainError(f"votes cannot be put on record: {error}"), LedgerUnavailable):
        return OpenJudge(settings, workspace)


def judges_of(url: str, model: str, *, n_votes: int | None = None, rubric: Rubric) -> tuple[Judges, str]:
    """Open the judge, and state all of it that determines its votes, as a text for the checkpoint's inputs. ``n_votes``
    None: as many as the environment says, else one. Raises ``TrainError`` for settings that are no judge's."""
    if bool(url) != bool(model):
        raise TrainError(f"a judge needs --judge-url and --judge-model; found {url!r} and {model!r}")
    settings = JudgeSettings(base_url=url, model=model) if url else JudgeSettings.for_training()
    if settings is None:
        return Judges(), ""
    settings = settings.model_copy(update={"n_votes": n_votes or settings.n_votes})
    judge = open_judge(settings)
    known_as = canonical([settings.model, settings.revision, settings.temperature, settings.n_votes, rubric])
    return Judges(judge, judge.images, n_votes=settings.n_votes, rubric=rubric, forget=judge.forget_images), known_as
