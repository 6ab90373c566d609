"""Commands of a campaign's figures: report, payments."""

from datetime import date, datetime
from pathlib import Path
from typing import Annotated

import typer

from darkroom.annotation.commands import open_campaign
from darkroom.pipelines.command_line.console import CONSOLE


def report(
    out: Annotated[Path | None, typer.Option(help="Default: DARKROOM_HOME/annotation/report.html.")] = None,
) -> None:
    """Write an HTML report: progress, agreement, planted errors, figures per annotator and over time."""
    from darkroom.annotation.quality.metrics import measure
    from darkroom.annotation.quality.report import write_report
    from darkroom.annotation.rounds.image_pool import left_out

    with open_campaign() as opened:
        workspace, campaign, journal = opened
        states = [row.state for row in opened.stages().read().records]
        quality = measure(states, blocked=journal.blocked_submissions(), people=journal.people().values())
        path = out or workspace.annotation / "report.html"
        write_report(quality, path, title=campaign.name, left_out=left_out(workspace))
        CONSOLE.print(f"wrote {path}", highlight=False, soft_wrap=True)


_DATE = ["%Y-%m-%d"]


def payments(
    out: Annotated[Path | None, typer.Option(help="Default: DARKROOM_HOME/annotation/payments.csv.")] = None,
    since: Annotated[datetime | None, typer.Option(formats=_DATE, help="First day (UTC); default: all.")] = None,
    until: Annotated[datetime | None, typer.Option(formats=_DATE, help="The day after the last one.")] = None,
) -> None:
    """Write what everybody did as CSV, for payment: submissions by round, accepted records, active hours.

    As of the last sync; only valid submissions count. Months add up, and no record is counted twice.

    `darkroom annotate payments --since 2026-11-01 --until 2026-12-01`
    """
    from darkroom.annotation.quality.annotators import payments as work_of
    from darkroom.annotation.quality.annotators import write_payments

    with open_campaign() as opened:
        states = [row.state for row in opened.stages().read().records]
        people = opened.journal.people().values()
        rows = work_of(states, people, since=_day(since), until=_day(until))
        path = out or opened.workspace.annotation / "payments.csv"
        write_payments(rows, path)
        CONSOLE.print(f"wrote {path}: {len(rows):,} people", highlight=False, soft_wrap=True)


def _day(at: datetime | None) -> date | None:
    return at.date() if at else None
