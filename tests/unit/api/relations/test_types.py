"""A type checker tells a join that the matrix allows from one that it forbids, in a user's own code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import rejoinder as rj
from rejoinder.testing import Driver

home = Driver()
s, other = rj.Stream.of(home, "s"), rj.Stream.of(home, "other")
t, u = rj.Table.of(home, "t"), rj.Table.of(home, "u")
w: rj.WindowedTable = s.group_by("k").windowed(rj.tumble("1 day")).count()
x: rj.WindowedTable = other.group_by("k").windowed(rj.hop("1 day", every="1 hour")).sum("v")

a: rj.Stream = s.join(other, on="k", within="1 minute")
b: rj.Stream = s.left_join(other, on=["k"], within=("0 seconds", "1 minute"))
c: rj.Stream = s.outer_join(other, on={"k": "id"}, within=5)
d: rj.Stream = s.left_join(t)
e: rj.Stream = s.left_join(w, window="ts")
f: rj.Table = t.join(u)
g: rj.Table = t.left_join(u, on={"upper(v)": "k"})
h: rj.Table = t.outer_join(u)
i: rj.Table = t.left_join(w, window="ts")
j: rj.WindowedTable = w.left_join(t)
k: rj.WindowedTable = w.join(x)
l: rj.WindowedTable = w.left_join(x, shift="-7 days")
m: rj.WindowedTable = w.outer_join(x)
n: rj.Table = s.to_table("k").filter("v > 1").through("n")
o: rj.Stream = t.to_stream().select("k").through("o")
p: rj.Stream = w.to_stream("k", "window")
q: rj.Table = s.group_by("k").count()
r: rj.Table = t.group_by("v").sum("n")
z: rj.Relation = s.relation().asof_join(t, match="ts >= since").right_join(w, on="a = b").emit("FINAL")

s.join(t, on="k")  # forbidden: arg-type
s.outer_join(t, on="k", within="1 minute")  # forbidden: arg-type
s.join(w, on="k")  # forbidden: arg-type
s.outer_join(w, on="k")  # forbidden: arg-type
s.left_join(other, on="k")  # forbidden: call-overload
s.left_join(t, within="1 minute")  # forbidden: call-overload
s.left_join(w)  # forbidden: call-overload
s.right_join(other, on="k")  # forbidden: attr-defined
t.join(s)  # forbidden: arg-type
t.left_join(s)  # forbidden: call-overload
t.outer_join(s)  # forbidden: arg-type
t.join(w)  # forbidden: arg-type
t.outer_join(w)  # forbidden: arg-type
t.left_join(w)  # forbidden: call-overload
t.right_join(u)  # forbidden: attr-defined
w.join(s)  # forbidden: arg-type
w.left_join(s)  # forbidden: call-overload
w.outer_join(s)  # forbidden: arg-type
w.join(t)  # forbidden: arg-type
w.outer_join(t)  # forbidden: arg-type
w.right_join(x)  # forbidden: attr-defined
w.to("topic")  # forbidden: attr-defined
w.through("topic")  # forbidden: attr-defined
rj.WindowedTable.of(home, "w")  # forbidden: attr-defined
t.to_table("k")  # forbidden: attr-defined
s.to_stream()  # forbidden: attr-defined
w.group_by("k")  # forbidden: attr-defined
t.group_by("v").windowed(rj.tumble("1 day"))  # forbidden: attr-defined
wrong: rj.Table = s.left_join(t)  # forbidden: assignment
"""


@pytest.mark.slow
def test_a_type_checker_finds_every_forbidden_join_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "flow.py"
    file.write_text(CODE, encoding="utf-8")
    cache = Path(__file__).parents[4] / ".mypy_cache" / "snippets"  # options differ from those of `make check`
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--cache-dir", str(cache), str(file)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    found = {
        int(line): code
        for line, code in re.findall(r"flow\.py:(\d+): error: .*\[([a-z-]+)\]$", run.stdout, re.MULTILINE)
    }
    lines = enumerate(CODE.splitlines(), start=1)
    wanted = {at: text.rpartition("forbidden: ")[2] for at, text in lines if "# forbidden: " in text}
    assert found == wanted, run.stdout + run.stderr
