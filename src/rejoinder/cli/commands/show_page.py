"""`rejoinder ui`: serve the page of a state until Ctrl-C; `rejoinder run --ui`: while a flow runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rejoinder.cli.commands.open_state import refuse_missing
from rejoinder.cli.terminal.screen import note, out
from rejoinder.store.objects.object_store import open_store


def show_page(place: str, address: str | None, port: int, token: str | None, names: tuple[str, ...]) -> None:
    """Serve the page of a state until Ctrl-C. Raises `NotCommitted` if there is no state."""
    from rejoinder.web.access import access_of
    from rejoinder.web.server import serving

    store = open_store(place)
    access = access_of(address, port, token, names)
    refuse_missing(place, store)
    with serving(store, access) as site:
        site.status()  # plans a large flow before somebody waits for the first page
        out.print(access.url, soft_wrap=True, highlight=False, markup=False)
        note("Ctrl-C stops the page; the flow is not affected")
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            note("stopped")


@contextmanager
def page_shown(place: str, port: int | None) -> Iterator[None]:
    """Serve the page of a state on this machine while the block runs; without a port, only run the block."""
    if port is None:
        yield
        return
    from rejoinder.web.access import access_of
    from rejoinder.web.server import serving

    access = access_of(None, port, None)
    with serving(open_store(place), access):
        note(f"the page of this flow: {access.url}")
        yield
