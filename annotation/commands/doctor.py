"""The command that compares the journal with the server."""

from typing import Annotated

import typer

from darkroom.annotation.commands import open_campaign
from darkroom.annotation.commands.head_count import print_shortages
from darkroom.pipelines.command_line.console import CONSOLE


def doctor(
    repair: Annotated[
        bool, typer.Option("--repair", help="Hand missing work out again, and mend what differs.")
    ] = False,
) -> None:
    """Compare the campaign with the server: missing, foreign and changed tasks, projects and people.

    Exits with 1 if something differs. With --repair the next `darkroom annotate sync` hands unfinished work out again;
    what was submitted is kept in any case.
    """
    from darkroom.annotation.label_studio.server import connect
    from darkroom.annotation.rounds.doctor import Doctor

    with open_campaign() as (workspace, campaign, journal), connect(workspace) as studio:
        examiner = Doctor(journal, studio)
        with CONSOLE.status("comparing the journal with the server …"):
            report = examiner.examine()
        for sentence in report.sentences:
            CONSOLE.print(sentence, highlight=False, soft_wrap=True)
        print_shortages(campaign, studio)
        if not report.sentences:
            CONSOLE.print("the server has what the journal has")
            return
        if not repair:
            raise typer.Exit(1)
        examiner.repair(report)
        CONSOLE.print("repaired; `darkroom annotate sync` hands out what is missing", highlight=False)
