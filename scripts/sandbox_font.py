"""Makes `sandbox/_guest/fonts/DarkroomSans.ttf`: DejaVu Sans, and for what it lacks Droid Sans Fallback.

    python -m scripts.sandbox_font DroidSansFallback.ttf

DejaVu Sans comes with matplotlib, Droid Sans Fallback with Debian's package fonts-droid-fallback. Without hints, which
would double the file. Their licences lie beside the result.
"""

import sys
import tempfile
from pathlib import Path

from fontTools.merge import Merger, Options
from fontTools.subset import Options as SubsetOptions, Subsetter
from fontTools.ttLib import TTFont
from fontTools.ttLib.scaleUpem import scale_upem
from matplotlib import get_data_path

FONT = Path("sandbox/_guest/fonts/DarkroomSans.ttf")
_UNITS = 2048
_DESIGN_NAMES = {1: "Darkroom Sans", 2: "Regular", 4: "Darkroom Sans", 6: "DarkroomSans"}


def main(droid: str) -> None:
    characters: set[int] = set()
    with tempfile.TemporaryDirectory() as folder:
        parts = []
        for n, path in enumerate((f"{get_data_path()}/fonts/ttf/DejaVuSans.ttf", droid)):
            font = TTFont(path)
            new = set(font.getBestCmap()) - characters
            characters |= new
            options = SubsetOptions(hinting=False, notdef_outline=True, layout_features=[] if n else ["*"])
            options.drop_tables += ["FFTM", "vhea", "vmtx"]
            subsetter = Subsetter(options)
            subsetter.populate(unicodes=new)
            subsetter.subset(font)
            scale_upem(font, _UNITS)
            parts.append(f"{folder}/{n}.ttf")
            font.save(parts[-1])
        merged = Merger(options=Options(drop_tables=["vhea", "vmtx"])).merge(parts)
    merged["name"].names = []
    for number, text in _DESIGN_NAMES.items():
        merged["name"].setName(text, number, 3, 1, 0x409)
    merged.save(FONT)


if __name__ == "__main__":
    main(*sys.argv[1:])
