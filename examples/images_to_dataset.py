"""From a folder of images with questions to a dataset of verified crops, in Python and without Dagster.

    python examples/images_to_dataset.py photos           # photos/questions.jsonl beside the images

A line of questions.jsonl: {"image": "a.jpg", "question": "…", "answer": "…", "boxes": [[x1, y1, x2, y2]]}. The embedded
policy writes the trajectories; with DARKROOM_POLICY=openai and an endpoint a model does (docs/policies.md).
"""

import sys
from pathlib import Path

from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.models.policies import oracle_policy
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.sources.columns import Columns
from darkroom.pipelines.sources.jsonl import JsonLinesSource
from darkroom.pipelines.storage.workspace import Workspace

PARTITION = "photos-0000"


def main(folder: Path) -> None:
    """Makes the dataset ``crop`` in the workspace (``DARKROOM_HOME``) and prints what became of the rows."""
    columns = Columns(images="image", boxes="boxes")
    licence = "CC-BY-4.0"  # yours; rows without one do not ship
    source = JsonLinesSource("photos", folder / "questions.jsonl", folder, columns, license=licence)
    recipe = load_recipes()["crop"]
    with Workspace.from_environment() as workspace:
        reports = [engine.intake(workspace, source, 0, PARTITION)]
        family, policy = Family(workspace, recipe, PARTITION), oracle_policy(recipe.family, revision=recipe.digest)
        reports += [family.draft(policy), family.run(policy), family.check(), family.keep()]
        for report in reports:
            counts = f"{report.n_in} in, {report.n_out} out, {report.n_rejected} rejected"
            print(f"{report.key}: {counts} {report.reasons or ''}")
        dataset = SftDataset(workspace, recipe, [PARTITION])
        dataset.publish()
        print(f"dataset: {dataset.folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
