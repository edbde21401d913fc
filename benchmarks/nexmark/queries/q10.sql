-- Log to a file system: every bid with the day and the minute that name its partition.
CREATE VIEW q10 AS
SELECT auction, bidder, price, dateTime, extra,
  date_format(dateTime, 'yyyy-MM-dd') AS dt, date_format(dateTime, 'HH:mm') AS hm
FROM bid;
