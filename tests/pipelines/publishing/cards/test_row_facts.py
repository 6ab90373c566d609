"""What a card says of who compared labels: found by 64 bits of an id, of several shards the last one's word."""

from __future__ import annotations

from darkroom.pipelines.publishing.cards.row_facts import RlFacts
from darkroom.pipelines.records import CheckedLabel, Grader, RLRow, Sample, Truth, Votes
from darkroom.pipelines.rl import labels
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace


def test_who_compared_a_label_is_the_last_shards_word(workspace: Workspace) -> None:
    partitions = ["streets-0000", "streets-0001"]
    by_model, by_person = (CheckedLabel("a", Votes("model", (True,), 1), who) for who in ("", "ann"))
    others = [CheckedLabel(f"id{n}", Votes("model", (True,), 1)) for n in range(300)]
    for partition, rows in zip(partitions, ([*others, by_model], [by_person]), strict=True):
        key = TableKey((labels.ASSET,), partition)
        workspace.tables.write(key, CheckedLabel, rows, [], inputs="", facts={"n_in": len(rows)})
    facts = RlFacts(workspace=workspace, partitions=partitions, annotators="people", from_drafts=frozenset())
    for sample_id in ("a", "id7", "unknown"):
        sample = Sample(sample_id, "streets", "1", "CC0", (), "Which?", (), "This", Truth(), "OCR")
        facts.add(RLRow(sample, Grader("text"), "public", "unknown", None, None, None), sample)
    of_labels = {who: n for what, who, n in facts.origins if what == "label compared with answers of"}
    assert of_labels == {"a person": 1, "model": 1, "not measured": 1}
