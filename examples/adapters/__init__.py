"""Files that other trainers load, for rows that `darkroom environment serve` plays. None of them needs Darkroom."""

from pathlib import Path

FOLDER = Path(__file__).parent
ADAPTERS = tuple(sorted(path.name for path in FOLDER.glob("darkroom_*")))


def adapter_files(*names: str) -> dict[str, str]:
    """The texts of adapters, by file name."""
    return {name: (FOLDER / name).read_text(encoding="utf-8") for name in names}
