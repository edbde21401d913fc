import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.time.Instant;
import java.util.List;
import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.common.accumulators.LongCounter;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;

/**
 * Flink SQL in streaming mode on a local cluster: heap state, no checkpoints, one whole CSV file per table.
 *
 * Arguments: workload, folder of the input, folder of a few rows to warm up with (or nothing), cores, "mini-batch" (or nothing), and for
 * a query of Nexmark its file, beside that of its sources, and the columns of its checksum. The lines on standard output and standard
 * input are those of protocol.py.
 */
public final class FlinkEngine {
    private static final String EVENT_TIME =
        ", ts AS TO_TIMESTAMP_LTZ(ts_ms, 3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND";
    private static final BufferedReader STDIN = new BufferedReader(new InputStreamReader(System.in));

    public static void main(String[] args) throws Exception {
        if (!args[2].isEmpty()) {
            job(args, args[2]).execute();
        }
        StreamExecutionEnvironment job = job(args, args[1]);

        say("{\"event\": \"started\"}");
        await();
        JobExecutionResult result = job.execute();
        say("{\"event\": \"finished\"}");
        await();

        say(String.format(
            "{\"event\": \"result\", \"rows_out\": %d, \"checksum\": %d, \"changes\": %d}",
            result.<Long>getAccumulatorResult("rows"),
            result.<Long>getAccumulatorResult("sum"),
            result.<Long>getAccumulatorResult("changes")));
        System.exit(0);
    }

    private static StreamExecutionEnvironment job(String[] args, String folder) throws IOException {
        String workload = args[0];
        int cores = Integer.parseInt(args[3]);
        Configuration settings = new Configuration();
        settings.setString("execution.runtime-mode", "STREAMING");
        settings.setString("state.backend.type", "hashmap");
        settings.setString("taskmanager.numberOfTaskSlots", String.valueOf(cores));
        if (args[4].equals("mini-batch")) { // as Nexmark's own configuration has it
            settings.setString("table.exec.mini-batch.enabled", "true");
            settings.setString("table.exec.mini-batch.allow-latency", "2 s");
            settings.setString("table.exec.mini-batch.size", "50000");
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(cores, settings);
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.getConfig().addConfiguration(settings);
        if (args.length > 5) {
            java.nio.file.Path file = java.nio.file.Path.of(args[5]);
            for (String statement : Files.readString(file.resolveSibling("sources.sql")).strip().split(";")) {
                tables.executeSql(statement.replace("%s", "file://" + folder));
            }
            return counted(env, tables, tables.sqlQuery(Files.readString(file)), List.of(args[6].split(",")));
        }
        if (workload.startsWith("W1")) {
            csv(tables, folder, "orders", "order_id BIGINT, cust BIGINT, ts_ms BIGINT" + EVENT_TIME);
            csv(tables, folder, "deliveries", "order_id BIGINT, ts_ms BIGINT" + EVENT_TIME);
        } else if (workload.equals("W3")) {
            csv(tables, folder, "customer", "c_custkey BIGINT, c_mktsegment STRING" + key("c_custkey"));
            csv(tables, folder, "orders", "o_orderkey BIGINT, o_custkey BIGINT" + key("o_orderkey"));
            csv(tables, folder, "lineitem",
                "l_orderkey BIGINT, l_linenumber BIGINT, l_extendedprice DOUBLE, l_discount DOUBLE");
        } else if (workload.equals("W4")) {
            csv(tables, folder, "orders", "order_id BIGINT, cur BIGINT, amount BIGINT, ts_ms BIGINT" + EVENT_TIME);
            csv(tables, folder, "rates", "ver BIGINT, cur BIGINT, rate DOUBLE, ts_ms BIGINT" + EVENT_TIME + key("cur"));
        } else {
            events(env, tables, folder, "left");
            events(env, tables, folder, "right");
        }
        Table result = tables.sqlQuery(query(workload));
        return counted(env, tables, result, result.getResolvedSchema().getColumnNames().subList(0, 1));
    }

    private static StreamExecutionEnvironment counted(
            StreamExecutionEnvironment env, StreamTableEnvironment tables, Table result, List<String> checked) {
        int[] columns = checked.stream().mapToInt(result.getResolvedSchema().getColumnNames()::indexOf).toArray();
        tables.toChangelogStream(result)
            .map(new Count(columns)).returns(Types.LONG).sinkTo(new DiscardingSink<>());
        return env;
    }

    /** The first column is summed up as checksum. */
    private static String query(String workload) {
        switch (workload) {
            case "W1":
            case "W1L":
                return "SELECT "
                    + (workload.equals("W1") ? "o.order_id" : "CASE WHEN d.ts IS NULL THEN o.order_id ELSE 2 * o.order_id END")
                    + ", o.cust, d.ts_ms FROM orders o " + (workload.equals("W1") ? "INNER" : "LEFT")
                    + " JOIN deliveries d ON o.order_id = d.order_id"
                    + " AND d.ts BETWEEN o.ts AND o.ts + INTERVAL '1' HOUR";
            case "W2":
                return "SELECT l.v + r.v, l.k FROM `left` l JOIN `right` r ON l.k = r.k";
            case "W2L":
                return "SELECT l.v + COALESCE(r.v, 0), l.k FROM `left` l LEFT JOIN `right` r ON l.k = r.k";
            case "W2F":
                return "SELECT COALESCE(l.v, 0) + COALESCE(r.v, 0), COALESCE(l.k, r.k)"
                    + " FROM `left` l FULL JOIN `right` r ON l.k = r.k";
            case "W3":
                return "SELECT o_orderkey, l_extendedprice * (1 - l_discount)"
                    + " FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey"
                    + " WHERE c_mktsegment = 'BUILDING'";
            case "W4":
                return "SELECT r.ver, o.order_id, o.amount * r.rate"
                    + " FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.cur = r.cur";
            default:
                throw new IllegalArgumentException(workload);
        }
    }

    /** A CSV format cannot split a file, so one reader keeps the order, which the watermark relies on. */
    private static void csv(StreamTableEnvironment tables, String folder, String name, String columns) {
        tables.executeSql("CREATE TABLE " + name + " (" + columns
            + ") WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '" + file(folder, name) + "')");
    }

    private static String key(String column) {
        return ", PRIMARY KEY (" + column + ") NOT ENFORCED";
    }

    /** The file source of the table API only inserts, so rows with their kind come from a stream. */
    private static void events(
            StreamExecutionEnvironment env, StreamTableEnvironment tables, String folder, String name) {
        FileSource<String> lines =
            FileSource.forRecordStreamFormat(new TextLineInputFormat(), new Path(file(folder, name))).build();
        DataStream<Row> rows = env.fromSource(lines, WatermarkStrategy.noWatermarks(), name)
            .map(new Parse())
            .returns(Types.ROW_NAMED(new String[] {"id", "k", "v"}, Types.LONG, Types.LONG, Types.LONG));
        Schema schema = Schema.newBuilder()
            .column("id", "BIGINT NOT NULL").column("k", "BIGINT").column("v", "BIGINT").primaryKey("id").build();
        ChangelogMode kinds = ChangelogMode.newBuilder()
            .addContainedKind(RowKind.INSERT).addContainedKind(RowKind.DELETE).build();
        tables.createTemporaryView("`" + name + "`", tables.fromChangelogStream(rows, schema, kinds));
    }

    private static String file(String folder, String table) {
        return "file://" + folder + "/" + table + ".csv";
    }

    private static void say(String line) {
        System.out.println("@bench " + line);
        System.out.flush();
    }

    private static void await() throws IOException {
        if (STDIN.readLine() == null) {
            System.exit(1);
        }
    }

    /** A line of W2: seq, op, id, k, v. */
    private static final class Parse implements MapFunction<String, Row> {
        @Override public Row map(String line) {
            String[] fields = line.split(",");
            return Row.ofKind(fields[1].equals("1") ? RowKind.INSERT : RowKind.DELETE,
                Long.parseLong(fields[2]), Long.parseLong(fields[3]), Long.parseLong(fields[4]));
        }
    }

    /** Count what the changelog adds up to, and sum up some columns of it. */
    private static final class Count extends RichMapFunction<Row, Long> {
        private final int[] columns;
        private final LongCounter rows = new LongCounter();
        private final LongCounter sum = new LongCounter();
        private final LongCounter changes = new LongCounter();

        Count(int[] columns) {
            this.columns = columns;
        }

        @Override public void open(OpenContext context) {
            getRuntimeContext().addAccumulator("rows", rows);
            getRuntimeContext().addAccumulator("sum", sum);
            getRuntimeContext().addAccumulator("changes", changes);
        }

        @Override public Long map(Row row) {
            boolean comes = row.getKind() == RowKind.INSERT || row.getKind() == RowKind.UPDATE_AFTER;
            long value = 0;
            for (int column : columns) {
                Object field = row.getField(column);
                value += field instanceof Instant ? ((Instant) field).toEpochMilli() : (Long) field;
            }
            rows.add(comes ? 1 : -1);
            sum.add(comes ? value : -value);
            changes.add(1);
            return value;
        }
    }
}
