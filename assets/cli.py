"""The command ``darkroom``: its subcommands, in the order of the help text."""

from dotenv import load_dotenv

from darkroom.annotation.cli import app as annotation_app
from darkroom.assets.commands.audit import audit
from darkroom.assets.commands.build import demo, finish, home, materialize_command, rl_command, ui
from darkroom.assets.commands.new import new
from darkroom.assets.commands.policies import calibrate, pre_annotate
from darkroom.assets.commands.publishing import publish
from darkroom.assets.commands.sources import app as sources_app
from darkroom.assets.commands.sources import ingest
from darkroom.assets.commands.training import app as train_app
from darkroom.assets.commands.training_data import conformance, export, inspect_mask
from darkroom.assets.commands.views import explain, gallery, replay, summary
from darkroom.pipelines.command_line.errors import CommandGroup
from darkroom.pipelines.models.serving.cli import serve
from darkroom.pipelines.services.cli import serve_sandbox
from darkroom.sandbox.cli import app as sandbox_app
from darkroom.sandbox.help_text import Commands
from darkroom.train.agent.cli import app as agent_app
from darkroom.train.environment.cli import app as environment_app
from darkroom.train.evaluate import main as evaluate

app = Commands(
    cls=CommandGroup,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Build datasets that teach vision-language models to think with images.\n\n"
    "Data is stored in DARKROOM_HOME (default: ./data); `.env` may hold settings. Start with `darkroom demo`, "
    "then `darkroom ui`. `--debug` in any command shows the traceback of an error.",
)


@app.callback()
def darkroom() -> None:
    load_dotenv(".env")


sandbox_app.command(name="serve")(serve_sandbox)
app.add_typer(
    sandbox_app, name="sandbox", help="Run and serve model-written code safely; show what this kernel protects."
)
annotation_app.command(name="pre-annotate")(pre_annotate)
annotation_app.command()(finish)
app.add_typer(environment_app, name="environment", help="Serve RL rows with their rewards to any trainer.")
app.add_typer(agent_app, name="agent", help="Serve a model with its tools to any benchmark tool.")
app.add_typer(annotation_app, name="annotate")
app.add_typer(sources_app, name="sources")
app.add_typer(train_app, name="train")
app.command()(serve)
app.command()(export)
app.command()(publish)
app.command()(new)
app.command()(demo)
app.command(name="evaluate")(evaluate)
app.command(name="materialize")(materialize_command)
app.command(name="rl")(rl_command)
app.command(name="inspect-mask")(inspect_mask)
for command in (home, ui, summary, ingest, gallery, replay, audit, explain, calibrate, conformance):
    app.command()(command)
