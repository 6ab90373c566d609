"""Commands of accounts: users add, list, remove, password."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from darkroom.annotation import AnnotationError
from darkroom.annotation.commands.opened import open_campaign, preview_of, print_shortages
from darkroom.pipelines.command_line.console import CONSOLE, AsJson, DryRun, open_workspace, print_json, print_plain

EmailsArgument = Annotated[list[str], typer.Argument(help="E-mail addresses.")]
PasswordOption = Annotated[
    str | None, typer.Option(help="Default: a new one for each account, which is printed.", show_default=False)
]


def add_users(
    emails: EmailsArgument,
    role: Annotated[
        Literal["annotator", "checker", "expert"],
        typer.Option(help="annotator: writes and checks; checker: only checks; expert: accepts and reviews."),
    ] = "annotator",
    password: PasswordOption = None,
    dry_run: DryRun = False,
) -> None:
    """Create accounts, change the role of existing ones (their password is kept), or let removed ones come back.

    Another role applies to tasks handed out afterwards; what was submitted keeps counting.

    `darkroom annotate users add ann@example.com bob@example.com`

    `darkroom annotate users add eve@example.com --role expert`
    """
    from darkroom.annotation.label_studio.server import connect
    from darkroom.annotation.rounds.sync import preview_role

    if dry_run:
        with open_campaign() as opened, connect(opened.workspace) as studio:
            people, preview = studio.people(), preview_of(opened)
        for email in emails:
            for sentence in preview_role(email.strip().lower(), role, people, preview):
                print_plain(sentence)
        return
    with open_workspace() as workspace, connect(workspace) as studio:
        existing = {account["email"] for account in studio.accounts() if account["is_active"]}
        for email in emails:
            new_password = password or secrets.token_urlsafe(9)
            account = studio.add_person(email, role=role, password=new_password)
            line = f"{account['email']}: {role}"
            print_plain(line if email.strip().lower() in existing else f"{line}, password {new_password}")


def list_users(as_json: AsJson = False) -> None:
    """Show the accounts, removed ones too, and how far they are with the campaign's practice."""
    from darkroom.annotation.label_studio.client import people_in
    from darkroom.annotation.label_studio.server import connect
    from darkroom.annotation.rounds.campaign import Campaign
    from darkroom.annotation.rounds.practice import practice_results

    with open_workspace() as workspace, connect(workspace) as studio:
        accounts, campaign = studio.accounts(), Campaign.load(workspace.annotation)
        tries = {row["email"]: row["practice"] for row in accounts}
        practised = {one.email: str(one) for one in practice_results(tries, people_in(accounts), campaign)}
        rows = [{key: row[key] for key in ("email", "name", "role", "is_active")} for row in accounts]
        if as_json:
            print_json([row | {"practice": practised.get(row["email"], "")} for row in rows])
            return
        table = Table("account", "name", "role", "practice", "")
        for row in rows:
            state = "" if row["is_active"] else "removed"
            table.add_row(row["email"], row["name"], row["role"] or "none", practised.get(row["email"], ""), state)
        CONSOLE.print(table)


def remove_users(emails: EmailsArgument) -> None:
    """Close accounts, also in the middle of a round.

    They cannot log in any more, and tasks that they had open go to others at once. What they submitted is kept and
    counts. `darkroom annotate users add` lets them come back.

    `darkroom annotate users remove bob@example.com`
    """
    from darkroom.annotation.label_studio.server import connect
    from darkroom.annotation.rounds.campaign import Campaign

    with open_workspace() as workspace, connect(workspace) as studio:
        accounts, campaign = _members(studio.accounts(), emails), Campaign.load(workspace.annotation)
        for email in accounts:
            n_released = studio.remove_person(email)
            tasks = f", {n_released} open task{'s' * (n_released != 1)} handed on" if n_released else ""
            print_plain(f"{email}: removed{tasks}")
        print_shortages(campaign, studio)


def new_password(
    email: Annotated[str, typer.Argument(help="E-mail address.")], password: PasswordOption = None
) -> None:
    """Set a new password and print it; whoever is logged in with the old one is logged out."""
    from darkroom.annotation.label_studio.server import connect

    with open_workspace() as workspace, connect(workspace) as studio:
        [account] = _members(studio.accounts(), [email])
        chosen = password or secrets.token_urlsafe(9)
        studio.set_password(account, chosen)
        print_plain(f"{account}: password {chosen}")


def _members(accounts: Sequence[Mapping[str, Any]], emails: Sequence[str]) -> list[str]:
    """Addresses as the server has them. Raises ``AnnotationError`` for one that no member has."""
    members = [account["email"] for account in accounts if account["role"] != "admin" and account["is_active"]]
    addresses = list(dict.fromkeys(email.strip().lower() for email in emails))
    for email in addresses:
        if email not in members:
            there = ", ".join(members)
            raise AnnotationError(f"no annotator, checker or expert has the account {email}; there are {there}")
    return addresses
