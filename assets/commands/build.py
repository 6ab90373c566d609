"""``darkroom demo``, ``materialize``, ``rl``, ``annotate finish``: builds; ``calibrate``, ``annotate pre-annotate``."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated

import typer

from darkroom.assets.commands import added_sources as sources, families, judges
from darkroom.assets.terminal import progress_bar
from darkroom.pipelines.command_line.console import CONSOLE, open_workspace, print_line

_Families = Annotated[
    list[str] | None,
    typer.Option("--family", help="Only this family; repeatable. Default: all.", autocompletion=families),
]
RlRows = Annotated[
    int | None, typer.Option(min=0, help="RL rows in all, balanced over category and difficulty; default: all.")
]
RlQuota = Annotated[
    list[str] | None,
    typer.Option(help="RL rows of one source, or of `annotated` for human annotations: vstar=3000; repeatable."),
]
_WHERE = "Where the shards' runs execute: ray://HOST:PORT, http://HOST:8265 or auto (Ray), slurm, kubernetes."
_On = Annotated[str, typer.Option(metavar="PLACE", help=_WHERE)]


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

    chosen = _checked_families(family)
    build_sft(CONSOLE, EMBEDDED, train=train, families=chosen, with_rl=not chosen)


def materialize(
    source: Annotated[str, typer.Argument(help="Name of the source, as in `darkroom ingest`.", autocompletion=sources)],
    train: Annotated[bool, typer.Option(help="Train on the datasets afterwards.")] = False,
    family: _Families = None,
    rows: Annotated[int | None, typer.Option(min=0, help="Accepted rows, in the published mix; default: all.")] = None,
    quota: Annotated[list[str] | None, typer.Option(help="Rows of one family, as in crop=200; repeatable.")] = None,
    on: _On = "here",
    preview: Annotated[
        int | None,
        typer.Option(
            min=1, help="Build nothing: try so many rows of each family and write a page with them; what they cost."
        ),
    ] = None,
    plan: Annotated[int | None, typer.Option(min=1, help="Only print what so many more rows become and cost.")] = None,
) -> None:
    """Build the SFT datasets of a source: every family's stages on every shard, then the datasets.

    The same runs as in the UI, on the same Dagster instance. Re-running skips finished work. With --rows or --quota a
    family stops calling its policy once it has its rows; raising the number later pays only for the difference.

    With --on every shard is one run on a cluster, queued by Dagster, and repeated on another node when its worker is
    lost; a quota is filled in rounds. It needs PostgreSQL and a home that all machines see (docs/scale.md).

    With DARKROOM_POLICY_BATCH single-turn requests wait in batches (status 75: run it again); later turns go live.

    `darkroom materialize photos --preview 5`

    `darkroom materialize photos --rows 5000 --quota crop=1000`

    `darkroom materialize photos --on ray://head:10001`
    """
    from darkroom.assets.builds.build import build_sft
    from darkroom.pipelines.generation.recipes import load_recipes

    chosen, quotas = _checked_families(family), quotas_of(quota, "FAMILY", load_recipes())
    if preview is not None or plan is not None:
        from darkroom.assets.builds.preview import plan_rows, preview_families

        if train or rows is not None or quotas or on != "here":
            raise typer.BadParameter("--preview and --plan build nothing: they take --family alone")
        if preview is not None:
            preview_families(source, chosen, preview)
        if plan is not None:
            plan_rows(source, chosen, plan)
        return
    build_sft(CONSOLE, source, train=train, families=chosen, n_rows=rows, family_quotas=quotas, runs_on=on)


def rl(
    source: Annotated[str, typer.Argument(help="A source of `darkroom sources list`.", autocompletion=sources)],
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

    build_rl(source, n_rows=rows, source_quotas=_source_quotas(quota), runs_on=on)


def finish(rows: RlRows = None, quota: RlQuota = None) -> None:
    """Build the RL dataset from the accepted records, as of the last sync.

    The journal becomes the tables annotations, cross_checks and accepted_annotations; accepted records with an answer
    that a grader can tell from wrong ones, in no benchmark and without near-duplicates, become RL rows beside those of
    other sources. Run it at any time, also while a campaign goes on: finished work is skipped, an interrupted run
    resumes. In the UI it is the job `finished_annotations`.
    """
    from darkroom.annotation.label_studio.server import note_act
    from darkroom.assets.builds.build import build_annotated

    build_annotated(n_rows=rows, source_quotas=_source_quotas(quota))
    with open_workspace() as workspace:
        note_act(workspace, "finish")


def _checked_families(chosen: list[str] | None) -> list[str]:
    """Raises ``typer.BadParameter`` for one that does not exist."""
    from darkroom.pipelines.generation.released import all_recipes

    recipes = all_recipes()
    for family in chosen or ():
        if family not in recipes:
            raise typer.BadParameter(f"there is no family {family!r}; choose from {', '.join(recipes)}")
    return chosen or []


def _source_quotas(options: Sequence[str] | None) -> dict[str, int]:
    from darkroom.pipelines.publishing.rl_dataset import ANNOTATED
    from darkroom.pipelines.sources.catalog import Catalog

    if not options:
        return {}
    with open_workspace() as workspace:
        return quotas_of(options, "SOURCE", [*Catalog(workspace.sources).uses(), ANNOTATED])


def quotas_of(options: Sequence[str] | None, kind: str, names: Collection[str]) -> dict[str, int]:
    """Read ``["crop=200"]`` as a mapping; only ``names`` exist."""
    quotas: dict[str, int] = {}
    for option in options or ():
        name, _, number = option.partition("=")
        if name not in names or not number.isdigit():
            raise typer.BadParameter(f"--quota takes {kind}=ROWS, {kind} one of {', '.join(names)}; found {option!r}")
        quotas[name] = int(number)
    return quotas


def calibrate(
    judge: Annotated[
        str,
        typer.Argument(help="The check that the judge decides: consistency, judge_effective, …", autocompletion=judges),
    ],
    labelled: Annotated[Path, typer.Option(help="JSON lines with human verdicts, as shown above.", dir_okay=False)],
    precision: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Choose the lowest threshold with this precision; default: by majority."),
    ] = None,
    votes: Annotated[int | None, typer.Option(min=1, help="Votes per row; default: the judge's settings.")] = None,
) -> None:
    """Calibrate a judge against human labels and choose its decision threshold.

    A line is `{"row": "<trajectory_id>", "family": "direct", "check": "consistency", "verdict": "accept", "reviewer":
    "mia", "reason": ""}`; row may also be the row of a source (demo:photo/cat). A line with its own `question`,
    `choices`, `expected`, `thought` and `answer` needs no row. The judge is the endpoint of DARKROOM_JUDGE; its votes
    are stored in the ledger, so that a second run costs nothing. The result is DARKROOM_HOME/calibrations/JUDGE.json:
    families apply the threshold when their verdicts are next materialised, and dataset cards report the judge's
    precision, recall and kappa.

    `darkroom calibrate consistency --labelled reviewed.jsonl --precision 0.95 --votes 5`
    """
    from darkroom.assets.graph.resources import PolicyResource
    from darkroom.assets.terminal.reports import print_calibration
    from darkroom.pipelines.generation.judge_calibration import calibrate_judge

    with open_workspace() as workspace:
        settings = PolicyResource.from_environment("JUDGE")
        with progress_bar("rows") as bar:
            policy, n_votes = settings.for_judging("calibration", workspace), votes or settings.n_votes
            calibration = calibrate_judge(
                workspace, judge, labelled, policy=policy, n_votes=n_votes, target_precision=precision, progress=bar
            )
        print_calibration(CONSOLE, calibration)


def pre_annotate() -> None:
    """Have a model write draft annotations for annotators to correct.

    Needs `pre_annotate: pixels` (or `thousandths`: the frame of the model's boxes) in the campaign, and the endpoint in
    DARKROOM_POLICY, DARKROOM_POLICY_URL and DARKROOM_POLICY_MODEL. Drafts that break the campaign's rules are rejected;
    the next `darkroom annotate sync` shows the others, marked as a model's. Answers are paid for once.
    """
    from darkroom.annotation.rounds.campaign import Campaign
    from darkroom.annotation.rounds.image_pool import materialize_pool
    from darkroom.annotation.rounds.pre_annotations import materialize_pre_annotations
    from darkroom.assets.graph.resources import PolicyResource

    with open_workspace() as workspace:
        campaign = Campaign.load(workspace.annotation)
        policy = PolicyResource.from_environment().for_pre_annotating(workspace)
        materialize_pool(workspace, campaign, workspace.annotation)
        with progress_bar("pre-annotations") as progress:
            report = materialize_pre_annotations(workspace, campaign, policy, progress=progress)
        print_line(f"{report.n_out:,} pre-annotations, {report.n_in - report.n_out:,} rejected")
        for reason, n_rejects in report.reasons.items():
            print_line(f"  {reason} {n_rejects:,}")
