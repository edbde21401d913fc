"""Where the command starts: Ctrl-C while Python still loads ends it as Ctrl-C does later, without a traceback."""

from __future__ import annotations

import sys

INTERRUPTED = 130


def main() -> None:
    """Load the commands and run them; the process ends here."""
    try:
        from rejoinder.cli.main import app

        app()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        raise SystemExit(INTERRUPTED) from None


if __name__ == "__main__":
    main()
