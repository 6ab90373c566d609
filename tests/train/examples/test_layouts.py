"""The exports for TRL train exactly what the training program trains."""

import pytest
from datasets import load_dataset

from darkroom.pipelines.publishing.layouts import LAYOUTS
from darkroom.pipelines.publishing.layouts.export_source import find_source
from darkroom.pipelines.publishing.layouts.exporter import export
from darkroom.train.examples.encoding import open_reader

TEMPLATES = {"qwen2_5_vl": "chat_template.jinja", "qwen3_vl": "chat_template_qwen3_vl.jinja"}


@pytest.mark.parametrize("layout", ["turns", "inline"])
def test_the_labels_of_an_exported_row_are_those_of_the_row_itself(dataset, rows, model, tmp_path, layout):
    from trl.trainer.sft_trainer import DataCollatorForVisionLanguageModeling

    reader = open_reader(model, layout=layout)

    made = export(find_source(str(dataset), tmp_path, split="train"), LAYOUTS[f"trl_{layout}"], tmp_path / "out")
    template = (made.folder / TEMPLATES[model.name]).read_text()
    collate = DataCollatorForVisionLanguageModeling(
        reader.processor, max_length=None, assistant_only_loss=True, chat_template=template
    )
    files = str(made.folder / "train.parquet")
    exported = load_dataset("parquet", data_files=files, split="train", cache_dir=str(tmp_path / "cache"))
    assert len(exported) == len(rows)
    for there, here in zip(exported, rows, strict=True):
        batch, expected = collate([there]), reader.read([here])
        assert batch["input_ids"].tolist() == expected["input_ids"].tolist()
        assert batch["labels"].tolist() == expected["labels"].tolist()
