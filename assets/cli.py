"""The command ``darkroom``, whose subcommands are listed in ``commands.yaml``."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from dotenv import load_dotenv

from darkroom.pipelines.command_line.console import Aliases, PanelledGroup, panelled_group

OLD_SPELLINGS = Aliases(**yaml.safe_load(Path(__file__).with_name("old_spellings.yaml").read_text(encoding="utf-8")))
COMMANDS = yaml.safe_load(Path(__file__).with_name("commands.yaml").read_text(encoding="utf-8"))


class _Darkroom(PanelledGroup):
    """Takes the spellings of earlier versions, too."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        return super().main(OLD_SPELLINGS.current(args), *rest, **options)


app = panelled_group(COMMANDS, cls=_Darkroom)


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
