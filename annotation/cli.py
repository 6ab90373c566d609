"""`darkroom annotate`: the annotation server, its accounts, the rounds of a campaign, and the queues."""

from darkroom.pipelines.command_line.console import Panels, panelled_group, places

_COMMANDS = "darkroom.annotation.commands"
users = panelled_group(
    {
        "Commands": places(
            f"{_COMMANDS}.users", add="add_users", list="list_users", remove="remove_users", password="new_password"
        )
    },
    help="Accounts of annotators, checkers and experts. A campaign needs three who write or check (four where records "
    "are checked twice), and as many experts as judge a record (`experts_per_record`).",
)
PANELS: Panels = {
    "Server": {**places(f"{_COMMANDS}.server", "up", "down", "status"), "users": users},
    "Campaign": places(f"{_COMMANDS}.campaign", "init", "sync", "doctor", "report"),
    "Queues": places(f"{_COMMANDS}.queues", "review", "verify", "suitability"),
    "Copies": {
        **places(f"{_COMMANDS}.copies", "backup", "restore", export="export_campaign"),
        "import": f"{_COMMANDS}.copies:import_campaign",
    },
}
HELP = (
    "Human annotation in Label Studio: write, cross-check, accept.\n\n"
    "`up` starts a server, `users add` creates accounts, `init` writes an example campaign, `sync` hands out tasks and "
    "pulls submissions, `report` shows progress and quality, `finish` builds the RL dataset from accepted records."
)
app = panelled_group(PANELS, help=HELP)
