"""``darkroom demo``, ``materialize``, ``rl``, ``annotate finish`` build; ``ui``, ``home``: Dagster."""

import os
import sys
from collections.abc import Collection, Sequence
from typing import Annotated

import typer

from darkroom.pipelines.command_line.console import CONSOLE, open_workspace, print_line

_Families = Annotated[list[str] | None, typer.Option("--family", help="Only this family; repeatable. Default: all.")]
RlRows = Annotated[
    int | None, typer.Option(min=0, help="RL rows in all, balanced over category and difficulty; default: all.")
]
RlQuota = Annotated[
    list[str] | None,
    typer.Option(help="RL rows of one source, or of `annotated` for human annotations: vstar=3000; repeatable."),
]
_On = Annotated[
    str,
    typer.Option(
        metavar="PLACE",
        help="Where the shards' runs execute: ray://HOST:PORT, http://HOST:8265 or auto (Ray), slurm, kubernetes.",
    ),
]


def demo(
    train: Annotated[bool, typer.Option(help="Train a tiny model to look at street signs, and evaluate it.")] = True,
    family: _Families = None,
) -> None:
    """Run the full pipeline end to end on the bundled data: SFT trajectories, RL prompts, a trained checkpoint.

    Materialises the asset graph on the bundled sources with the policy of DARKROOM_POLICY (default: the oracle, which
    needs no key). Re-running skips finished work; an interrupted run resumes where it stopped.
    """
    from darkroom.assets.builds.build import build_sft
    from darkroom.pipelines.sources.catalog import EMBEDDED

    families = _checked_families(family or [])
    build_sft(CONSOLE, EMBEDDED, train=train, families=families, with_rl=not families)


def materialize_command(
    source: Annotated[str, typer.Argument(help="Name of the source, as given to `darkroom ingest`.")],
    train: Annotated[bool, typer.Option(help="Train on the datasets afterwards.")] = False,
    family: _Families = None,
    rows: Annotated[
        int | None,
        typer.Option(min=0, help="Accepted rows in all, in the published mixture of families; default: no limit."),
    ] = None,
    quota: Annotated[
        list[str] | None, typer.Option(help="Accepted rows of one family, as in crop=200; repeatable.")
    ] = None,
    on: _On = "here",
) -> None:
    """Build the SFT datasets of a source: every family's stages on every shard, then the datasets.

    The same runs as in the UI, on the same Dagster instance. Re-running skips finished work. With --rows or --quota a
    family stops calling its policy once it has its rows; raising the number later pays only for the difference.

    With --on every shard is one run on a cluster, queued by Dagster, and repeated on another node when its worker is
    lost. It needs PostgreSQL and a home that all machines see (docs/scale.md).

    `darkroom materialize photos --rows 5000 --quota crop=1000`

    `darkroom materialize photos --on ray://head:10001`
    """
    from darkroom.assets.builds.build import build_sft
    from darkroom.pipelines.generation.recipes import load_recipes

    families = _checked_families(family or [])
    quotas = quotas_of(quota or [], "FAMILY", load_recipes())
    build_sft(CONSOLE, source, train=train, families=families, n_rows=rows, family_quotas=quotas, runs_on=on)


def rl_command(
    source: Annotated[str, typer.Argument(help="Name of the source; `darkroom sources list` shows them.")],
    rows: RlRows = None,
    quota: RlQuota = None,
    on: _On = "here",
) -> None:
    """Build the RL dataset: select a source's questions, measure them, and ship those of all sources.

    The stages: candidates with a reliable grader, checked labels, pass rates of the student (DARKROOM_STUDENT…), tool
    necessity, visual suitability by eight votes. Every answer is stored in the ledger: re-running skips finished work,
    and an interrupted run resumes where it stopped. With --on every shard is one run on a cluster (docs/scale.md).

    `darkroom rl mmk12 --rows 10000`
    """
    from darkroom.assets.builds.build import build_rl

    build_rl(CONSOLE, source, n_rows=rows, source_quotas=_source_quotas(quota), runs_on=on)


def finish(rows: RlRows = None, quota: RlQuota = None) -> None:
    """Build the RL dataset from the accepted records, as of the last sync.

    The journal becomes the tables annotations, cross_checks and accepted_annotations; accepted records with an answer
    that a grader can tell from wrong ones, in no benchmark and without near-duplicates, become RL rows beside those of
    other sources. Run it at any time, also while a campaign goes on: finished work is skipped, an interrupted run
    resumes. In the UI it is the job `finished_annotations`.
    """
    from darkroom.assets.builds.build import build_annotated

    build_annotated(CONSOLE, n_rows=rows, source_quotas=_source_quotas(quota))


def home() -> None:
    """Prepare DAGSTER_HOME (below DARKROOM_HOME, telemetry off) and print it. `darkroom ui` does this first.

    Closes runs whose process is gone, and makes the shards of all sources partitions.
    """
    from darkroom.assets.dagster_home.instance import prepare_dagster_home, refresh_dagster

    with open_workspace() as workspace:
        folder = prepare_dagster_home(workspace)
        refresh_dagster(workspace)
    print_line(str(folder))


def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the web page.")] = 3000,
    host: Annotated[str, typer.Option(help="0.0.0.0 admits other machines; there is no login.")] = "127.0.0.1",
) -> None:
    """Start the Dagster UI with its daemon: the asset graph, its runs, images and rejects. Ctrl-C ends it."""
    from darkroom.assets.dagster_home.daemon import WORKSPACE, dagster_environment
    from darkroom.pipelines.processes.ports import url_of

    url = url_of(host, port)
    print_line(f"Dagster loads the asset graph, which takes a minute on a busy machine; then open {url}")
    home()
    # the warning is that Dagster's other command line, which wants a project's folder, comes in its place
    dagster = [sys.executable, "-W", "ignore::FutureWarning", "-m", "dagster", "dev", "-w", WORKSPACE]
    os.execve(sys.executable, [*dagster, "--host", host, "--port", str(port)], dagster_environment())


def _checked_families(families: list[str]) -> list[str]:
    from darkroom.pipelines.generation.released import all_recipes

    recipes = all_recipes()
    for family in families:
        if family not in recipes:
            raise typer.BadParameter(f"there is no family {family!r}; choose from {', '.join(recipes)}")
    return families


def _source_quotas(options: Sequence[str] | None) -> dict[str, int]:
    """Quotas of sources, and of people's rows."""
    from darkroom.pipelines.publishing.rl_dataset import ANNOTATED
    from darkroom.pipelines.sources.catalog import Catalog

    if not options:
        return {}
    with open_workspace() as workspace:
        return quotas_of(options, "SOURCE", [*Catalog(workspace.sources).uses(), ANNOTATED])


def quotas_of(options: Sequence[str], kind: str, names: Collection[str]) -> dict[str, int]:
    """``["crop=200"]`` as a mapping. ``names``: those that exist."""
    quotas: dict[str, int] = {}
    for option in options:
        name, _, number = option.partition("=")
        if name not in names or not number.isdigit():
            choices = ", ".join(names)
            raise typer.BadParameter(f"--quota takes {kind}=ROWS, {kind} one of {choices}; found {option!r}")
        quotas[name] = int(number)
    return quotas
