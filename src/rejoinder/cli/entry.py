"""Where the command starts: Ctrl-C while Python still loads ends it as Ctrl-C does later, without a traceback."""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130


def main() -> None:
    """Load the commands and run them; the process ends here."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started the command
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - until the process ends
    try:
        from rejoinder.cli.main import app

        app()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        raise SystemExit(INTERRUPTED) from None


if __name__ == "__main__":
    main()
