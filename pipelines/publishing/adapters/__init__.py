"""Files that other trainers load, for rows that `darkroom environment serve` plays. They import nothing of Darkroom."""

from pathlib import Path

FOLDER = Path(__file__).parent
ADAPTERS = (
    "darkroom_verl.py",
    "darkroom_verl.yaml",
    "darkroom_verifiers.py",
    "darkroom_trl.py",
    "darkroom_ms_swift.py",
    "darkroom_openrlhf.py",
)


def adapter_files(*names: str) -> dict[str, str]:
    """The texts of adapters, by file name."""
    return {name: (FOLDER / name).read_text(encoding="utf-8") for name in names}
