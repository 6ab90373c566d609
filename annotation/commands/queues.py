"""Commands of the queues of single verdicts: review, verify, suitability."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from annotation.commands.terminal import CONSOLE, open_workspace

if TYPE_CHECKING:
    from annotation.handover import Synced

RowsOption = Annotated[int | None, typer.Option(min=1, help="So many, chosen by the campaign's seed; default: all.")]


def review(
    rows: Annotated[int, typer.Option(min=1, help="Of each family, chosen by the campaign's seed.")] = 20,
    family: Annotated[
        list[str] | None, typer.Option("--family", help="Only this family; can be repeated. Default: all.")
    ] = None,
) -> None:
    """Hand accepted trajectories out to experts, and take their verdicts in.

    What experts reject is left out when the datasets ship, the card says how many they accept, and
    `darkroom calibrate` measures judges against them (<home>/annotation/reviews.jsonl). Run it again to take verdicts
    in; more --rows later keep what was chosen.
    """
    from annotation.campaign import Campaign
    from annotation.connection import connect
    from annotation.journal import Journal
    from annotation.queues import read_verdicts
    from annotation.review import ROUND, ReviewQueue
    from pipelines.recipes import load_recipes
    from pipelines.reviews import acceptance, read_reviews

    with open_workspace() as workspace, Journal(workspace.annotation) as journal:
        recipes = [recipe for name, recipe in load_recipes().items() if not family or name in family]
        queue = ReviewQueue(workspace, Campaign.load(workspace.annotation), journal)
        with connect(workspace) as studio:
            synced = queue.sync(studio, recipes, n_rows=rows)
        queue.materialize(recipes)
        CONSOLE.print(
            f"went out: {sum(synced.imported.values()):,}; waiting: {read_verdicts(journal, ROUND).n_waiting:,}"
        )
        table = Table("family", "reviewed", "accepted", "95 % interval")
        for recipe in recipes:
            share = acceptance(read_reviews(workspace.tables, recipe.family))
            low, high = share.interval
            table.add_row(recipe.family, str(share.of), str(share), f"{low:.0%} to {high:.0%}" if share.of else "–")
        CONSOLE.print(table)


def verify(
    source: Annotated[str, typer.Argument(help="Whose samples; `darkroom materialize` took them in.")],
    rows: RowsOption = None,
    disputed: Annotated[
        bool, typer.Option("--disputed", help="Those whose labels `checked_labels` found disputed, instead.")
    ] = False,
) -> None:
    """Have people say whether image, question and answer of a source's samples belong together.

    Run it again to take verdicts in; more --rows later keep what was chosen.
    """
    from annotation.campaign import Campaign
    from annotation.connection import connect
    from annotation.journal import Journal
    from annotation.queues import read_verdicts
    from annotation.verification import ROUND, VerificationQueue

    with open_workspace() as workspace, Journal(workspace.annotation) as journal:
        queue = VerificationQueue(workspace, Campaign.load(workspace.annotation), journal, source)
        with connect(workspace) as studio:
            if disputed:
                synced, left_out = queue.sync_disputed(studio, queue.disputed())
                CONSOLE.print(f"disputed without an image, left out: {len(left_out):,}", highlight=False)
            else:
                synced = queue.sync(studio, n_rows=rows)
        queue.materialize()
        _print_queue(synced, read_verdicts(journal, ROUND).n_waiting, queue.counts())


def suitability(
    source: Annotated[str, typer.Argument(help="Whose problems; `darkroom materialize` took them in.")],
    rows: RowsOption = None,
    category: Annotated[str, typer.Option(help="Only problems of this category; default: all.")] = "",
) -> None:
    """Have people say whether a drawing would help with a source's maths problems, blind to what models voted.

    Run it again to take in what they said; more --rows later keep what was chosen. <home>/annotation/suitability.jsonl
    holds their words as labels. With 20 of them it says how far the models' vote agrees, beyond chance.
    """
    from annotation.campaign import Campaign
    from annotation.connection import connect
    from annotation.journal import Journal
    from annotation.queues import read_verdicts
    from annotation.suitability import ROUND, SuitabilityQueue
    from pipelines.judges.calibration import CalibrationFault

    with open_workspace() as workspace, Journal(workspace.annotation) as journal:
        queue = SuitabilityQueue(workspace, Campaign.load(workspace.annotation), journal, source, category)
        with connect(workspace) as studio:
            synced = queue.sync(studio, n_rows=rows)
        queue.materialize()
        _print_queue(synced, read_verdicts(journal, ROUND).n_waiting, queue.counts())
        try:
            found = queue.agreement()
        except CalibrationFault as fault:
            CONSOLE.print(f"the vote against people: {fault}", highlight=False)
        else:
            CONSOLE.print(f"the vote against {found.n_labels} labels of people: kappa {found.kappa}", highlight=False)


def _print_queue(synced: Synced, n_waiting: int, counts: Counter[str]) -> None:
    said = ", ".join(f"{verdict} {n:,}" for verdict, n in sorted(counts.items())) or "no verdict yet"
    CONSOLE.print(f"went out: {sum(synced.imported.values()):,}; waiting: {n_waiting:,}; {said}", highlight=False)
