"""Files in the test driver: those that Spark would find, in the epochs in which it would take them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rejoinder.connectors.files import reading
from rejoinder.errors import MissingInput
from rejoinder.testing import Driver

NAMES = ("1.json", "2.json", "3.txt", "_hidden.json", ".4.json", "a/5.json", "a/b/6.json", "_c/7.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file a second, each with its number in a row."""
    for at, name in enumerate(NAMES):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"id": {at}}}\n')
        os.utime(path, (at, at))
    return tmp_path / "in"


def driver_on(path: object, **options: str) -> Driver:
    driver = Driver()
    listed = "".join(f", {name} '{value}'" for name, value in options.items())
    driver.sql(
        f"CREATE STREAM s (id INT) USING json OPTIONS (path '{path}'{listed}); CREATE VIEW v AS SELECT id FROM s"
    )
    return driver


def epochs(driver: Driver) -> list[list[int]]:
    """The numbers of the files that each epoch took."""
    taken = []
    while changes := driver.step()["v"]:
        taken.append([row["id"] for row, _ in changes])
    return taken


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [[0, 1, 2]]),
        ({"pathGlobFilter": "*.json"}, [[0, 1]]),
        ({"pathGlobFilter": "[23].{json,txt}"}, [[1, 2]]),
        ({"recursiveFileLookup": "true"}, [[0, 1, 2, 5, 6]]),
        ({"recursiveFileLookup": "true", "pathGlobFilter": "*.json", "maxFilesPerTrigger": "3"}, [[0, 1, 5], [6]]),
        ({"maxFilesPerTrigger": "2", "latestFirst": "true"}, [[1, 2], [0]]),
        ({"maxBytesPerTrigger": "20"}, [[0, 1], [2]]),
        ({"maxBytesPerTrigger": "1"}, [[0], [1], [2]]),
    ],
)
def test_options_choose_files(folder: Path, options: dict[str, str], expected: list[list[int]]) -> None:
    assert epochs(driver_on(folder, **options)) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("*.json", [[0, 1]]), ("{1,3}.*", [[0, 2]]), ("a*", [[5]]), ("nothing*", []), ("2.json", [[1]])],
)
def test_a_path_may_be_a_pattern(folder: Path, pattern: str, expected: list[list[int]]) -> None:
    assert epochs(driver_on(f"{folder}/{pattern}")) == expected


def test_a_folder_that_is_there_is_no_pattern(folder: Path) -> None:
    odd = folder.parent / "in[1]"
    folder.rename(odd)
    assert epochs(driver_on(odd)) == [[0, 1, 2]]


def test_a_path_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(MissingInput, match="does not exist"):
        driver_on(folder / "nothing").step()


@pytest.mark.parametrize(("option", "value"), [("cleanSource", "delete"), ("maxFileAge", "1d")])
def test_what_counts_on_spark_only_is_said(folder: Path, option: str, value: str) -> None:
    with pytest.warns(UserWarning, match=f"`{option}` counts on Spark only"):
        driver = driver_on(folder, **{option: value})
    assert epochs(driver) == [[0, 1, 2]] and (folder / "1.json").exists()


def test_a_file_that_cannot_be_read_is_named_and_other_rows_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "1.json").write_text('{"id": 1}\n')
    driver = driver_on(tmp_path)
    driver.sql("CREATE STREAM m (id INT); CREATE VIEW w AS SELECT id FROM m")
    driver.insert("m", {"id": 2})

    def failing(path: str) -> object:
        raise OSError(5, "input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(reading, "open_path", failing)
        with pytest.raises(MissingInput, match="cannot be read") as raised:
            driver.step()
    assert "input/output error" in (raised.value.detail or "")
    driver.step()
    assert driver.table("v") == [{"id": 1}] and driver.table("w") == [{"id": 2}]
