import java.io.BufferedReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.LongSerializer;

/**
 * Put the tables of W1 into topics, in their order of arrival, before any clock starts.
 *
 * A record is two numbers of eight bytes, so that nobody has to parse text: the order is the key, the customer or the time of delivery is
 * the value, and the time of the row is that of the record. Arguments: address of the broker, partitions, then name and folder for each
 * set of tables; its topics are called name-orders and name-deliveries.
 */
public final class KafkaTopics {
    private static final List<String> TABLES = List.of("orders", "deliveries");

    public static void main(String[] args) throws Exception {
        // One request at a time: a new topic may refuse the first and take the second, and the first could not be repeated then.
        Map<String, Object> settings = Map.of("bootstrap.servers", args[0], "linger.ms", 20, "batch.size", 1 << 18,
            "max.in.flight.requests.per.connection", 1);
        int partitions = Integer.parseInt(args[1]);
        try (Admin admin = Admin.create(settings);
             KafkaProducer<Long, Long> producer = new KafkaProducer<>(settings, new LongSerializer(), new LongSerializer())) {
            List<NewTopic> topics = new ArrayList<>();
            for (int i = 2; i < args.length; i += 2) {
                for (String table : TABLES) {
                    topics.add(new NewTopic(args[i] + "-" + table, partitions, (short) 1));
                }
            }
            admin.createTopics(topics).all().get();
            for (int i = 2; i < args.length; i += 2) {
                for (String table : TABLES) {
                    load(producer, args[i] + "-" + table, Path.of(args[i + 1], table + ".csv"));
                }
            }
        }
    }

    /** Either table begins with the order and ends with the time; what Flink would give out besides is the second column. */
    private static void load(KafkaProducer<Long, Long> producer, String topic, Path file) throws Exception {
        try (BufferedReader lines = Files.newBufferedReader(file)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] fields = line.split(",");
                long time = Long.parseLong(fields[fields.length - 1]);
                long order = Long.parseLong(fields[0]);
                producer.send(new ProducerRecord<>(topic, null, time, order, Long.parseLong(fields[1])), (done, failure) -> {
                    if (failure != null) {
                        failure.printStackTrace();
                        Runtime.getRuntime().halt(1);
                    }
                });
            }
        }
        producer.flush();
    }
}
