"""A tiny random Qwen2.5-VL or Qwen3-VL, made here: model, tokenizer and processor of a quarter of a million weights.

    darkroom train tiny data/models/tiny --dataset data/exports/sft --arch qwen3_vl

It is for tests and for the demo, where every step of training must be real and take milliseconds. It knows nothing.
The tokenizer is trained on the texts of ``--dataset`` (and a few of its own), so that their sequences are short. The
same seed and texts give the same bytes.
"""

import json
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import uuid4

import typer
import yaml

from darkroom.pipelines.command_line.errors import program_of
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.atomic_write import replace_folder
from darkroom.train.examples.encoding import conversation
from darkroom.train.models.loading import VISION_TOKENS, save_processor
from darkroom.train.runs.command_line import guarded
from darkroom.train.runs.options import local_datasets

LINE_SPLIT = r"</?[a-z_]+>|[^<\n]+\n?|\n|<"
"""Tags and lines: a recurring line becomes one token, so that a few steps are enough to learn to write code."""
DIGIT_SPLIT = r"</?[a-z_]+>|(?<!\d)\d(?=\d{2}(?!\d))|(?<=\D\d)\d(?=\d(?!\d))|(?<=\D\d\d)\d(?!\d)"
"""Tags, and every digit of a number of three digits, are tokens of their own: a coordinate is copied digit by digit."""
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", *VISION_TOKENS)
VOCABULARY = 3000
LONGEST_SIDE = 4
SPREAD = 0.02
"""Standard deviation of the weights, as Qwen has it."""
ArchName = Literal["qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe"]
_TINY = yaml.safe_load(Path(__file__).with_name("tiny.yaml").read_text())
MARKER = "tiny.json"
ARCHITECTURES: dict[ArchName, dict[str, Any]] = _TINY["architectures"]
"""The particulars of each model type: patch, vision, text, rope."""


def build(
    out: Path,
    *,
    seed: int = 0,
    texts: Iterable[str] = (),
    split: str = LINE_SPLIT,
    arch: ArchName = "qwen2_5_vl",
    spread: float = SPREAD,
) -> bool:
    """Build the checkpoint in ``out``; False when it is there already, made from the same arguments. ``spread`` is the
    standard deviation of the weights. With the default a model this small hardly learns to see; with 0.1 it does."""
    corpus = [*_TINY["texts"], bundled_prompt("thyme").system, *texts]
    sizes = [VOCABULARY, LONGEST_SIDE, _TINY["vision"], _TINY["text"], _TINY["rope"], ARCHITECTURES[arch]]
    recipe = digest([seed, split, spread, arch, sizes, corpus])
    marker = out / MARKER
    if marker.is_file() and json.loads(marker.read_text())["recipe"] == recipe:
        return False
    part = out.with_name(f".{out.name}.{uuid4().hex}")
    tokenizer = _tokenizer(corpus, split)
    _model(tokenizer, seed, arch, spread).save_pretrained(part)
    save_processor(_processor(tokenizer, arch), part, model_type=arch)
    (part / MARKER).write_text(json.dumps({"recipe": recipe, "seed": seed}))
    replace_folder(out, part)
    return True


def dataset_texts(*folders: Path) -> Iterator[str]:
    from darkroom.pipelines.publishing.dataset_reader import read_files
    from darkroom.pipelines.publishing.features import check_columns
    from darkroom.train.examples.datasets import dataset_files

    files = dataset_files(*folders)
    for file in files:
        check_columns(file, "trajectories")
    for row in read_files(files, without=("images", "videos")):
        for message in conversation(row, layout="turns"):
            yield "".join(part.get("text", "") for part in message["content"])


def _tokenizer(texts: list[str], split: str) -> Any:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.normalizer = normalizers.NFC()
    pieces = pre_tokenizers.Split(Regex(split), behavior="isolated", invert=False)
    of_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bpe.pre_tokenizer = pre_tokenizers.Sequence([pieces, of_bytes])
    bpe.decoder = decoders.ByteLevel()
    size, alphabet = VOCABULARY - len(SPECIAL_TOKENS), sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=alphabet)
    bpe.train_from_iterator(texts, trainer=trainer)
    bpe.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS])
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=bpe,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=[t for t in SPECIAL_TOKENS if t not in ("<|im_end|>", "<|endoftext|>")],
        model_max_length=8192,
        clean_up_tokenization_spaces=False,
        padding_side="left",
    )


def _model(tokenizer: Any, seed: int, arch: ArchName, spread: float) -> Any:
    import torch
    from transformers import AutoConfig, AutoModelForImageTextToText

    token = tokenizer.convert_tokens_to_ids
    end, pad = token("<|im_end|>"), token("<|endoftext|>")
    shape, initializer = ARCHITECTURES[arch], {"initializer_range": spread}
    ends = {"vocab_size": len(tokenizer), "eos_token_id": end, "pad_token_id": pad}
    rope = {"rope_parameters": {**_TINY["rope"], **shape["rope"]}}
    config = AutoConfig.for_model(
        arch,
        text_config={**_TINY["text"], **ends, **rope, **shape["text"], **initializer},
        vision_config={**_TINY["vision"], "patch_size": shape["patch"], **shape["vision"], **initializer},
        **initializer,
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
        tie_word_embeddings=True,
    )
    torch.manual_seed(seed)  # transformers' own `set_seed` lies beside its trainer, which imports PEFT
    model = AutoModelForImageTextToText.from_config(config)  # type: ignore[no-untyped-call]
    model.generation_config.eos_token_id = [end, pad]
    model.generation_config.pad_token_id = pad
    return model


def _processor(tokenizer: Any, arch: ArchName) -> Any:
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    from darkroom.train.models.image_only import ImageOnlyProcessor

    patch = ARCHITECTURES[arch]["patch"]
    unit = (2 * patch) ** 2
    size = {"shortest_edge": unit, "longest_edge": unit * LONGEST_SIDE**2}
    images = Qwen2VLImageProcessorPil(patch_size=patch, merge_size=2, temporal_patch_size=2, size=size)
    # its path, without an import of TRL, which would take a second
    template = Path(str(distribution("trl").locate_file(f"trl/chat_templates/{arch.removesuffix('_moe')}.jinja")))
    return ImageOnlyProcessor(image_processor=images, tokenizer=tokenizer, chat_template=template.read_text())


def main(
    out: Annotated[Path, typer.Argument(help="Folder to write; replaced when it was made from other texts.")],
    seed: Annotated[int, typer.Option(help="Seed of the weights.")] = 0,
    dataset: Annotated[list[str] | None, typer.Option(help="Its texts train the tokenizer; may be repeated.")] = None,
    arch: Annotated[ArchName, typer.Option(help="The model's type.")] = "qwen2_5_vl",
    digits: Annotated[bool, typer.Option("--digits", help="Each digit of a coordinate is a token.")] = False,
    spread: Annotated[
        float, typer.Option(min=0.0, help="Standard deviation of the weights; with 0.1 it learns to see.")
    ] = SPREAD,
) -> None:
    """Build a tiny random Qwen2.5-VL or Qwen3-VL checkpoint, offline."""
    with guarded():
        texts, split = dataset_texts(*local_datasets(dataset or ())), DIGIT_SPLIT if digits else LINE_SPLIT
        built = build(out, seed=seed, texts=texts, split=split, arch=arch, spread=spread)
        typer.echo(f"{out}: {'built' if built else 'already complete, nothing to do'}")


if __name__ == "__main__":
    program_of(main)()
