"""`darkroom policy check`: what an endpoint can do, and the settings that fit it."""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import asdict
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from darkroom.pipelines.command_line.console import CONSOLE, AsJson, print_json, print_line

_COLOURS = {"yes": "green", "no": "red", "unclear": "yellow"}


def check(
    role: Annotated[
        Literal["policy", "convert", "judge", "student"],
        typer.Argument(help="Whose endpoint: DARKROOM_POLICY's, DARKROOM_JUDGE's, …"),
    ] = "policy",
    as_json: AsJson = False,
) -> None:
    """Ask an endpoint a dozen small questions, print what it can do, and the settings that fit, for `.env`.

    Is the model there, which one answers, does it see images, how many and how large, does it take stop strings, `n`, a
    seed, a JSON schema, where does its thought come, what are its limits and prices. About 20 calls; exits with 1 if
    plain text fails. Example:

    `DARKROOM_POLICY=openai DARKROOM_POLICY_URL=http://127.0.0.1:8000/v1 DARKROOM_POLICY_MODEL=qwen darkroom policy
    check`
    """
    from darkroom.pipelines.models.policies.endpoint_check import Ability, EndpointCheck
    from darkroom.pipelines.models.policies.policy import PolicyUnavailable
    from darkroom.pipelines.models.policies.settings import EndpointSettings

    variable = f"DARKROOM_{role.upper()}"
    settings = EndpointSettings.from_environment(role.upper())  # type: ignore[arg-type]
    if settings.kind != "openai":
        raise PolicyUnavailable(f"{variable} asks no endpoint: set {variable}=openai, {variable}_URL, {variable}_MODEL")
    asked = EndpointCheck(settings.endpoint, settings.endpoint.key())

    async def ask(console: Console) -> list[Ability]:
        findings = []
        async for finding in asked.findings():
            findings.append(finding)
            shown = f"{finding.about:22}", (f"{finding.state:8}", _COLOURS[finding.state]), finding.seen
            console.print(Text.assemble(*shown), soft_wrap=True)
        return findings

    findings = asyncio.run(ask(Console(stderr=True, quiet=True) if as_json else CONSOLE))
    fitting = {EndpointSettings.variables(variable)[name]: str(value) for name, value in asked.settings.items()}
    is_mute = any(finding.about == "text" and finding.state == "no" for finding in findings)
    words = "It answers no text: mend what its line says, then check again." if is_mute else "The settings fit."
    if as_json:
        print_json({"findings": [*map(asdict, findings)], "settings": fitting, "tokens": asked.n_tokens})
    else:
        print_line(f"\n{asked.n_tokens:,} tokens. {'Settings that fit:' if fitting else words}")
        for name, value in fitting.items():
            print_line(f"{name}={shlex.quote(value)}")
    raise typer.Exit(int(is_mute))
