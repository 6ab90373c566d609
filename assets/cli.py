"""The command ``darkroom``: which commands there are, in the order of its help."""

import typer

from annotation.cli import app as annotation_app
from assets.commands.annotating import pre_annotate
from assets.commands.checking import conformance, inspect_mask
from assets.commands.judging import calibrate
from assets.commands.looking import explain, gallery, replay, summary
from assets.commands.making import demo, home, ingest, materialize_command, rl_command
from assets.commands.sources import app as sources_app
from pipelines.layouts.cli import export
from pipelines.serving.cli import serve
from sandbox.cli import app as sandbox_app

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Builds the datasets that teach vision-language models to think with images.\n\n"
    "Data lies in DARKROOM_HOME (default ./data). Start with `darkroom demo`, then `make ui`.",
)
app.add_typer(sandbox_app, name="sandbox", help="Run model-written code safely; see what this kernel protects.")
annotation_app.command(name="pre-annotate")(pre_annotate)
app.add_typer(annotation_app, name="annotate")
app.add_typer(sources_app, name="sources")
app.command()(serve)
app.command()(export)
app.command()(demo)
app.command(name="materialize")(materialize_command)
app.command(name="rl")(rl_command)
app.command(name="inspect-mask")(inspect_mask)
for command in (home, summary, ingest, gallery, replay, explain, calibrate, conformance):
    app.command()(command)
