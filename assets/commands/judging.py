"""The command that measures a judge against people."""

from pathlib import Path
from typing import Annotated

import typer

from assets.commands.faults import CONSOLE, faults_as_messages


def calibrate(
    judge: Annotated[str, typer.Argument(help="The check whose judge it is: consistency, judge_effective, …")],
    labelled: Annotated[
        Path, typer.Option(help="JSON lines with people's verdicts; what a line holds is below.", dir_okay=False)
    ],
    precision: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Choose the lowest threshold with this precision; default: by majority."),
    ] = None,
    votes: Annotated[
        int | None, typer.Option(min=1, help="Votes per row; default: as the settings of the judge say.")
    ] = None,
) -> None:
    """Measure a judge against people, and set the threshold from which on it says yes.

    A line is `{"row": "<trajectory_id>", "family": "direct", "check": "consistency", "verdict": "accept", "reviewer":
    "mia", "reason": ""}`; row may be the row of a source too (demo:photo/cat). A line that brings `question`,
    `choices`, `expected`, `thought` and `answer` itself needs no row. The judge is the one that DARKROOM_JUDGE names;
    its votes are on the ledger, so that a second run pays for nothing. The result is
    DARKROOM_HOME/calibrations/JUDGE.json: families use the threshold when their verdicts are next materialised, and
    their cards say how far the judge is to be trusted.

    `darkroom calibrate consistency --labelled reviewed.jsonl --precision 0.95 --votes 5`
    """
    from assets.calibration import print_calibration
    from assets.replaying import progress_bar
    from assets.resources import PolicyResource
    from pipelines.labelled_rows import calibrate_judge
    from pipelines.workspace import Workspace

    with faults_as_messages(), Workspace.from_environment() as workspace:
        settings = PolicyResource.from_settings("JUDGE")
        with progress_bar(CONSOLE, "rows") as progress:
            found = calibrate_judge(
                workspace,
                judge,
                labelled,
                policy=settings.for_judging("calibration", workspace),
                n_votes=votes or settings.n_votes,
                target_precision=precision,
                progress=progress,
            )
        print_calibration(CONSOLE, found)
