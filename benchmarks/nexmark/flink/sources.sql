-- The three streams as CSV without header. Times are milliseconds since 1970. %s is the folder.
CREATE TABLE person (
  id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, time_ms BIGINT, extra STRING,
  `dateTime` AS TO_TIMESTAMP_LTZ(time_ms, 3),
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '%s/person.csv');
CREATE TABLE auction (
  id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, time_ms BIGINT, expires_ms BIGINT,
  seller BIGINT, category BIGINT, extra STRING,
  `dateTime` AS TO_TIMESTAMP_LTZ(time_ms, 3), expires AS TO_TIMESTAMP_LTZ(expires_ms, 3),
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '%s/auction.csv');
CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, time_ms BIGINT, extra STRING,
  `dateTime` AS TO_TIMESTAMP_LTZ(time_ms, 3),
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '%s/bid.csv');
