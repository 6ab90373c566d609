"""Whether there is a GPU that vLLM can use."""

import os
import shutil
import subprocess
from pathlib import Path


def has_nvidia_gpu(*, devices: Path = Path("/dev")) -> bool:
    """By the kernel's device files, or by ``nvidia-smi`` (WSL has no device files); False when all are hidden."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1"):
        return False
    return any(devices.glob("nvidia[0-9]*")) or _nvidia_smi_lists_one()


def _nvidia_smi_lists_one() -> bool:
    program = shutil.which("nvidia-smi")
    if program is None:
        return False
    try:
        listed = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=30, check=False)
    except subprocess.TimeoutExpired:  # a driver that hangs runs no model
        return False
    return listed.returncode == 0 and "GPU " in listed.stdout
