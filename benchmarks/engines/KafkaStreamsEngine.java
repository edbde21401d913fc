import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.StreamJoined;

/**
 * W1 and W1L in Kafka Streams: a thread and a partition per core, state in RocksDB without changelog topics, all else as it comes.
 *
 * Arguments: workload, address of the broker, folder for state, cores, a time behind all rows, rows to expect, rows to expect of the
 * warm-up (-1: none). The topics are those of KafkaTopics. The lines on standard output and standard input are those of protocol.py.
 */
public final class KafkaStreamsEngine implements AutoCloseable {
    private static final BufferedReader STDIN = new BufferedReader(new InputStreamReader(System.in));
    private static final long GIVE_UP_NANOS = TimeUnit.SECONDS.toNanos(120);
    private static final long SENTINELS_EVERY_MS = 250;
    private static final int ROUNDS_AFTER_THE_END = 10;

    /** A row of the result, without its key: the customer, and the time of delivery or null. */
    private record Row(Long customer, Long delivered) {}

    private final String name;
    private final boolean isLeft;
    private final int cores;
    private final long expected;
    private final KafkaStreams streams;
    private final KafkaProducer<Long, Long> producer;
    private long far;

    private final AtomicLong rows = new AtomicLong();
    private final AtomicLong sum = new AtomicLong();
    private final CountDownLatch complete = new CountDownLatch(1);
    private final Set<Long> ended = ConcurrentHashMap.newKeySet();

    public static void main(String[] args) throws Exception {
        long rows = Long.parseLong(args[5]);
        long few = Long.parseLong(args[6]);
        if (few >= 0) {
            try (KafkaStreamsEngine warm = new KafkaStreamsEngine("warm", args, few)) {
                warm.start();
                warm.join();
            }
        }
        try (KafkaStreamsEngine engine = new KafkaStreamsEngine("data", args, rows)) {
            engine.start();
            say("{\"event\": \"started\"}");
            await();
            engine.join();
            say("{\"event\": \"finished\"}");
            await();
            engine.readToTheEnd();
            say(String.format(
                "{\"event\": \"result\", \"rows_out\": %d, \"checksum\": %d}", engine.rows.get(), engine.sum.get()));
        }
        System.exit(0);
    }

    private KafkaStreamsEngine(String name, String[] args, long expected) {
        this.name = name;
        this.expected = expected;
        isLeft = args[0].equals("W1L");
        cores = Integer.parseInt(args[3]);
        far = Long.parseLong(args[4]);
        Properties settings = new Properties();
        settings.put("application.id", name);
        settings.put("bootstrap.servers", args[1]);
        settings.put("state.dir", args[2]);
        settings.put("num.stream.threads", cores);
        settings.put("auto.offset.reset", "earliest");
        streams = new KafkaStreams(topology().build(), settings);
        streams.setUncaughtExceptionHandler(failure -> {
            failure.printStackTrace();
            Runtime.getRuntime().halt(1);
            return null;
        });
        producer = new KafkaProducer<>(Map.of("bootstrap.servers", args[1]), new LongSerializer(), new LongSerializer());
    }

    private StreamsBuilder topology() {
        StreamsBuilder builder = new StreamsBuilder();
        Consumed<Long, Long> numbers = Consumed.with(Serdes.Long(), Serdes.Long());
        KStream<Long, Long> orders = builder.stream(name + "-orders", numbers);
        KStream<Long, Long> deliveries = builder.stream(name + "-deliveries", numbers);
        JoinWindows withinTheHour =
            JoinWindows.ofTimeDifferenceAndGrace(Duration.ZERO, Duration.ofSeconds(5)).after(Duration.ofHours(1));
        StreamJoined<Long, Long, Long> stores =
            StreamJoined.with(Serdes.Long(), Serdes.Long(), Serdes.Long()).withLoggingDisabled();
        KStream<Long, Row> joined = isLeft
            ? orders.leftJoin(deliveries, Row::new, withinTheHour, stores)
            : orders.join(deliveries, Row::new, withinTheHour, stores);
        joined.foreach(this::count);
        return builder;
    }

    private void count(long order, Row row) {
        if (order < 0) {
            if (row.delivered() != null) {
                ended.add(order);
            }
            return;
        }
        sum.addAndGet(isLeft && row.delivered() != null ? 2 * order : order);
        if (rows.incrementAndGet() == expected) {
            complete.countDown();
        }
    }

    /** Return when all threads run and have their share of the partitions, none of which they process yet. */
    private void start() throws InterruptedException {
        streams.pause();
        streams.start();
        while (streams.state() != KafkaStreams.State.RUNNING
            || streams.metadataForLocalThreads().stream().anyMatch(thread -> thread.activeTasks().size() != 1)) {
            Thread.sleep(20);
        }
    }

    /** Return when the expected rows are out, or when nothing has come for long. The threads stand still then. */
    private void join() throws InterruptedException {
        streams.resume();
        long seen = 0;
        long since = System.nanoTime();
        while (!complete.await(SENTINELS_EVERY_MS, TimeUnit.MILLISECONDS) && System.nanoTime() - since < GIVE_UP_NANOS) {
            if (isLeft) {
                sendSentinels();
            }
            if (rows.get() != seen) {
                seen = rows.get();
                since = System.nanoTime();
            }
        }
        streams.pause();
    }

    /** Read what is left of the input, and some time on: rows too many would show. */
    private void readToTheEnd() throws InterruptedException {
        streams.resume();
        long since = System.nanoTime();
        for (int round = 0; round < ROUNDS_AFTER_THE_END && System.nanoTime() - since < GIVE_UP_NANOS;) {
            sendSentinels();
            Thread.sleep(SENTINELS_EVERY_MS);
            if (ended.size() == cores) {
                round++;
            }
        }
    }

    /**
     * A row far in the future at the end of each partition. Rows without a partner come out when a row moves the time, at most once per
     * second; so there have to be some more after the last. Their numbers are negative, and they are not counted.
     */
    private void sendSentinels() {
        far++;
        for (int partition = 0; partition < cores; partition++) {
            for (String table : new String[] {"-orders", "-deliveries"}) {
                producer.send(new ProducerRecord<>(name + table, partition, far, -1L - partition, far));
            }
        }
    }

    @Override public void close() {
        producer.close();
        streams.close(Duration.ofSeconds(60));
        if (name.equals("warm")) {
            streams.cleanUp();
        }
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
}
