"""``darkroom calibrate`` and ``annotate pre-annotate``: commands that call a model on human-labelled work."""

from pathlib import Path
from typing import Annotated

import typer

from darkroom.assets.terminal.progress import progress_bar
from darkroom.pipelines.command_line.console import CONSOLE, open_workspace, print_line


def calibrate(
    judge: Annotated[str, typer.Argument(help="The check that the judge decides: consistency, judge_effective, …")],
    labelled: Annotated[
        Path, typer.Option(help="JSON lines with human verdicts, in the format shown above.", dir_okay=False)
    ],
    precision: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Choose the lowest threshold with this precision; default: by majority."),
    ] = None,
    votes: Annotated[int | None, typer.Option(min=1, help="Votes per row; default: the judge's settings.")] = None,
) -> None:
    """Calibrate a judge against human labels and choose its decision threshold.

    A line is `{"row": "<trajectory_id>", "family": "direct", "check": "consistency", "verdict": "accept", "reviewer":
    "mia", "reason": ""}`; row may also be the row of a source (demo:photo/cat). A line with its own `question`,
    `choices`, `expected`, `thought` and `answer` needs no row. The judge is the endpoint of DARKROOM_JUDGE; its votes
    are stored in the ledger, so that a second run costs nothing. The result is DARKROOM_HOME/calibrations/JUDGE.json:
    families apply the threshold when their verdicts are next materialised, and dataset cards report the judge's
    precision, recall and kappa.

    `darkroom calibrate consistency --labelled reviewed.jsonl --precision 0.95 --votes 5`
    """
    from darkroom.assets.graph.resources import PolicyResource
    from darkroom.assets.terminal.reports import print_calibration
    from darkroom.pipelines.generation.judge_calibration import calibrate_judge

    with open_workspace() as workspace:
        settings = PolicyResource.from_environment("JUDGE")
        with progress_bar("rows") as progress:
            calibration = calibrate_judge(
                workspace,
                judge,
                labelled,
                policy=settings.for_judging("calibration", workspace),
                n_votes=votes or settings.n_votes,
                target_precision=precision,
                progress=progress,
            )
        print_calibration(CONSOLE, calibration)


def pre_annotate() -> None:
    """Have a model write draft annotations for annotators to correct.

    Needs `pre_annotate: pixels` (or `thousandths`: the frame of the model's boxes) in the campaign, and the endpoint in
    DARKROOM_POLICY, DARKROOM_POLICY_URL and DARKROOM_POLICY_MODEL. Drafts that break the campaign's rules are rejected;
    the next `darkroom annotate sync` shows the others, marked as written by a model. Answers are stored in the ledger
    and paid for once.
    """
    from darkroom.annotation.rounds.campaign import Campaign
    from darkroom.annotation.rounds.image_pool import materialize_pool
    from darkroom.annotation.rounds.pre_annotations import materialize_pre_annotations
    from darkroom.assets.graph.resources import PolicyResource

    with open_workspace() as workspace:
        campaign = Campaign.load(workspace.annotation)
        policy = PolicyResource.from_environment().for_pre_annotating(workspace)
        materialize_pool(workspace, campaign, workspace.annotation)
        with progress_bar("pre-annotations") as progress:
            report = materialize_pre_annotations(workspace, campaign, policy, progress=progress)
        print_line(f"{report.n_out:,} pre-annotations, {report.n_in - report.n_out:,} rejected")
        for reason, n_rejects in report.reasons.items():
            print_line(f"  {reason} {n_rejects:,}")
