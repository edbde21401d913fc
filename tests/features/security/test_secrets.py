"""Canaries: a secret in clear reaches no manifest, answer, message or repr, whichever source or sink it is given to."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest

from rejoinder import secret_options
from rejoinder.connectors.sink_definition import make_sink
from rejoinder.errors import RejoinderError
from rejoinder.sql.definitions.source_definition import make_source
from rejoinder.testing import Driver

CANARY = "CANARY-7f3a"
PLACES = (
    f"s3://AKIA:{CANARY}@bucket/x",
    f"s3a://AKIA:{CANARY}@bucket/x",
    f"s3://AKIA:1/{CANARY}@bucket/x",
    f"s3://AKIA%3A{CANARY}@bucket/x",
    f"s3://:{CANARY}@bucket/x",
    f"s3://bucket/x?secret_key={CANARY}",
    f"s3://bucket/x?aws_secret_access_key={CANARY}",
    f"https://host/x?password={CANARY}",
    f"https://host/x?pass%77ord={CANARY}",
    f"https://{CANARY}@host/x",
    f"https://host/x?a=b&token={CANARY}",
    f"https://bucket.s3.amazonaws.com/x?X-Amz-Expires=60&X-Amz-Signature={CANARY}",
    f"https://storage.googleapis.com/b/x?X-Goog-Signature={CANARY}",
    f"https://account.blob.core.windows.net/c/x?sv=2024&sig={CANARY}",
    f"abfss://c@account.dfs.core.windows.net/x?sig={CANARY}",
    f"hdfs://ada:{CANARY}@name:9000/x",
    f"S3://AKIA:{CANARY}@bucket/x",
    f"https://host/x?auth={CANARY}",
    f"https://host/x?KEY={CANARY}",
    f"https://host/x?jwt={CANARY}",
    f"https://host/x#access_token={CANARY}",
    f"https://host/x?SIG={CANARY}",
    f"https://host/x?session={CANARY}",
)
CLIENT_OPTIONS = {
    "kafka.basic.auth.user.info": f"ada:{CANARY}",
    "kafka.sasl.jaas.config": f'PlainLoginModule required username="ada" password="{CANARY}";',
    "kafka.ssl.keystore.password": CANARY,
    "kafka.ssl.keystore.key": CANARY,
    "kafka.sasl.oauthbearer.client.secret": CANARY,
    "kafka.schema.registry.url": f"https://ada:{CANARY}@registry",
    "kafka.bearer.auth.token": CANARY,
    "KAFKA.SASL.JAAS.CONFIG": f"PlainLoginModule required password='{CANARY}';",
    "Kafka.Basic.Auth.User.Info": f"ada:{CANARY}",
    "kafka.oauth.client.assertion": CANARY,
    "kafka.interceptor.auth": f"Basic {CANARY}",
    "kafka.http.header": f"Authorization: Bearer {CANARY}",
}
URLS = (
    f"jdbc:postgresql://db/shop?user=ada&password={CANARY}",
    f"jdbc:postgresql://ada:{CANARY}@db/shop",
    f"jdbc:sqlserver://db;databaseName=shop;password={CANARY}",
    f"jdbc:oracle:thin:ada/{CANARY}@db:1521:shop",
    f"jdbc:mysql://db/shop?trustCertificateKeyStorePassword={CANARY}",
    f"jdbc:mysql://(host=db,user=ada,password={CANARY})/shop",
    f"JDBC:POSTGRESQL://ada:{CANARY}@db/shop",
    f"jdbc:derby:shop;encryptionKey={CANARY}",
    f"jdbc:postgresql://db/shop?user=ada&pass={CANARY}",
)
FINE = (
    "data/token=7/day=1",
    "s3://bucket/secret_level=3/*.parquet",
    "hdfs://name:9000/data/@day",
    "abfss://container@account.dfs.core.windows.net/x",
    "data/orders@home",
    "/data/a b/*.json",
    "/data/key=3/code=7/*.json",
    "/data/part-?/session=1",
)


def _file_source(format_: str, place: str) -> str:
    return f"CREATE STREAM s (a BIGINT) USING {format_} OPTIONS (path '{place}')"


SOURCES = [
    *(_file_source(format_, place) for format_ in ("parquet", "json", "csv", "arrow") for place in PLACES),
    *(f"CREATE CHANGELOG s (a BIGINT) USING delta OPTIONS (path '{place}')" for place in PLACES),
    *(
        f"CREATE STREAM s (a BIGINT) USING json OPTIONS (path 'x', cleansource 'archive', sourcearchivedir '{place}')"
        for place in PLACES
    ),
    *(
        f"CREATE STREAM s (a BIGINT) USING kafka OPTIONS (bootstrap 'h:9092', topic 't', `{option}` '{value}')"
        for option, value in CLIENT_OPTIONS.items()
    ),
    f"CREATE STREAM s (a BIGINT) USING kafka OPTIONS (bootstrap 'https://ada:{CANARY}@h:9092', topic 't')",
    f"CREATE STREAM s (a BIGINT) USING kafka OPTIONS (bootstrap 'one:9092,ada:{CANARY}@h:9092', topic 't')",
    f"CREATE STREAM s (a BIGINT) USING kafka OPTIONS (bootstrap 'h:9092', topic 'https://ada:{CANARY}@h')",
    f"CREATE MAPPING s (a BIGINT) TYPE File OPTIONS ('format' = 'json', 'path' = 's3://AKIA:{CANARY}@bucket')",
    f"CREATE MAPPING s EXTERNAL NAME `s3://AKIA:{CANARY}@bucket` (a BIGINT) TYPE File OPTIONS ('format' = 'json')",
    f"CREATE MAPPING s (a BIGINT) TYPE Kafka OPTIONS ('bootstrap.servers' = 'h', 'basic.auth.user.info' = '{CANARY}')",
]
SINKS = [
    *(
        f"CREATE SINK k FROM v USING {format_} OPTIONS (path '{place}')"
        for format_ in ("parquet", "json", "csv", "delta")
        for place in PLACES
    ),
    *(f"CREATE SINK k FROM v USING jdbc OPTIONS (url '{url}', dbtable 't')" for url in URLS),
    *(
        f"CREATE SINK k FROM v USING kafka OPTIONS (bootstrap 'h:9092', topic 't', `{option}` '{value}')"
        for option, value in CLIENT_OPTIONS.items()
    ),
]


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    driver = Driver(store=tmp_path / "state")
    driver.sql("CREATE STREAM t (a BIGINT); CREATE VIEW v AS SELECT a FROM t")
    driver.insert("t", {"a": 1})
    driver.step()
    return driver


@pytest.mark.parametrize("statement", [*SOURCES, *SINKS])
def test_no_statement_with_a_secret_in_clear_is_taken_or_repeated(
    driver: Driver, tmp_path: Path, statement: str
) -> None:
    with pytest.raises(RejoinderError) as caught:
        driver.sql(statement)
    assert CANARY not in f"{caught.value} {caught.value!r} {caught.value.args}"
    driver.insert("t", {"a": 2})
    driver.step()
    shown = [driver.sql(f"SHOW {what}") for what in ("SOURCES", "SINKS", "VIEWS", "ARRANGEMENTS")]
    assert CANARY not in f"{shown} {driver.sql('EXPLAIN v')} {driver!r} {driver.catalog!r}"
    stored = [path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert stored and not any(CANARY.encode() in data for data in stored)


@pytest.mark.parametrize("statement", [*SOURCES[::7], *SINKS[::7]])
def test_a_syntax_error_beside_a_secret_does_not_show_it(driver: Driver, statement: str) -> None:
    with pytest.raises(RejoinderError) as caught:
        driver.sql(statement[:-1] + " ; ; SELEC")
    assert CANARY not in str(caught.value)


def test_a_secret_on_a_line_of_its_own_is_not_shown(driver: Driver) -> None:
    with pytest.raises(RejoinderError) as caught:
        driver.sql(f"CREATE SINK k FROM v USING jdbc OPTIONS (url 'u', password\n '{CANARY}' user)")
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        f"url 'u', password 'x'{CANARY}', dbtable 't'",
        f"url 'u', password = 'x'{CANARY}', dbtable 't'",
        f"url 'u', 'password' = 'x'{CANARY}', dbtable 't'",
        f"url 'u', `password` 'x'={CANARY}', dbtable 't'",
        f"url 'u', password /* the 'old' one */ 'x'{CANARY}', dbtable 't'",
        f"dbtable 'it's', password 'x' {CANARY}', url 'u'",
    ],
)
def test_a_secret_with_a_quote_in_it_is_not_shown(driver: Driver, options: str) -> None:
    with pytest.raises(RejoinderError, match="contains a quote") as caught:
        driver.sql(f"SELECT a FROM t; CREATE SINK k FROM v USING jdbc OPTIONS ({options})")
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "condition",
    [
        "kind = 'secret' AND note = 'x'",
        "kind = 'my token' OR note = 'x'",
        "kind IN ('secret','token')",
        "kind = 'it''s a secret' AND note = 'x'",
        "kind = 'password ' AND note = 'x'",
        "kind = 'password=' AND note = 'x'",
        "token = 'a'||'b'",
        "`token`='a'OR note='b'",
        "kind = 'secret' -- the 'first'one",
    ],
)
def test_literals_of_a_query_are_not_options(condition: str) -> None:
    driver = Driver()
    driver.sql("CREATE STREAM s (kind STRING, token STRING, note STRING)")
    driver.sql(f"CREATE VIEW v AS SELECT * FROM s WHERE {condition}")
    assert driver.sql(f"SELECT * FROM s WHERE {condition}") == []
    driver.sql(f"WITH r AS (SELECT 'a'||'b' AS c FROM s WHERE {condition}\n) SELECT c, 'the token' AS d FROM r")


def test_a_mapping_can_name_a_secret_by_reference(driver: Driver) -> None:
    driver.sql(
        "CREATE MAPPING m (a BIGINT) TYPE Kafka OPTIONS ('bootstrap.servers'='h', 'valueFormat'='json', "
        "'basic.auth.user.info'='env:LOGIN')"
    )
    assert "env:LOGIN" in str(driver.catalog.get("m"))


@pytest.mark.parametrize("part", ["'", "''", "/*", "'a'b ", "`", '"', "token", "token ", "token='", "\\'", "a.", "("])
def test_broken_secrets_are_looked_for_in_linear_time(part: str) -> None:
    """A megabyte takes less than a second of CPU. A quadratic search would take hours."""
    start = time.process_time()
    with contextlib.suppress(RejoinderError):
        secret_options.refuse_broken_secret("password " + part * (1_000_000 // len(part)))
    assert time.process_time() - start < 10


@pytest.mark.parametrize("place", FINE)
def test_paths_that_only_look_like_secrets_are_taken(place: str) -> None:
    import pyarrow as pa

    assert make_source("s", "stream", [pa.field("a", pa.int64())], (), "json", {"path": place}).options["path"] == place
    assert make_sink("k", "v", "json", {"path": place}).options["path"] == place


def test_what_a_reference_stands_for_is_taken_out_of_foreign_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_LOGIN", CANARY)
    said = secret_options.scrubbed(
        f"login of ada with {CANARY} failed", {"kafka.basic.auth.user.info": "env:KAFKA_LOGIN"}
    )
    assert CANARY not in said and "***" in said
