"""A flow in a time zone, against batch Spark with the same `spark.sql.session.timeZone`, over changes of the clock."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from rejoinder.kernels.zones.zone_names import zone_name
from rejoinder.sql.types.flow_zone import bound_in
from tests.spark.conformance import batch_session, differences, our_answer, register, spark_answers

pytestmark = pytest.mark.slow

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", "Asia/Kolkata", "-03:30")
"""Lord Howe moves its clocks by half an hour; in Havana, midnight is skipped in spring and occurs twice in autumn."""
EXPRESSIONS = """
cast(t as string); cast(t as date); cast(t as timestamp_ntz); cast(n as timestamp); cast(d as timestamp)
cast(n as string); cast(t as bigint); cast(k as timestamp); cast(s as timestamp); try_cast(s as timestamp)
cast(s as timestamp_ntz); cast(s as date); t = n; t < d; n > d; t > '2026-03-29 02:30:00'; coalesce(t, n)
coalesce(d, t)
timestamp '2026-10-25 02:30:00'; timestamp '2026-03-29 02:30:00'; timestamp '2026-10-25 02:30:00+01:00'
timestamp '2026-11-01'
hour(t); minute(t); second(t); extract(second from t); day(t); dayofweek(t); weekofyear(t); year(t)
date_part('hour', t)
date_trunc('minute', t); date_trunc('hour', t); date_trunc('day', t); date_trunc('week', t); date_trunc('month', t)
date_trunc('second', t); date_trunc('hour', n); trunc(t, 'month'); last_day(t); next_day(t, 'MON'); date_add(t, 1)
t + interval 1 day; t - interval 1 day; t + interval 36 hours; t - interval 25 hours; t + interval 30 minutes
t + interval 1 month; t - interval 7 months; n + interval 1 day; d + interval 1 hour; t + interval '1 12' day to hour
t + make_dt_interval(k, 3); t - make_dt_interval(k, 3); t + make_ym_interval(0, k); t + make_interval(0, k, 0, 1, 2)
timestampadd(day, k, t); timestampadd(hour, k * 24, t); timestampadd(month, k, t); timestampadd(minute, 90, t)
timestampadd(day, 1, t); timestampadd(week, -1, t)
timestampdiff(hour, u, t); timestampdiff(day, u, t); timestampdiff(minute, n, t); months_between(t, u); t - u; t - n
date_format(t, 'yyyy-MM-dd HH:mm:ss'); date_format(n, 'HH:mm'); date_format(d, 'yyyy-MM-dd HH:mm')
from_unixtime(k * 86400); unix_timestamp(t); unix_timestamp(d)
unix_timestamp(date_format(t, 'yyyy-MM-dd HH:mm'), 'yyyy-MM-dd HH:mm')
to_timestamp(date_format(t, 'dd.MM.yyyy HH:mm'), 'dd.MM.yyyy HH:mm')
to_date(date_format(t, 'dd.MM.yyyy'), 'dd.MM.yyyy')
try_to_timestamp(s); to_timestamp_ltz(n); to_timestamp_ntz(t); make_timestamp(2026, 10, 25, 2, 30, k + 10)
make_timestamp(2026, 3, 29, 2, 30, 0, 'Europe/Paris'); make_timestamp_ntz(2026, 3, 29, 2, 30, 0); datediff(t, u)
current_timezone(); convert_timezone('Asia/Tokyo', n); convert_timezone('Asia/Tokyo', t)
from_utc_timestamp(t, 'Asia/Tokyo'); to_utc_timestamp(t, 'Asia/Tokyo'); from_utc_timestamp(s, 'Asia/Tokyo')
concat('at ', t); greatest(t, n); t between d and n; case when k > 0 then t else d end; array(t, n); t in (n, u)
date_trunc('day', t) + interval 1 day; cast(cast(t as string) as timestamp); cast(cast(t as date) as timestamp) = t
time_bucket(interval '15' minute, t); unix_micros(t); timestamp_seconds(k)
cast(struct(t as a, d as b) as struct<a: timestamp_ntz, b: timestamp>)
"""


def _texts() -> list[str]:
    return [text.strip() for text in EXPRESSIONS.replace("\n", ";").split(";") if text.strip()]


def moments(zone: str) -> pa.Table:
    """Instants of 2026 around the changes of a zone's clock, and other values of the same local times."""
    rules = ZoneInfo(zone) if "/" in zone else timezone(-timedelta(hours=3, minutes=30))
    hours = [datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(hours=hour) for hour in range(365 * 24)]
    offsets = [time.astimezone(rules).utcoffset() for time in hours]
    changes = [hours[at] for at in range(1, len(hours)) if offsets[at] != offsets[at - 1]]
    near = [timedelta(minutes=by) for by in (-1500, -1440, -90, -60, -30, -1, 0, 1, 29, 30, 60, 90, 150, 1440)]
    times = [change + by for change in changes for by in near] + [hours[0], hours[4000] + timedelta(microseconds=1)]
    local = [time.astimezone(rules).replace(tzinfo=None) for time in times]
    texts = [str(time) for time in local]
    texts[::3] = [f"{text}+02:00" for text in texts[::3]]
    return pa.table(
        {
            "t": pa.array([*times, None], pa.timestamp("us", tz="UTC")),
            "u": pa.array([*reversed(times), None], pa.timestamp("us", tz="UTC")),
            "n": pa.array([*local, None], pa.timestamp("us")),
            "d": pa.array([*(time.date() for time in local), date(2026, 3, 29)], pa.date32()),
            "s": pa.array([*texts, None], pa.string()),
            "k": pa.array([number % 5 - 2 for number in range(len(times) + 1)], pa.int32()),
        }
    )


@pytest.fixture(scope="module")
def batch(spark: SparkSession) -> SparkSession:
    """A session of its own on the shared JVM, whose zone the tests set."""
    return batch_session(spark)


@pytest.mark.parametrize("zone", ZONES)
def test_local_times_are_spark_s(batch: SparkSession, zone: str) -> None:
    table, texts = moments(zone), _texts()
    batch.conf.set("spark.sql.session.timeZone", "UTC")
    register(batch, "moments", table)
    batch.conf.set("spark.sql.session.timeZone", zone)
    answers = spark_answers(batch, "moments", texts)
    with bound_in(zone_name(zone) or ""):
        differing = {t: found for t in texts if (found := differences(answers[t], our_answer(t, table)))}
    assert differing == {}
