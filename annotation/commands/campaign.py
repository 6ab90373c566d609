"""Commands of a campaign: init, sync, doctor, report."""

from __future__ import annotations

import time
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from darkroom.annotation.commands.opened import OpenCampaign, open_campaign, preview_of, print_progress, print_shortages
from darkroom.pipelines.command_line import console
from darkroom.pipelines.storage.atomic_write import write_whole

if TYPE_CHECKING:
    from darkroom.pipelines.storage.workspace import Workspace

MAX_NAMED = 20
"""Unsuitable images in a message of ``sync``; the report lists more."""


def init(
    example: Annotated[bool, typer.Option("--example", help="With 20 images, to try it without your own.")] = False,
) -> None:
    """Write an example campaign to edit."""
    from darkroom.annotation.rounds.campaign import EXAMPLE, FILE, TRIAL, Campaign
    from darkroom.annotation.rounds.image_pool import write_trial_images

    with console.open_workspace() as workspace:
        path = workspace.annotation / FILE
        if path.exists():
            raise typer.BadParameter(f"{path} exists already")
        path.parent.mkdir(parents=True, exist_ok=True)
        if example:
            with console.CONSOLE.status("images …"):
                n_images = write_trial_images(workspace)
            Campaign.write(TRIAL, path)
            console.CONSOLE.print(f"wrote {path} and {n_images} images; next: `darkroom annotate sync`", soft_wrap=True)
            return
        Campaign.write(EXAMPLE, path)
        console.CONSOLE.print(f"wrote {path}; next: put images there, then `darkroom annotate sync`", soft_wrap=True)


def sync(
    every: Annotated[float | None, typer.Option(min=1, help="Repeat after this many seconds.")] = None,
    reset_forms: Annotated[bool, typer.Option("--reset-forms", help="Restore the forms of the projects.")] = False,
    recreate: Annotated[bool, typer.Option("--recreate", help="Recreate projects that the server lost.")] = False,
    dry_run: console.DryRun = False,
) -> None:
    """Pull submissions and hand out the next tasks.

    Can be interrupted at any time; nothing is imported twice. Dagster's sensor does the same. With --every it also adds
    new images, and waits for a server that is down. Changed rules of the campaign apply to tasks handed out afterwards;
    --dry-run counts them.
    """
    if dry_run:
        with open_campaign() as opened:
            for sentence in preview_of(opened).sentences():
                console.print_plain(sentence)
        console.print_plain("nothing was pulled or changed; images as of the last sync")
        return
    from darkroom.annotation import ServerUnreachable
    from darkroom.annotation.label_studio.server import note_act
    from darkroom.annotation.rounds.campaign import Campaign
    from darkroom.annotation.rounds.journal import Journal

    with console.open_workspace() as workspace, Journal(workspace.annotation) as journal:
        while True:
            try:
                campaign = Campaign.load(workspace.annotation)  # its images may have changed
                _sync_once(OpenCampaign(workspace, campaign, journal), reset_forms=reset_forms, recreate=recreate)
                if reset_forms or recreate:
                    note_act(workspace, f"sync{' --reset-forms' * reset_forms}{' --recreate' * recreate}")
            except ServerUnreachable as error:
                if every is None:
                    raise
                console.print_plain(f"[bold red]waiting:[/bold red] {error}")
            else:
                reset_forms = recreate = False
            if every is None:
                return
            time.sleep(every)


def _sync_once(opened: OpenCampaign, *, reset_forms: bool, recreate: bool) -> None:
    from darkroom.annotation.label_studio.server import connect, note_act
    from darkroom.annotation.rounds.campaign import require_experts
    from darkroom.annotation.rounds.image_pool import POOL, materialize_pool
    from darkroom.annotation.rounds.practice import exchange_practice
    from darkroom.annotation.rounds.pre_annotations import read_predictions
    from darkroom.annotation.rounds.sync import Sync, pulled_since
    from darkroom.pipelines.records import PoolImage

    workspace, campaign, journal = opened
    with console.CONSOLE.status("images …") as line:
        report = materialize_pool(
            workspace, campaign, workspace.annotation, progress=lambda n, of: line.update(f"images {n:,} of {of:,}")
        )
    if not report.reused:
        console.CONSOLE.print(f"pool: {report.n_out:,} images, {report.n_rejected + report.n_quarantined:,} rejected")
        _print_left_out(workspace)
    pool, before = workspace.tables.read(POOL, PoolImage), journal.last_version
    with connect(workspace) as studio:
        if not journal.rounds():
            require_experts(campaign, studio.accounts())
        exchange_practice(workspace, campaign, journal, studio)  # before the first tasks are there
        drafts, note = read_predictions(workspace, pool), partial(note_act, workspace)
        run = Sync(journal, studio, campaign, drafts, say=console.CONSOLE.print, note=note)
        handed_out = run.run(pool, reset_forms=reset_forms, recreate=recreate)
        print_shortages(campaign, studio)
    imported = ", ".join(f"{n:,} × {round}" for round, n in handed_out.items()) or "nothing"
    console.print_plain(f"received: {pulled_since(journal, before)}; handed out: {imported}")
    print_progress(journal)


def _print_left_out(workspace: Workspace) -> None:
    from darkroom.annotation.rounds.image_pool import POOL, left_out

    rejects = left_out(workspace)
    for entry in rejects[:MAX_NAMED]:
        console.print_line(f"  {entry.source_row}: {entry.reason}, {entry.evidence}")
    if len(rejects) > MAX_NAMED:
        console.print_plain(f"  … and {len(rejects) - MAX_NAMED:,} more: {workspace.tables.rejects_path(POOL)}")


def _print_guide(out: Path | None, language: str | None) -> None:
    from darkroom.annotation.label_studio.forms import GUIDES, guide_text
    from darkroom.annotation.rounds.campaign import Campaign

    with console.open_workspace() as workspace:
        campaign = Campaign.load(workspace.annotation)
    chosen = language or campaign.language
    if chosen not in GUIDES:
        raise typer.BadParameter(f"there is no guide in {chosen!r}; choose from {', '.join(GUIDES)}")
    text = guide_text(chosen, campaign.max_share, campaign.max_rework)
    if out is None:
        typer.echo(text)
    else:
        out.write_text(text, encoding="utf-8")


def _print_audit(as_json: bool) -> None:
    from darkroom.annotation.label_studio.server import connect

    with console.open_workspace() as workspace, connect(workspace) as studio:
        acts = list(studio.audit())
    if as_json:
        console.print_json(acts)
    for act in () if as_json else acts:
        console.print_line("  ".join(str(act[name]) for name in ("at", "who", "request", "status", "note")).rstrip())


def doctor(
    repair: Annotated[bool, typer.Option("--repair", help="Hand missing work out again, repair what differs.")] = False,
    as_json: console.AsJson = False,
) -> None:
    """Compare the campaign with the server: missing, foreign and changed tasks, projects and people.

    Exits with 1 if something differs. With --repair the next `darkroom annotate sync` hands unfinished work out again;
    submissions are kept in any case.
    """
    from darkroom.annotation.label_studio.server import connect, note_act
    from darkroom.annotation.rounds.campaign import shortages
    from darkroom.annotation.rounds.doctor import Doctor

    with open_campaign() as (workspace, campaign, journal), connect(workspace) as studio:
        examiner = Doctor(journal, studio)
        with console.PROGRESS.status("comparing the journal with the server …"):
            report = examiner.examine()
        differences, is_repaired = report.sentences, bool(repair and report.sentences)
        if is_repaired:
            examiner.repair(report)
            note_act(workspace, f"doctor --repair of {'; '.join(differences)}")
        if as_json:
            too_few = list(shortages(campaign, studio.accounts()).values())
            console.print_json({"differences": differences, "too_few": too_few, "repaired": is_repaired})
        else:
            for sentence in differences:
                console.print_plain(sentence)
            print_shortages(campaign, studio)
            if not differences:
                console.print_plain("the server has what the journal has")
            elif is_repaired:
                console.print_plain("repaired; `darkroom annotate sync` hands out what is missing")
        if differences and not is_repaired:
            raise typer.Exit(1)


_DATE = ["%Y-%m-%d"]


def report(
    out: Annotated[
        Path | None, typer.Option(help="Default: report.html or payments.csv in DARKROOM_HOME/annotation.")
    ] = None,
    payments: Annotated[bool, typer.Option("--payments", help="Write what everybody did as CSV, for payment.")] = False,
    since: Annotated[datetime | None, typer.Option(formats=_DATE, help="With --payments: the first day (UTC).")] = None,
    until: Annotated[datetime | None, typer.Option(formats=_DATE, help="With --payments: day after the last.")] = None,
    guide: Annotated[bool, typer.Option("--guide", help="Print the annotators' guide, which projects show.")] = False,
    language: Annotated[str | None, typer.Option(help="With --guide: en, de, es, zh; default: the campaign's.")] = None,
    audit: Annotated[bool, typer.Option("--audit", help="Print what administrators did, from the server.")] = False,
    every: Annotated[
        float | None, typer.Option(min=1, help="Write the page again after this many seconds; an open one follows.")
    ] = None,
    as_json: console.AsJson = False,
) -> None:
    """Write an HTML report: what to do, forecast, cost, progress, agreement, figures per annotator and over time.

    --json prints all figures of the page. --payments writes a CSV: submissions by round, accepted records, active hours
    and amounts, as of the last sync. Only valid submissions count; months add up, no record is counted twice.

    `darkroom annotate report --payments --since 2026-11-01 --until 2026-12-01`
    """
    if (since or until) and not payments:
        raise typer.BadParameter("--since and --until are for --payments")
    if guide:
        _print_guide(out, language)
        return
    if audit:
        _print_audit(as_json)
        return
    from darkroom.annotation.quality.annotators import payments as payment_rows, with_amounts, write_payments
    from darkroom.annotation.quality.metrics import measure
    from darkroom.annotation.quality.report import render, to_json
    from darkroom.annotation.rounds.image_pool import left_out
    from darkroom.annotation.rounds.practice import practice_results
    from darkroom.annotation.rounds.tables import AnnotationStages

    while True:
        with console.open_workspace() as workspace, AnnotationStages.of_workspace(workspace) as stages:
            campaign, journal = stages.campaign, stages.journal
            states, people = [row.state for row in stages.read().records], journal.people().values()
            path = out or workspace.annotation / ("payments.csv" if payments else "report.html")
            if payments:
                first, end = (day.date() if day else None for day in (since, until))
                rows = list(with_amounts(payment_rows(states, people, since=first, until=end), campaign.rates))
                write_payments(rows, path)
                facts: dict[str, object] = {"payments": path, "people": rows}
            else:
                projects = filter(None, map(journal.project, journal.rounds()))
                pulled, blocked = max((p.watermark for p in projects), default=""), journal.blocked_submissions()
                quality = measure(states, blocked=blocked, people=people, campaign=campaign, as_of=pulled)
                practice = list(practice_results(journal.practice(), people, campaign))
                more: dict[str, list[Any]] = {"left_out": left_out(workspace), "practice": practice}
                write_whole(path, render(quality, title=campaign.name, every=every or 0, **more))
                facts = {"report": path, **to_json(quality), "practice": to_json(practice)}
            if as_json:
                console.print_json(facts)
            else:
                console.print_plain(f"wrote {path}" + (f": {len(rows):,} people" if payments else ""))
        if every is None:
            return
        time.sleep(every)
