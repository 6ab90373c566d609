"""The Linux calls that the sandbox is built from, through ctypes; imports nothing of the rest of the package."""
