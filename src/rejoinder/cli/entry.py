"""The entry point of the command. Ctrl-C while modules are imported ends it without a traceback, as later."""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130


def main() -> None:
    """Import the commands and run them, then exit."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the parent process has closed it
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - until the process ends
    try:
        from rejoinder.cli.main import app

        app()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        raise SystemExit(INTERRUPTED) from None


if __name__ == "__main__":
    main()
