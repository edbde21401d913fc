"""Random expression trees: typed calls of functions over the columns of `awkward_values.py`, as SQL text.

A tree is drawn from its type down. Each rule is a text with the types of its arguments in braces; a leaf is a column or
a literal. Functions whose last digit Java and DuckDB compute differently are left out: the corpus compares them alone.
"""

from __future__ import annotations

import random
import re

LEAVES = {
    "bool": "b; c; true; false; cast(null as boolean)",
    "int": "i; j; k; 0; 1; -3; 7; 2147483647; cast(null as int)",
    "big": "l; 10L; -1L; 9223372036854775807L; cast(null as bigint)",
    "dec": "dec; tiny; 1.50; -0.01; cast(null as decimal(6, 2))",
    "dbl": "d; e; 0.5D; -2.0D; cast(null as double)",
    "str": "s; p; n; u; 'abc'; ''; 'Ä b'; cast(null as string)",
    "date": "dt; dt2; date '2024-02-29'; date '1969-12-31'; cast(null as date)",
    "ts": "ts; timestamp '2024-02-29 23:59:59.999999'; timestamp '1969-12-31 00:00:01'; cast(null as timestamp)",
    "arr": "arr; array(1, 2, null); array(3); cast(null as array<int>)",
}
RULES = {
    "bool": """
        not {bool}; ({bool} and {bool}); ({bool} or {bool}); ({int} = {int}); ({int} < {big}); ({dec} >= {int})
        ({str} = {str}); ({str} < {str}); ({date} <= {date}); ({ts} > {ts}); ({ts} >= {date}); ({dbl} < {dbl})
        ({dbl} <=> {dbl}); {int} is null; {str} is not null; ({big} <=> {int}); ({int} in ({int}, {int}))
        {str} like 'a%'; contains({str}, {str}); startswith({str}, {str}); coalesce({bool}, {bool})
        if({bool}, {bool}, {bool}); isnan({dbl}); array_contains({arr}, {int}); exists({arr}, v -> v > {int})
        ({arr} = {arr}); forall({arr}, v -> v < {int})
    """,
    "int": """
        ({int} + {int}); ({int} - {int}); ({int} * {int}); ({int} % {int}); pmod({int}, {int}); abs({int})
        -({int}); length({str}); cast({big} as int); cast({dec} as int); cast({bool} as int); year({date})
        month({ts}); hour({ts}); day({date}); dayofweek({date}); weekofyear({ts}); datediff({date}, {date})
        coalesce({int}, {int}); if({bool}, {int}, {int}); size({arr}); greatest({int}, {int}); least({int}, {int})
        try_add({int}, {int}); instr({str}, {str}); locate({str}, {str}); ascii({str}); levenshtein({str}, {str})
        bit_count({int}); ({int} & {int}); ({int} | {int}); ({int} ^ {int}); ~({int}); shiftleft({int}, 3)
        shiftright({int}, 2); element_at({arr}, 1); array_max({arr})
        case when {bool} then {int} when {bool} then {int} end; aggregate({arr}, 0, (x, v) -> x + v)
        quarter({date}); unix_date({date}); try_cast({str} as int); cast({dbl} as int); array_min({arr})
    """,
    "big": """
        ({big} + {int}); ({big} - {big}); ({big} * {int}); ({int} div {int}); ({big} div {big}); ({big} % {big})
        cast({int} as bigint); cast({ts} as bigint); unix_seconds({ts}); unix_micros({ts}); coalesce({big}, {big})
        if({bool}, {big}, {big}); abs({big}); try_subtract({big}, {big}); try_multiply({big}, {big})
        greatest({big}, {int}); crc32(encode({str}, 'utf-8')); xxhash64({str}, {int}); cast({dec} as bigint)
        array_position({arr}, {int}); timestampdiff(hour, {ts}, {ts})
    """,
    "dec": """
        ({dec} + {dec}); ({dec} - {int}); ({dec} * {dec}); abs({dec}); -({dec}); round({dec}, 1)
        coalesce({dec}, {dec}); ({dec} / {dec}); cast({int} as decimal(12, 2)); cast({big} as decimal(20, 0))
        if({bool}, {dec}, {dec}); greatest({dec}, {dec}); ({dec} % {dec}); bround({dec}, 1); floor({dec})
        ceil({dec}); try_cast({str} as decimal(10, 2)); cast({dec} as decimal(12, 1)); least({dec}, {int})
    """,
    "dbl": """
        ({dbl} + {dbl}); ({dbl} - {dbl}); ({dbl} * {dbl}); ({dbl} / {dbl}); abs({dbl}); -({dbl})
        cast({int} as double); ({int} / {int}); coalesce({dbl}, {dbl}); if({bool}, {dbl}, {dbl})
        greatest({dbl}, {dbl}); least({dbl}, {dbl}); nanvl({dbl}, {dbl}); sqrt({dbl}); cast({dec} as double)
        signum({dbl}); rint({dbl}); try_divide({dbl}, {dbl}); cast({ts} as double); round({dbl})
    """,
    "str": """
        upper({str}); lower({str}); trim({str}); concat({str}, {str}); ({str} || {str})
        substring({str}, {int}, 3); left({str}, 2); right({str}, {int}); reverse({str})
        replace({str}, {str}, 'x'); repeat({str}, 2); lpad({str}, 5, '*'); rpad({str}, 4, {str})
        cast({int} as string); cast({big} as string); cast({dec} as string); cast({bool} as string)
        cast({date} as string); cast({ts} as string); coalesce({str}, {str}); if({bool}, {str}, {str})
        initcap({str}); translate({str}, 'abc', 'xy'); hex({int}); md5(encode({str}, 'utf-8'))
        split_part({str}, ',', 1); concat_ws('-', {str}, {str}); greatest({str}, {str}); bin({big})
        date_format({ts}, 'yyyy-MM-dd HH:mm'); base64(encode({str}, 'utf-8')); substring_index({str}, '.', 1)
        array_join({arr}, ','); regexp_replace({str}, '[a-c]+', '-'); ltrim({str}); soundex({str})
    """,
    "date": """
        date_add({date}, {int}); date_sub({date}, {int}); cast({ts} as date); coalesce({date}, {date})
        if({bool}, {date}, {date}); last_day({date}); trunc({date}, 'month'); trunc({ts}, 'year')
        add_months({date}, 1); next_day({date}, 'TU'); greatest({date}, {date}); ({date} + interval 3 days)
        ({date} - interval 1 month); make_date({int}, 2, 29); try_cast({str} as date); least({date}, {date})
    """,
    "ts": """
        ({ts} + interval 1 day); ({ts} - interval 90 minutes); ({ts} + interval 1 month); date_trunc('hour', {ts})
        date_trunc('week', {ts}); cast({date} as timestamp); coalesce({ts}, {ts}); if({bool}, {ts}, {ts})
        greatest({ts}, {ts}); timestampadd(hour, {int}, {ts}); timestamp_seconds({int})
        from_utc_timestamp({ts}, 'Europe/Berlin'); to_utc_timestamp({ts}, 'America/New_York'); least({ts}, {ts})
        try_cast({str} as timestamp); date_trunc('month', {date})
    """,
    "arr": """
        array({int}, {int}); sort_array({arr}); array_distinct({arr}); filter({arr}, v -> v > {int})
        transform({arr}, v -> v % 3); array_union({arr}, {arr}); array_intersect({arr}, {arr})
        array_except({arr}, {arr}); slice({arr}, 1, 2); coalesce({arr}, {arr}); if({bool}, {arr}, {arr})
        array_remove({arr}, {int}); array_compact({arr}); array_append({arr}, {int}); array_prepend({arr}, {int})
        flatten(array({arr}, {arr})); array_sort({arr})
    """,
}
_PLACE = re.compile(r"\{(\w+)\}")
_RULES = {
    kind: [rule.strip() for rule in text.replace("\n", ";").split(";") if rule.strip()] for kind, text in RULES.items()
}
_LEAVES = {kind: [leaf.strip() for leaf in text.split(";")] for kind, text in LEAVES.items()}


def random_tree(seed: int, depth: int = 3) -> str:
    """Return the SQL text of a tree; the same for the same seed."""
    chosen = random.Random(seed)
    return _drawn(chosen, chosen.choice(list(_RULES)), depth)


def _drawn(chosen: random.Random, kind: str, depth: int) -> str:
    if depth == 0 or chosen.random() < 0.15:
        return chosen.choice(_LEAVES[kind])
    return _PLACE.sub(lambda place: _drawn(chosen, place[1], depth - 1), chosen.choice(_RULES[kind]))
