"""The command ``darkroom``: its subcommands, in the order of use."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from dotenv import load_dotenv

from darkroom.annotation.cli import HELP as ANNOTATE, PANELS as ANNOTATION
from darkroom.pipelines.command_line.console import Aliases, PanelledGroup, panelled_group, places

OLD_SPELLINGS = Aliases(**yaml.safe_load(Path(__file__).with_name("old_spellings.yaml").read_text(encoding="utf-8")))


class _Darkroom(PanelledGroup):
    """Takes the spellings of earlier versions, too."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        return super().main(OLD_SPELLINGS.current(args), *rest, **options)


_COMMANDS = "darkroom.assets.commands"
_SOURCES = {
    "list": f"{_COMMANDS}.sources:list_sources",
    **places(f"{_COMMANDS}.sources", "add", "check", "remove"),
}
_CAMPAIGN = {**ANNOTATION["Campaign"], **places(f"{_COMMANDS}.build", "pre_annotate", "finish")}
_SANDBOX = {
    **places("darkroom.sandbox.cli", "run", "doctor"),
    "serve": "darkroom.pipelines.services.cli:serve_sandbox",
}
_PROGRAMS = {name: f"darkroom.train.{name}:main" for name in ("sft", "grpo", "tiny")}
app = panelled_group(
    {
        "Build": {
            **places(f"{_COMMANDS}.build", "demo"),
            **places(f"{_COMMANDS}.new", "new"),
            **places(f"{_COMMANDS}.sources", "ingest"),
            "sources": panelled_group(
                {"Commands": _SOURCES},
                help="Public datasets as sources, with their columns mapped: list them, check, add and remove one.\n\n"
                "For your own images and questions: `darkroom ingest`. The format of a source's file: docs/sources.md.",
            ),
            "policy": panelled_group(
                {"Commands": places(f"{_COMMANDS}.policy", "check")},
                help="The models that write, judge and learn, each at an endpoint.",
            ),
            **places(f"{_COMMANDS}.build", "materialize", "rl", "calibrate"),
        },
        "Look": {
            **places(f"{_COMMANDS}.look", "summary", "ui", "gallery", "explain"),
            **places(f"{_COMMANDS}.audit", "audit"),
            **places(f"{_COMMANDS}.training", "inspect_mask"),
        },
        "Ship": places(f"{_COMMANDS}.shipping", "export", "publish"),
        "Train": {
            "train": panelled_group(
                {"Programs": _PROGRAMS, "Packages": places(f"{_COMMANDS}.training", "environment")},
                help="Train: SFT, GRPO, a tiny model to try them with.",
            ),
            **places("darkroom.train.evaluate", evaluate="main"),
        },
        "Serve": {
            **places("darkroom.pipelines.models.serving.cli", "serve"),
            "sandbox": panelled_group(
                {"Commands": _SANDBOX}, help="Run model-written Python on images behind the kernel's own walls."
            ),
            "environment": panelled_group(
                {"Commands": places("darkroom.train.environment.cli", "serve")},
                help="Serve RL rows with their sandbox and rewards to any trainer.",
            ),
            "agent": panelled_group(
                {"Commands": places("darkroom.train.agent.cli", "serve")},
                help="Serve a model that thinks with images to any benchmark tool.",
            ),
        },
        "Annotate": {"annotate": panelled_group({**ANNOTATION, "Campaign": _CAMPAIGN}, help=ANNOTATE)},
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
