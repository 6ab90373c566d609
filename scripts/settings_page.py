"""Writes ``docs/settings.md`` from the settings models: their fields, defaults and descriptions.

python -m scripts.settings_page            # after a change of a settings model; a test compares page and models
"""

from __future__ import annotations

from pathlib import Path

from darkroom.assets.clusters.placement import RunSettings
from darkroom.assets.clusters.programs import LauncherResource
from darkroom.pipelines.models.policies.settings import EndpointSettings
from darkroom.pipelines.storage.settings import EnvironmentSettings, WorkspaceSettings

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
INTRODUCTION = """# Settings

Environment variables, read by every command, the Dagster code location and the training programs. `darkroom` also reads
`.env` in the working directory, which the environment overrides (`darkroom new FOLDER` writes one). An empty variable
counts as unset; a value that does not fit is an error that names the variable. This page is generated from the settings
models (`python -m scripts.settings_page`).
"""
OTHERS = {
    "`DARKROOM_STUDIO_URL`, `DARKROOM_STUDIO_TOKEN`": (
        "the server that `darkroom annotate up` started",
        "Another Label Studio server, and the token of its administrator.",
    ),
    "`DARKROOM_NECESSITY`": (
        "the recipe's where answers are free, else 0",
        "Answers without tools, and with a blank image, to request for each row that passed its checks.",
    ),
    "`DARKROOM_LEAK_JUDGE`": (
        "`0`",
        "`1`: the judge also reads every thought for privileged facts (`judge_leak`), at one more request per vote.",
    ),
    "`DARKROOM_OPERATION_PROMPTS`": (
        "neutral",
        "`neutral`, or `all`: rows of `operation_aware` under forced and forbidden prompts as well.",
    ),
    "`DARKROOM_METHODS`": ("", "Folders with GRPO methods of your own, separated as in `PATH`."),
    "`DARKROOM_RECIPES`": ("", "Folders with families of your own, separated as in `PATH`."),
    "`DARKROOM_REPORT_TO`": ("none", "Trackers of trainings, separated by commas; the same as `--report-to`."),
    "`DARKROOM_SANDBOX_ECHO`": (
        "`last`",
        "`last`: a call shows the value of its last expression and figures left unshown, as a notebook does; or `off`.",
    ),
    "`DARKROOM_SANDBOX_TIER`": ("`full`", "`full`, or `lite` where the kernel forbids user namespaces."),
    "`DARKROOM_ENVIRONMENT_URL`": (
        "`http://127.0.0.1:8767`",
        "Where adapters in other trainers find `darkroom environment serve`; with it `reward.py` grades there.",
    ),
    "`DARKROOM_SERVICE_TOKEN`": (
        "",
        "Secret that clients of the services (`darkroom sandbox serve`, …) must send; default: this machine only.",
    ),
    "`DARKROOM_SANDBOX_LIBRARIES`": (
        "",
        "Installed packages that model-written code may import besides the sandbox's nine, separated by commas.",
    ),
    "`DARKROOM_SANDBOX_CGROUP`": (
        "",
        "A delegated cgroup v2 folder that also limits sessions; default: an existing delegation is detected.",
    ),
    "`OPENBLAS_NUM_THREADS`": ("`1`", "Threads of numpy's linear algebra. With more, the last bits of sums differ."),
}
"""Variables that stand alone: each is read in one place."""
POLICY = """The endpoint that writes trajectories. `DARKROOM_JUDGE…` (judges), `DARKROOM_CONVERT…` (turns long
solutions into code) and `DARKROOM_STUDENT…` (the model to be trained, whose pass rates are measured) take the same
suffixes; unset values fall back to `DARKROOM_POLICY…`.
"""
HEAD = ["| variable | default | description |", "| --- | --- | --- |"]


STATUSES = """## Exit statuses

An error is one line on stderr that names what to do; `--debug`, anywhere in a command, also prints the traceback.

| status | meaning |
| --- | --- |
| 0 | done |
| 1 | what you can fix (a setting, a file, a disk, an endpoint), or a negative outcome that the help names |
| 2 | a wrong command line; of `audit`, that nothing could be audited |
| 70 | an unexpected error: please report what `--debug` prints |
| 75 | rows wait for a [batch](policies.md#batches): run it again later |
| 130 | Ctrl-C; services, which it stops, end with 0 |
| 141 | the reader of the output has ended, as `head` does in a pipe |
"""


def page() -> str:
    sections = [
        ("Workspace", "Where data is stored.\n", WorkspaceSettings, "DARKROOM"),
        ("Endpoints", POLICY, EndpointSettings, "DARKROOM_POLICY"),
        (
            "Runs on other machines",
            "Where the shards' runs execute ([from a laptop to a cluster](scale.md)).\n",
            RunSettings,
            "DARKROOM_RUN_",
        ),
        ("Launching training", "How the training assets start their programs.\n", LauncherResource, "DARKROOM_LAUNCH_"),
    ]
    others = [f"| {variable} | {default} | {text} |" for variable, (default, text) in OTHERS.items()]
    tables = [_section(*section) for section in sections]
    return "\n".join([INTRODUCTION, *tables, "## Others", "", *HEAD, *others, "", STATUSES])


def _section(title: str, text: str, model: type[EnvironmentSettings], prefix: str) -> str:
    rows = [_row(model, name, variable) for name, variable in model.variables(prefix).items()]
    return "\n".join([f"## {title}", "", text, *HEAD, *rows, ""])


def _row(model: type[EnvironmentSettings], name: str, variable: str) -> str:
    field = model.model_fields[name]
    default = "" if field.default in (None, "") else f"`{field.default}`"
    return f"| `{variable}` | {default} | {' '.join((field.description or '').split())} |"


if __name__ == "__main__":
    PAGE.write_text(page())
