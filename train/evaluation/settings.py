"""What an evaluation is: who is asked what, how, and what is looked at besides the answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipelines.protocols import PROTOCOLS
from pipelines.splits import SPLITS
from train.faults import TrainFault

WHOLE_SHARE = 0.8
"""Who shows more than this of a picture has chosen no region (as ``pipelines.change.PART_SHARE``)."""
COVER = 0.5
"""A crop shows a target of whose box it shows at least this share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One evaluation. Who: ``model`` alone is a checkpoint folder, with ``url`` a name at that endpoint; or ``oracle``,
    a family whose oracle writes from the truth. What: ``datasets``, ``benchmarks`` (name and path), ``sources``."""

    output: Path
    model: str = ""
    url: str = ""
    oracle: str = ""
    datasets: tuple[Path, ...] = ()
    split: str = "validation"
    benchmarks: tuple[tuple[str, Path], ...] = ()
    sources: tuple[str, ...] = ()
    limit: int | None = None
    protocol: str = "thyme"
    mode: str = "free"
    rollouts: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 1024
    max_rounds: int = 6
    max_pixels: int | None = None
    batch_size: int = 8
    seed: int = 0
    judge_url: str = ""
    judge_model: str = ""
    judge_votes: int = 1
    whole_share: float = WHOLE_SHARE
    cover: float = COVER
    controls: int = 0
    """So many rollouts that showed a picture are played again under every control."""
    shown: int = 24
    """Rollouts in the gallery."""
    home: Path | None = None

    def as_json(self) -> dict[str, Any]:
        """What determines the results, besides what the policy and the questions are."""
        left_out = ("output", "home", "batch_size", "model", "datasets", "benchmarks")
        return {name: value for name, value in asdict(self).items() if name not in left_out}


def check(settings: Settings) -> None:
    """Raises ``TrainFault`` for settings that contradict one another, before anything is opened."""
    if bool(settings.oracle) == bool(settings.model):
        raise TrainFault(
            "who is evaluated? Give --model FOLDER, --url URL --model NAME, or --oracle FAMILY: one of them"
        )
    if settings.url and not settings.model:
        raise TrainFault("an endpoint serves several models: name one with --model")
    if not (settings.datasets or settings.benchmarks or settings.sources):
        raise TrainFault("what is asked? Give --dataset FOLDER, --benchmark NAME=PATH or --source NAME")
    if settings.rollouts > 1 and settings.temperature == 0 and not settings.oracle:
        raise TrainFault(
            f"{settings.rollouts} rollouts at temperature 0 are the same rollout {settings.rollouts} times; "
            "set --temperature above 0, or --rollouts 1"
        )
    if settings.protocol not in PROTOCOLS or settings.mode not in PROTOCOLS[settings.protocol].modes:
        known = "; ".join(f"{name}: {', '.join(protocol.modes)}" for name, protocol in PROTOCOLS.items())
        raise TrainFault(f"no mode {settings.mode!r} of protocol {settings.protocol!r}; there are {known}")
    if settings.split not in (*SPLITS, "all"):
        raise TrainFault(f"no split {settings.split!r}; there are {', '.join(SPLITS)} and all")
    if bool(settings.judge_url) != bool(settings.judge_model):
        raise TrainFault("a judge needs both --judge-url and --judge-model")
