"""`darkroom annotate`: the annotation server, its accounts, the rounds of a campaign, and the queues."""

from darkroom.annotation.commands.campaign import doctor, init, report, sync
from darkroom.annotation.commands.copies import backup, export_campaign, import_campaign, restore
from darkroom.annotation.commands.queues import review, suitability, verify
from darkroom.annotation.commands.server import down, status, up
from darkroom.annotation.commands.users import users
from darkroom.pipelines.command_line.console import panelled_group

app = panelled_group(
    {
        "Server": {"up": up, "down": down, "status": status, "users": users},
        "Campaign": {"init": init, "sync": sync, "doctor": doctor, "report": report},
        "Queues": {"review": review, "verify": verify, "suitability": suitability},
        "Copies": {"backup": backup, "restore": restore, "export": export_campaign, "import": import_campaign},
    },
    help="Human annotation in Label Studio: write, cross-check, accept.\n\n"
    "`up` starts a server, `users add` creates accounts, `init` writes an example campaign, `sync` hands out tasks and "
    "pulls submissions, `report` shows progress and quality, `finish` builds the RL dataset from accepted records.",
)
