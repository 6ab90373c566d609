"""The program ``darkroom``, also as ``python -m darkroom.assets.main``. Ctrl-C ends its imports without a traceback."""

import sys


def main() -> None:
    """Runs the command line, and ends the process."""
    try:
        from darkroom.assets.cli import app
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="darkroom")


if __name__ == "__main__":
    main()
