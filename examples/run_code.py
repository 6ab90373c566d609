"""Runs model-written code on an image in the sandbox: state lives across calls, images come back, errors are data.

python examples/run_code.py photo.jpg
"""

import sys
from pathlib import Path

from darkroom.sandbox import Limits, SandboxPool

ROUNDS = (
    "width, height = image_size\nprint(width, height)",
    "part = image_clue_0.crop((0, 0, width // 2, height // 2))\npart.show()",
    "import socket\nsocket.create_connection(('example.com', 80))",
    "while True:\n    pass",
)


def main(image: str, output: Path) -> None:
    """Runs the rounds in one session; shown images are written to ``output``."""
    output.mkdir(parents=True, exist_ok=True)
    with (
        SandboxPool(limits=Limits(seconds=2, memory_mb=512)) as pool,  # one per process
        pool.group(images=[image]) as group,  # one prompt: its image is decoded once
        group.session(seed=7) as session,  # one rollout
    ):
        for number, code in enumerate(ROUNDS, start=1):
            observation = session.run(code)
            print(f"round {number}: {observation.status}: {observation.error or observation.text.strip()}")
            for shown in observation.images:
                path = output / f"round_{number}.png"
                shown.pixels.save(path)
                print(f"  showed {shown.pixels.width}x{shown.pixels.height} pixels: {path}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else "shown"))
