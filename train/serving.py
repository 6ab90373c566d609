"""``darkroom agent`` and ``darkroom environment``: a model that thinks with images behind an ordinary endpoint, and RL
rows with their sandbox and rewards for other trainers."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from darkroom.pipelines.services import token_for
from darkroom.pipelines.services.cli import Host, Port, require_packages
from darkroom.train.evaluation.settings import AgentSettings
from darkroom.train.rl.settings import JudgeOptions, ProtocolName
from darkroom.train.runs.command_line import Values, guarded, takes_settings


@contextmanager
def _token(host: str) -> Iterator[str]:
    """Yield the service's token, once its packages are known to be there; errors within are messages."""
    token = token_for(host)
    require_packages()
    with guarded():
        yield token


@takes_settings
def serve_agent(
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
    with _token(host) as token:
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


@takes_settings
def serve_environment(
    dataset: Annotated[Path, typer.Argument(help="Folder of the rl dataset, or of an sft dataset for its questions.")],
    judge: Annotated[Values, JudgeOptions],
    method: Annotated[str, typer.Option(help="Reward: thyme, pyvision, codev, adaptive, figr, your own.")] = "thyme",
    protocol: Annotated[ProtocolName | None, typer.Option(help="Default: the method's.")] = None,
    prompt: Annotated[str | None, typer.Option(help="Put questions as a paper prints it: thyme_paper, …")] = None,
    max_rounds: Annotated[int | None, typer.Option(min=1, help="Code executions; default: the method's.")] = None,
    assignments: Annotated[list[str] | None, typer.Option("--set", help="A field: method.weight_tool=0.3.")] = None,
    held_out: Annotated[bool, typer.Option("--held-out", help="The rows of the split validation.")] = False,
    host: Host = "127.0.0.1",
    port: Port = 8767,
    episodes: Annotated[int, typer.Option(min=1, help="Maximum of open episodes; beyond, clients get 429.")] = 1024,
    idle: Annotated[float, typer.Option(min=1, help="Seconds without a step after which an episode ends.")] = 1800.0,
    compression: Annotated[int, typer.Option(min=0, max=9, help="Of PNGs; 0 is the fastest.")] = 0,
) -> None:
    """Serve episodes over HTTP: reset to a row, step with what a model writes, read observations and the reward.

    The rollout loop, protocols, sandbox, graders and rewards are those of
    darkroom train grpo, for trainers that are not TRL.

    darkroom environment serve data/datasets/rl/prompts --method thyme

    darkroom environment serve data/datasets/rl/prompts --method codev --judge-url URL --judge-model NAME
    """
    with _token(host) as token:
        from darkroom.pipelines.services.listening import listen
        from darkroom.pipelines.storage.stage_runs import code_version
        from darkroom.train.environment.episodes import Episodes
        from darkroom.train.environment.http_api import application
        from darkroom.train.rl.judging.judge_config import judges_of
        from darkroom.train.rl.methods import named_method, settings_of
        from darkroom.train.rl.rollouts.prompts import check_prompts, open_prompts

        part: Literal["held_out", "train"] = "held_out" if held_out else "train"
        rows = open_prompts(dataset, part)
        judges, identity = judges_of(**judge)
        values = {"protocol": protocol, "prompt": prompt, "max_rounds": max_rounds, "options": assignments}
        settings = settings_of(method, **values, judge=identity)
        check_prompts(dataset, protocol=settings.protocol, wording=settings.prompt, part=part)
        chosen = named_method(method, settings.options)
        opened = Episodes(rows, settings, chosen, judges, most_open=episodes, idle_seconds=idle)
        app = application(opened, version=code_version(), host=host, token=token, compression=compression)
        says = f", {len(rows)} rows scored by {method}; its interface: /docs; Ctrl-C stops it"
        listen(app, host, port, lambda at: at + says)
