"""Commands of the queues: review, verify, suitability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from darkroom.annotation.commands.opened import open_campaign
from darkroom.pipelines.command_line.console import CONSOLE, print_plain

if TYPE_CHECKING:
    from darkroom.annotation.queues.table_queues import SourceQueue

RowsOption = Annotated[int | None, typer.Option(min=1, help="Size of the seeded sample; default: all.")]


def review(
    rows: Annotated[int, typer.Option(min=1, help="Size of the seeded sample of each family.")] = 20,
    family: Annotated[list[str] | None, typer.Option("--family", help="Only this family; may be repeated.")] = None,
) -> None:
    """Hand out accepted trajectories to experts, and pull their verdicts.

    Rows that experts reject are not published, the card reports their acceptance rate, and `darkroom calibrate`
    measures judges against them (`DARKROOM_HOME/annotation/reviews.jsonl`). Run it again to pull verdicts; a larger
    --rows extends the sample.
    """
    from darkroom.annotation.label_studio.server import connect
    from darkroom.annotation.queues.base import read_verdicts
    from darkroom.annotation.queues.table_queues import REVIEW, ReviewQueue
    from darkroom.pipelines.generation.recipes import load_recipes
    from darkroom.pipelines.publishing.judge_stats import acceptance, read_reviews

    with open_campaign() as (workspace, campaign, journal):
        recipes = [recipe for name, recipe in load_recipes().items() if not family or name in family]
        queue = ReviewQueue(workspace, campaign, journal)
        with connect(workspace) as studio:
            n_tasks = queue.sync(studio, recipes, n_rows=rows)
        queue.materialize(recipes)
        CONSOLE.print(f"handed out: {n_tasks:,}; waiting: {read_verdicts(journal, REVIEW).n_waiting:,}")
        table = Table("family", "reviewed", "accepted", "95 % interval")
        for recipe in recipes:
            share = acceptance(read_reviews(workspace.tables, recipe.family))
            low, high = share.interval
            table.add_row(recipe.family, str(share.of), str(share), f"{low:.0%} to {high:.0%}" if share.of else "–")
        CONSOLE.print(table)


def verify(
    source: Annotated[str, typer.Argument(help="A source imported by `darkroom materialize`.")],
    rows: RowsOption = None,
    disputed: Annotated[bool, typer.Option("--disputed", help="Only rows that `checked_labels` disputed.")] = False,
) -> None:
    """Let people judge whether image, question and answer of a source's samples belong together.

    Run it again to pull verdicts; a larger --rows extends the sample.
    """
    from darkroom.annotation.label_studio.server import connect
    from darkroom.annotation.queues.table_queues import VerificationQueue

    with open_campaign() as (workspace, campaign, journal):
        queue = VerificationQueue(workspace, campaign, journal, source)
        with connect(workspace) as studio:
            if disputed:
                n_tasks, skipped = queue.sync_disputed(studio, queue.disputed())
                print_plain(f"disputed rows without an image, or with a video: {len(skipped):,} skipped")
            else:
                n_tasks = queue.sync(studio, n_rows=rows)
        _print_queue(queue, n_tasks)


def suitability(
    source: Annotated[str, typer.Argument(help="A source imported by `darkroom materialize`.")],
    rows: RowsOption = None,
    category: Annotated[str, typer.Option(help="Only problems of this category; default: all.")] = "",
) -> None:
    """Let people judge whether a drawing would help with a source's maths problems, without the models' votes.

    Run it again to pull labels; a larger --rows extends the sample. `DARKROOM_HOME/annotation/suitability.jsonl` holds
    the labels. From 20 on, the command reports how well the models' vote agrees with people (kappa).
    """
    from darkroom.annotation.label_studio.server import connect
    from darkroom.annotation.queues.table_queues import SuitabilityQueue
    from darkroom.pipelines.verification.judges.calibration import CalibrationError

    with open_campaign() as (workspace, campaign, journal):
        queue = SuitabilityQueue(workspace, campaign, journal, source, category)
        with connect(workspace) as studio:
            n_tasks = queue.sync(studio, n_rows=rows)
        _print_queue(queue, n_tasks)
        try:
            vote = queue.agreement()
        except CalibrationError as error:
            print_plain(f"the models' vote against people: {error}")
        else:
            print_plain(f"the models' vote against {vote.n_labels} labels of people: kappa {vote.kappa}")


def _print_queue(queue: SourceQueue, n_tasks: int) -> None:
    from darkroom.annotation.queues.base import read_verdicts

    queue.materialize()
    n_waiting = read_verdicts(queue.journal, queue.round).n_waiting
    summary = ", ".join(f"{verdict} {n:,}" for verdict, n in sorted(queue.counts().items())) or "no verdict yet"
    print_plain(f"handed out: {n_tasks:,}; waiting: {n_waiting:,}; {summary}")
