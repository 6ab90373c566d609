"""The flywheel in miniature: a tiny student's own rows, kept by sandbox and checks or not, as its next training data.

    python -m measurements.flywheel data/flywheel                             # every seed, arm and turn; a table
    python -m measurements.flywheel data/flywheel --seeds 0 1 2 --turns 2
    python -m measurements.flywheel data/flywheel --docs docs                 # docs/flywheel_figures.md and its figure

World, models, results and statistics are those of the ablations; the seed is the unit. Every model writes on the walls
of the turn after its own, once: these rows are the next turn's datasets, and what they cost is the model's measure.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from darkroom.pipelines.demo.images.street_signs import StreetSigns
from darkroom.pipelines.generation.flywheel import TurnReport, write_turn
from darkroom.pipelines.generation.recipes import Recipe, load_recipes, without_hints
from darkroom.pipelines.publishing.charts import new_figure
from darkroom.pipelines.publishing.turn_dataset import Keeps, TurnDataset
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.train.runs.command_line import guarded
from measurements.ablations import report, results
from measurements.ablations.catalog.starts import FRESH, SFT, TUNED
from measurements.ablations.evaluations import measures
from measurements.ablations.experiment import MEASURES, Arm, Comparison, Experiment, PaperRow
from measurements.ablations.models import MAX_PIXELS, Model, sft_settings
from measurements.ablations.runner import alone, run_arms
from measurements.ablations.world import ship

PAGE = "flywheel_figures.md"
HEAD = """# The flywheel: figures

Written by `python -m measurements.flywheel data/flywheel --docs docs`; [the flywheel](flywheel.md) says what is
compared.
The seed is the unit: differences are taken within a seed, the interval is Student's 95 % interval of their mean, and
*shown* means that the whole interval lies on the expected side. *Kept of drafted* and tokens are of the rows that a
model writes on the next turn's walls: the first student's are what the first turn trains on.
"""
KEEPS: tuple[Keeps, ...] = ("kept", "executed", "unfiltered")
SAYS = {
    "kept": "rows that passed every check",
    "executed": "every row whose code ran",
    "unfiltered": "every row with an answer",
}
N_WALLS, FIRST_WALLS = 30, 20_000
"""Of a turn, and the seed of the first turn's; training and held-out rows of the ablations are of 1000 and 6000."""
WRITING: Mapping[str, Any] = {"temperature": 0.5, "max_tokens": 128}
"""How a student writes its rows."""
TURN: Mapping[str, Any] = {"max_steps": 100, "learning_rate": 1e-3}
"""SFT of a turn, over ``models.SFT``; the same steps for every arm, however many rows it has."""
START_STEPS = 400


def first_student(steps: int = START_STEPS) -> Model:
    """The ablations' SFT model after ``steps`` steps: one that is often wrong, and often enough right."""
    return replace(SFT, name=f"start_{steps}", settings={**SFT.settings, "max_steps": steps})


@dataclass(frozen=True)
class Turn(Model):
    """The student ``start``, trained on those of its own rows that ``method`` keeps."""

    number: int = 1

    def record(self) -> list[dict[str, Any]]:
        """Also how rows are written, and on which walls."""
        own = {"writing": dict(WRITING), "walls": [N_WALLS, FIRST_WALLS + self.number]}
        return [*Model.record(self), own]

    def make(self, root: Path, seed: int) -> Path:
        """Trains where it is not complete, on what the model before wrote. Raises ``SystemExit`` without a row."""
        from darkroom.train.sft import finetune

        assert self.start is not None
        before = self.start.make(root, seed)
        write(self.start, self.number, root, seed)
        keeps: Any = self.method
        with _workspace(root, seed) as workspace:
            _, shipped = TurnDataset(workspace, _recipe(), [self.start.name], keeps=keeps).publish()
        if not shipped.n_rows:
            raise SystemExit(f"seed {seed}: {self.start.name} wrote no row for {self.name}: start from a better model")
        made = root / f"seed-{seed}" / self.name
        # an unfiltered row may have a token that straddles two turns
        settings = sft_settings(replace(self, settings={**self.settings, "drop_nonconforming": True}), seed)
        finetune([shipped.folder], before, made, settings)
        return made


def experiment(start: Model, n_turns: int = 2, seeds: Sequence[int] = FRESH[:3]) -> Experiment:
    """The arms of every turn, and what is compared."""
    arms = [Arm("start", "the first student", start)]
    comparisons: list[Comparison] = []
    before: dict[str, Model] = dict.fromkeys(KEEPS, start)
    for number in range(1, n_turns + 1):
        for keeps in KEEPS:
            before[keeps] = Turn(f"{keeps}_{number}", "sft", before[keeps], (), keeps, TURN, number)
            arms.append(Arm(f"{keeps}_{number}", SAYS[keeps], before[keeps]))
        kept, earlier = f"kept_{number}", "start" if number == 1 else f"kept_{number - 1}"
        for measure in ("right", "accepted"):
            comparisons += [Comparison(kept, f"{other}_{number}", measure) for other in KEEPS[1:]]
        comparisons += [Comparison(kept, earlier, "right"), Comparison(kept, earlier, "tokens_per_row", "less")]
    return Experiment(
        "flywheel",
        "The flywheel",
        PaperRow("", "", ""),
        tuple(arms),
        tuple(comparisons),
        ("right", "executed", "accepted", "tokens_per_row"),
        tuple(seeds),
    )


def write(model: Model, number: int, root: Path, seed: int) -> TurnReport:
    """The rows of a trained model on the walls of a turn; what is written is not written again."""
    from darkroom.train.models.local_policy import LocalPolicy, Sampling

    folder = root / f"seed-{seed}" / model.name
    source = StreetSigns(N_WALLS, FIRST_WALLS + number)
    with _workspace(root, seed) as workspace:

        def student() -> LocalPolicy:
            sampling = Sampling(**WRITING)
            return LocalPolicy(folder, workspace.images, sampling=sampling, batch_size=64, max_pixels=MAX_PIXELS)

        return write_turn(workspace, _recipe(), source, 0, model.name, student=student)


def run_seed(one: Experiment, root: Path, seed: int) -> None:
    """Every arm of a seed that is not complete, in turn, with a line each."""
    turns = {arm.name: getattr(arm.model, "number", 0) for arm in one.arms}

    def measured(arm: Arm) -> dict[str, float]:
        return measures(arm, root, seed) | cost(write(arm.model, turns[arm.name] + 1, root, seed))

    with alone(root / f"seed-{seed}"):
        run_arms(root, one, seed, measured)


def cost(written: TurnReport) -> dict[str, float]:
    """What a model's rows cost; all its tokens where none was kept, which is the least that a row can cost."""
    usage, n_kept = written.funnel.usage, written.funnel.n_accepted
    return {
        "accepted": written.accepted_share,
        "n_accepted": n_kept,
        "tokens_per_row": (usage.prompt_tokens + usage.completion_tokens) / max(n_kept, 1),
        **({} if written.seconds is None else {"seconds": written.seconds}),
    }


def page(one: Experiment, found: results.Figures) -> str:
    """The generated page."""
    lines = [report.comparison_line(each, report.compared(each, found)) for each in one.comparisons]
    return "\n".join([*_head(one, found), report.table(one, found), "", *lines, ""])


def plot(one: Experiment, found: results.Figures, path: Path) -> None:
    """A panel per measure, turns from left to right: a thin line per seed and arm, the arm's mean thick."""
    figure = new_figure(2.9, width=2.9 * len(one.measures))
    turns = range(1 + (len(one.arms) - 1) // len(KEEPS))
    for axes, key in zip(figure.subplots(1, len(one.measures), squeeze=False)[0], one.measures, strict=True):
        for keeps, colour in zip(KEEPS, report.COLOURS[1:], strict=True):
            arms = ["start", *(f"{keeps}_{number}" for number in turns[1:])]
            lines = [[found[arm][seed][key] for arm in arms] for seed in found["start"]]
            for line in lines:
                axes.plot(turns, line, color=colour, linewidth=0.7, alpha=0.6)
            axes.plot(turns, [fmean(values) for values in zip(*lines, strict=True)], "o-", color=colour, label=keeps)
        axes.set_title(MEASURES[key].label, fontsize=9)
        axes.set_ylim(0, 1.02 if MEASURES[key].is_share else None)
        axes.set_xticks(turns, ["start", *(f"turn {number}" for number in turns[1:])], fontsize=8)
        axes.tick_params(axis="y", labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})


def _head(one: Experiment, found: results.Figures) -> Iterator[str]:
    yield HEAD
    if tuned := sorted(set(found["start"]) & set(TUNED)):
        yield f"**No proof:** settings are chosen on the seeds 0 to 2; here {', '.join(map(str, tuned))}.\n"
    yield f"![{one.title}: a thin line per seed, a thick one for their mean](images/{one.name}.png)\n"


def _workspace(root: Path, seed: int) -> Workspace:
    return Workspace.from_environment({"DARKROOM_HOME": str(root / f"seed-{seed}" / "flywheel")})


def _recipe() -> Recipe:
    return without_hints(load_recipes()["crop"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m measurements.flywheel", description="The flywheel in miniature.")
    parser.add_argument("root", type=Path, help="where rows, checkpoints and results lie")
    parser.add_argument("--seeds", type=int, nargs="+", default=FRESH[:3])
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--start-steps", type=int, default=START_STEPS, help="of SFT of the first student")
    parser.add_argument("--docs", type=Path, help="write the page and its figure there, of what is complete")
    options = parser.parse_args()
    start = first_student(options.start_steps)
    one = experiment(start, options.turns, options.seeds)
    with guarded():
        if options.docs is None:
            with alone(options.root):
                for name in sorted({*(name for model in start.chain() for name in model.rows), "held_out"}):
                    ship(options.root, name)
            for seed in options.seeds:
                run_seed(one, options.root, seed)
    found = results.figures(options.root, one)
    if not found["start"]:
        parser.error(f"no seed of {options.seeds} is complete below {options.root}")
    print(page(one, found))
    if options.docs is not None:
        plot(one, found, options.docs / f"images/{one.name}.png")
        write_whole(options.docs / PAGE, page(one, found))


if __name__ == "__main__":
    main()
