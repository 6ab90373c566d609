"""The command ``darkroom``: its subcommands, in the order of use."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from dotenv import load_dotenv

from darkroom.annotation.cli import app as annotation_app
from darkroom.assets.commands.audit import audit
from darkroom.assets.commands.build import calibrate, demo, finish, materialize, pre_annotate, rl
from darkroom.assets.commands.look import explain, gallery, summary, ui
from darkroom.assets.commands.new import new
from darkroom.assets.commands.policy import app as policy_app
from darkroom.assets.commands.shipping import export, publish
from darkroom.assets.commands.sources import app as sources_app, ingest
from darkroom.assets.commands.training import app as train_app, inspect_mask
from darkroom.pipelines.command_line.console import Aliases, OrderedGroup, panelled_group
from darkroom.pipelines.models.serving.cli import serve
from darkroom.pipelines.services.cli import serve_sandbox
from darkroom.sandbox.cli import app as sandbox_app
from darkroom.train.agent.cli import app as agent_app
from darkroom.train.environment.cli import app as environment_app
from darkroom.train.evaluate import main as evaluate

sandbox_app.command(name="serve")(serve_sandbox)
annotation_app.command("pre-annotate", rich_help_panel="Campaign")(pre_annotate)
annotation_app.command("finish", rich_help_panel="Campaign")(finish)

OLD_SPELLINGS = Aliases(**yaml.safe_load(Path(__file__).with_name("old_spellings.yaml").read_text(encoding="utf-8")))


class _Darkroom(OrderedGroup):
    """Takes the spellings of earlier versions, too."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        return super().main(OLD_SPELLINGS.current(args), *rest, **options)


app = panelled_group(
    {
        "Build": {
            **{"demo": demo, "new": new, "ingest": ingest, "sources": sources_app},
            **{"policy": policy_app, "materialize": materialize, "rl": rl, "calibrate": calibrate},
        },
        "Look": {
            **{"summary": summary, "ui": ui, "gallery": gallery},
            **{"explain": explain, "audit": audit, "inspect-mask": inspect_mask},
        },
        "Ship": {"export": export, "publish": publish},
        "Train": {"train": train_app, "evaluate": evaluate},
        "Serve": {"serve": serve, "sandbox": sandbox_app, "environment": environment_app, "agent": agent_app},
        "Annotate": {"annotate": annotation_app},
    },
    cls=_Darkroom,
    help="Build datasets that teach vision-language models to think with images.\n\n"
    "Data is stored in DARKROOM_HOME (default: ./data); `.env` may hold settings. Start with `darkroom demo`, "
    "then `darkroom ui`. `--debug` in any command shows the traceback of an error.",
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"darkroom {version('darkroom-toolkit')}")
        raise typer.Exit


@app.callback()
def darkroom(
    _: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    load_dotenv(".env")
