"""A home with crops, RL prompts and exports as a user ships them, which tests of the audit change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.generation.sandbox_sessions import Sandboxes
from darkroom.pipelines.publishing.layouts import layout_of
from darkroom.pipelines.publishing.layouts.export_source import find_source
from darkroom.pipelines.publishing.layouts.exporter import export
from darkroom.pipelines.publishing.rl_dataset import RlDataset
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.rl.candidates import Candidates
from darkroom.pipelines.rl.labels import CheckedLabels
from darkroom.pipelines.rl.necessity import ToolNecessities
from darkroom.pipelines.rl.pass_rates import PassRates
from darkroom.pipelines.rl.suitability import Suitability, SuitabilityLabels
from darkroom.pipelines.selection.screening import Screening
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.storage.workspace import Workspace
from tests.conftest import SmallSource
from tests.pipelines.publishing.shipping import PARTITION, ship
from tests.pipelines.rl.shards import Questions, answering, judging, taken_in
from tests.pipelines.rl.test_necessity import answer
from tests.pipelines.scripted import Scripted

TRAJECTORY_LAYOUTS = ("ms_swift", "ms_swift_inline", "llama_factory", "trl_turns", "verl_sft", "verl_rl", "openrlhf_rl")
PROMPT_LAYOUTS = ("trl_grpo", "verl_rl", "ms_swift_grpo", "easyr1", "openrlhf_rl")


class Shipped(NamedTuple):
    """Folders of a home."""

    home: Path
    sft: Path
    rl: Path
    exports: dict[str, Path]
    """By layout, those of prompts as ``rl/LAYOUT``."""

    def folder(self, name: str) -> Path:
        """``sft``, ``rl``, or an export by its name."""
        return {"sft": self.sft, "rl": self.rl, **self.exports}[name]


def shipped_home(home: Path) -> Shipped:
    """Ships five crops, one of them with choices, and nine prompts, with all that can be measured of them."""
    environment = {"DARKROOM_HOME": str(home)}
    with Workspace.from_environment(environment) as workspace:
        ship(workspace, SmallSource(extra=(_chosen("Which sign is it?", "B"),)))
        _, sft = SftDataset(workspace, load_recipes()["crop"], [PARTITION], n_replayed=None).publish()
    rl = _prompts(Workspace.from_environment(environment))
    exports = {name: _export(Path(str(sft.folder)), name, "trajectories", home) for name in TRAJECTORY_LAYOUTS}
    exports |= {f"rl/{name}": _export(rl, name, "prompts", home) for name in PROMPT_LAYOUTS}
    return Shipped(home, Path(str(sft.folder)), rl, exports)


def _chosen(question: str, answer: str) -> SourceRow:
    """A question with choices about an image of its own."""
    sign = list(SmallSource(n_rows=9).rows(0))[7]
    assert isinstance(sign, SourceRow)
    return replace(sign, row="row/chosen", question=question, answer=answer, choices=("A. S1X", "B. S7X"))


def _prompts(workspace: Workspace) -> Path:
    shard = taken_in(workspace, Questions(extra=(_chosen("Which sign is shown?", "B"),)))
    shard.materialize(Candidates(judge=judging(lambda turn: True)))
    shard.materialize(CheckedLabels(judge=answering(lambda turn: True, name="judge")))
    shard.materialize(PassRates(student=answering(lambda turn: bool(turn.seed % 2))))
    sandboxes = Sandboxes(workspace.images, workspace.ledger)
    shard.materialize(ToolNecessities(student=Scripted(answer), sandboxes=sandboxes, n_forced=1))
    shard.materialize(Suitability(judge=judging(lambda turn: True)))
    shard.materialize(SuitabilityLabels())
    dataset = RlDataset(workspace, [shard.partition], [], Screening(workspace), validation_share=0)
    _, shipped = dataset.publish()
    return Path(str(shipped.folder))


def _export(folder: Path, layout: str, kind: str, home: Path) -> Path:
    source = find_source(str(folder), home, split="train").in_protocol(None, None)
    out = home / "exports" / kind / layout
    export(source, layout_of(layout, source.kind), out)
    return out
