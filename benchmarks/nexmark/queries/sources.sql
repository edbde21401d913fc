-- The three streams. Event times are up to 4 s out of order.
CREATE STREAM person (
  id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, dateTime TIMESTAMP, extra STRING,
  WATERMARK dateTime DELAY OF INTERVAL 4 SECONDS
);
CREATE STREAM auction (
  id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP, expires TIMESTAMP,
  seller BIGINT, category BIGINT, extra STRING,
  WATERMARK dateTime DELAY OF INTERVAL 4 SECONDS
);
CREATE STREAM bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING,
  WATERMARK dateTime DELAY OF INTERVAL 4 SECONDS
);
CREATE TABLE side_input (key BIGINT, value STRING, PRIMARY KEY (key));
