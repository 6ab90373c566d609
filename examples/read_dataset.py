"""Reads a shipped dataset without Darkroom: the first trajectory as text, its images beside it.

python examples/read_dataset.py data/datasets/sft/crop
"""

import sys
from pathlib import Path

from datasets import load_dataset


def main(folder: str, output: Path) -> None:
    """Prints question, rounds and answer of the first row and saves its images to ``output``."""
    rows = load_dataset("parquet", data_files=f"{folder}/train*.parquet", split="train")
    row = rows[0]
    print(f"{len(rows)} rows; the first: {row['question']}")
    for number, turn in enumerate(row["rounds"], start=1):
        print(f"\nround {number}: {turn['thought']}\n{turn['code']}\n-> {turn['observation']['text'].strip()}")
    print(f"\n{row['final_thought']}\nanswer: {row['answer']}")
    output.mkdir(parents=True, exist_ok=True)
    for number, image in enumerate(row["images"]):  # the question's image, then those of the observations
        image.save(output / f"{number}.png")
    print(f"{len(row['images'])} images in {output}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else "row_images"))
