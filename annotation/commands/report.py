"""The command of a campaign's figures: the report, payments."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from darkroom.annotation.commands.opened import OpenCampaign, open_campaign
from darkroom.pipelines.command_line.console import AsJson, print_json, print_plain

if TYPE_CHECKING:
    from darkroom.annotation.rounds.record_state import RecordState

_DATE = ["%Y-%m-%d"]


def report(
    out: Annotated[
        Path | None, typer.Option(help="Default: report.html or payments.csv in DARKROOM_HOME/annotation.")
    ] = None,
    payments: Annotated[
        bool, typer.Option("--payments", help="Write what everybody did as CSV instead, for payment.")
    ] = False,
    since: Annotated[
        datetime | None, typer.Option(formats=_DATE, help="With --payments: first day (UTC); default: all.")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(formats=_DATE, help="With --payments: the day after the last one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write an HTML report: progress, agreement, planted errors, figures per annotator and over time.

    With --payments write a CSV: submissions by round, accepted records and active hours of everybody, as of the last
    sync. Only valid submissions count; months add up, and no record is counted twice.

    `darkroom annotate report --payments --since 2026-11-01 --until 2026-12-01`
    """
    if (since or until) and not payments:
        raise typer.BadParameter("--since and --until are for --payments")
    with open_campaign() as opened:
        states = [row.state for row in opened.stages().read().records]
        if payments:
            _write_payments(opened, states, out, since, until, as_json)
        else:
            _write_report(opened, states, out, as_json)


def _write_report(opened: OpenCampaign, states: Sequence[RecordState], out: Path | None, as_json: bool) -> None:
    from darkroom.annotation.quality.metrics import measure
    from darkroom.annotation.quality.report import write_report
    from darkroom.annotation.rounds.image_pool import left_out

    workspace, campaign, journal = opened
    quality = measure(states, blocked=journal.blocked_submissions(), people=journal.people().values())
    path = out or workspace.annotation / "report.html"
    write_report(quality, path, title=campaign.name, left_out=left_out(workspace))
    if as_json:
        fields = ("n_items", "until", "funnel", "waiting", "n_accepted", "n_rejected", "n_reworked")
        print_json({"report": path, **{name: getattr(quality, name) for name in fields}})
    else:
        print_plain(f"wrote {path}")


def _write_payments(
    opened: OpenCampaign,
    states: Sequence[RecordState],
    out: Path | None,
    since: datetime | None,
    until: datetime | None,
    as_json: bool,
) -> None:
    from darkroom.annotation.quality.annotators import payments, write_payments

    first, end = (day.date() if day else None for day in (since, until))
    rows = payments(states, opened.journal.people().values(), since=first, until=end)
    path = out or opened.workspace.annotation / "payments.csv"
    write_payments(rows, path)
    if as_json:
        print_json({"payments": path, "people": rows})
    else:
        print_plain(f"wrote {path}: {len(rows):,} people")
