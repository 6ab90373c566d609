"""Where a training's figures are reported beside Darkroom's own pages: the trackers that transformers knows.

What is trained does not depend on it, so it is no part of a checkpoint's inputs.
"""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from darkroom.train.runs import TrainError

VARIABLE = "DARKROOM_REPORT_TO"
TRACKERS = ("trackio", "wandb", "tensorboard", "mlflow", "swanlab")
"""By the names of their packages."""
ReportTo = Annotated[
    str,
    typer.Option(
        "--report-to",
        envvar=VARIABLE,
        help=f"Trackers that get every step's figures, separated by commas: {', '.join(TRACKERS)}. Each has "
        "settings of its own in the environment (WANDB_PROJECT, …).",
    ),
]


def choose_trackers(names: str, output: Path) -> None:
    """Chooses the trackers of this process's training. Raises ``TrainError`` as ``trackers`` does."""
    os.environ[VARIABLE] = names
    if "tensorboard" in trackers():
        # transformers' own default is a folder below the one where this is run
        os.environ.setdefault("TENSORBOARD_LOGGING_DIR", str(output.parent / "tensorboard" / output.name))


def trackers() -> list[str]:
    """The trackers of this training. Raises ``TrainError`` for one that is unknown or not installed."""
    names = [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip() not in ("", "none")]
    for name in names:
        if name not in TRACKERS:
            raise TrainError(f"--report-to {name}: there are {', '.join(TRACKERS)}")
        if find_spec(name) is None:
            raise TrainError(f"--report-to {name} needs its package: pip install {name}")
    return names
