"""``darkroom agent``: a model that thinks with images, behind an ordinary endpoint."""

import asyncio
from typing import Annotated

import typer

from darkroom.pipelines.services import token_for
from darkroom.pipelines.services.cli import Host, Port, require_packages
from darkroom.train.evaluation.settings import AgentSettings
from darkroom.train.runs.command_line import Values, guarded, takes_settings


@takes_settings
def serve(
    settings: Annotated[Values, AgentSettings],
    host: Host = "127.0.0.1",
    port: Port = 8766,
    max_request_mb: Annotated[int, typer.Option(min=1, help="Largest request.")] = 256,
) -> None:
    """Serve an OpenAI-compatible endpoint whose answers come from rollouts with tools.

    A benchmark tool sends a question with its images, as to any model; the
    content of the completion is the answer, its field `darkroom` the
    trajectory, with a page. How the model samples is decided here, whatever
    a request says; `n` and `seed` are the request's.

    darkroom agent serve --url http://127.0.0.1:8000/v1 --model NAME --protocol thyme

    darkroom agent serve --model data/checkpoints/grpo

    Turns and executions are on the ledger of DARKROOM_HOME: a benchmark that
    is started again pays for nothing twice.
    """
    token = token_for(host)
    require_packages()
    with guarded():
        from darkroom.pipelines.services.listening import listen
        from darkroom.pipelines.storage.stage_runs import code_version
        from darkroom.pipelines.storage.workspace import Workspace
        from darkroom.train.agent.answers import check
        from darkroom.train.agent.http_api import application

        chosen = AgentSettings(**settings)
        with Workspace.from_environment() as workspace:
            asyncio.run(check(chosen, workspace))
            app = application(chosen, workspace, version=code_version(), host=host, token=token, most_mb=max_request_mb)
            says = f"/v1 answers as {chosen.model}; Ctrl-C stops it"
            listen(app, host, port, lambda at: at + says)
