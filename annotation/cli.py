"""`darkroom annotate`: the annotation server, its accounts, the rounds of a campaign, and the queues."""

from darkroom.annotation.commands.backup import backup, restore
from darkroom.annotation.commands.campaign import guide, init, record, sync, take_in
from darkroom.annotation.commands.doctor import doctor
from darkroom.annotation.commands.figures import payments, report
from darkroom.annotation.commands.queues import review, suitability, verify
from darkroom.annotation.commands.server import down, service, status, up
from darkroom.annotation.commands.users import users
from darkroom.pipelines.command_line.errors import CommandGroup
from darkroom.sandbox.help_text import Commands

app = Commands(
    cls=CommandGroup,
    no_args_is_help=True,
    help="Human annotation in Label Studio: write, cross-check, accept.\n\n"
    "`up` starts a server, `users add` creates accounts, `init` writes an example campaign, `sync` hands out tasks and "
    "pulls submissions, `report` shows progress and quality, `finish` builds the RL dataset from what was accepted.",
)
for command in (
    *(up, down, status, service, init, sync, doctor, review, verify, suitability),
    *(record, take_in, report, payments, guide, backup, restore),
):
    app.command()(command)
app.add_typer(users, name="users")
