"""Objects on S3, GCS or Azure through obstore, with a cache on this host of objects that were mapped or written.

Invariant: no text and no error contains a credential. Errors of obstore are reduced to their text, redacted, and raised
again without their cause.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, BinaryIO

import obstore
import obstore.store
import pyarrow as pa
from obstore import exceptions as refused

from rejoinder.store.objects.object_cache import Cache, default_folder
from rejoinder.store.objects.object_store import CLOCK, Entry, Option
from rejoinder.store.objects.storage_failure import NoObjectError, RefusedError

_CONFIG = {
    "s3": {
        "endpoint": "endpoint",
        "region": "region",
        "key": "access_key_id",
        "secret": "secret_access_key",
        "token": "session_token",
    },
    "gs": {"endpoint": "base_url", "service_account": "service_account"},
    "az": {"endpoint": "endpoint", "account": "account_name", "key": "account_key"},
}
_SECRETS = ("key", "secret", "token")
_PART = 16 << 20
_CACHE_BYTES = 20 << 30
_RETRY_SECONDS = 60

# obstore's threads do not survive a fork: a child whose parent had used them would wait forever.
_first_pid: int | None = None


class Remote:
    """Objects below one prefix of one bucket."""

    def __init__(self, scheme: str, place: str, options: Mapping[str, Option]) -> None:
        _refuse_after_fork()
        self._secrets = [str(options[name]) for name in _SECRETS if options.get(name)]
        config: Any = {key: str(options[name]) for name, key in _CONFIG[scheme].items() if name in options}
        patience = timedelta(seconds=float(options.get("retry_seconds", _RETRY_SECONDS)))
        with self._redacted_errors():
            self._store = obstore.store.from_url(
                f"{scheme}://{place}",
                config=config,
                client_options={"allow_http": _truth(options.get("allow_http", False))},
                retry_config={"retry_timeout": patience},
            )
        origin = f"{scheme}://{place} {options.get('endpoint', '')}"
        self._cache = Cache(
            default_folder() if "cache_dir" not in options else str(options["cache_dir"]),
            hashlib.blake2b(origin.encode(), digest_size=8).hexdigest(),
            int(options.get("cache_bytes", _CACHE_BYTES)),
        )

    def put(self, name: str, data: memoryview) -> None:
        with self._redacted_errors():
            obstore.put(self._store, name, bytes(data), use_multipart=False)

    def put_if_absent(self, name: str, data: memoryview) -> bool:
        with self._redacted_errors():
            try:
                obstore.put(self._store, name, bytes(data), mode="create")
            except (refused.AlreadyExistsError, refused.PreconditionError):
                return False
        return True

    def write(self, name: str, data: Sequence[memoryview]) -> None:
        with self._redacted_errors():
            if sum(map(len, data)) <= _PART:
                obstore.put(self._store, name, b"".join(data), use_multipart=False)
            else:
                obstore.put(self._store, name, iter(data), chunk_size=_PART, max_concurrency=4)
        self._cache.add(name, data)

    def get(self, name: str) -> bytes:
        with self._redacted_errors():
            return obstore.get(self._store, name).bytes().to_bytes()

    def map(self, name: str, size: int) -> pa.Buffer:
        def fetch(file: BinaryIO) -> None:
            with self._redacted_errors():
                for chunk in obstore.get(self._store, name).stream(min_chunk_size=_PART):
                    file.write(chunk)

        return self._cache.map(name, size, fetch)

    def size(self, name: str) -> int:
        with self._redacted_errors():
            return obstore.head(self._store, name)["size"]

    def entries(self, prefix: str) -> Iterator[Entry]:
        with self._redacted_errors():
            for chunk in obstore.list(self._store, prefix or None, chunk_size=1000):
                for meta in chunk:
                    yield Entry(meta["path"], meta["size"], meta["last_modified"].timestamp())

    def delete(self, names: Sequence[str]) -> None:
        with self._redacted_errors():
            try:
                obstore.delete(self._store, list(names))
            except FileNotFoundError:  # GCS and Azure stop at the first missing name
                for name in names:
                    with suppress(FileNotFoundError):
                        obstore.delete(self._store, name)
        for name in names:
            self._cache.drop(name)

    def drop_cached(self, name: str) -> None:
        self._cache.drop(name)

    def time(self) -> float:
        with self._redacted_errors():
            obstore.put(self._store, CLOCK, b"", use_multipart=False)
            return obstore.head(self._store, CLOCK)["last_modified"].timestamp()

    def sweep(self, older_than_seconds: float) -> None:
        self._cache.evict()

    @contextmanager
    def _redacted_errors(self) -> Iterator[None]:
        """Turn errors of obstore into `NoObjectError` or `RefusedError`, without credentials."""
        try:
            yield
        except (refused.BaseError, FileNotFoundError, ValueError) as error:
            text = str(error)
            if "NoSuchBucket" in text or "ContainerNotFound" in text:
                hint = "create the bucket, or correct its name"
                raise RefusedError(errno.ENXIO, "there is no such bucket", hint) from None
            if isinstance(error, FileNotFoundError):
                raise NoObjectError(errno.ENOENT, "no such object") from None
            if isinstance(error, (refused.PermissionDeniedError, refused.UnauthenticatedError)):
                hint = "check the credentials, and that they may read, write, list and delete here"
                raise RefusedError(errno.EACCES, self._text(error), hint) from None
            hint = "check endpoint, region, credentials and network, and run again; the last committed epoch is intact"
            raise RefusedError(errno.EIO, self._text(error), hint) from None

    def _text(self, error: Exception) -> str:
        text = " ".join(str(error).partition("Debug source")[0].split())
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text[:600]


def _truth(value: Option) -> bool:
    return str(value).lower() in ("true", "1", "yes")


def _refuse_after_fork() -> None:
    global _first_pid
    if _first_pid is None:
        _first_pid = os.getpid()
    elif _first_pid != os.getpid():
        raise RefusedError(
            errno.ENOTSUP,
            f"process {_first_pid} used an object store before it forked this process",
            "start processes with `spawn`, or fork before the first use of the state",
        )
