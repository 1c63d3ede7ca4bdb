import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The Java client, driven by lines on standard input; harness/java.py is the other end.
 *
 * <p>A command is a line of words between tabs. Its answer is any number of lines "= ..." and then
 * "ok", or "error", Kafka's error code and a text. A record is a line of partition, offset,
 * timestamp, key, value and headers; bytes are in base64, "-" is null, -1 says that the client
 * chooses.
 */
public class RecordClient {
  private static final Duration DEADLINE = Duration.ofSeconds(60);

  private final String address;
  private final BufferedReader in =
      new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 20);
  private final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);

  RecordClient(String address) {
    this.address = address;
  }

  public static void main(String[] args) throws IOException {
    new RecordClient(args[0]).run();
  }

  private void run() throws IOException {
    for (String line; (line = in.readLine()) != null; ) {
      try {
        execute(line.split("\t", -1));
        out.println("ok");
      } catch (Exception failure) {
        Throwable cause = failure instanceof ExecutionException ? failure.getCause() : failure;
        String text = cause.toString().replace('\n', ' ').replace('\t', ' ');
        out.println("error\t" + Errors.forException(cause).code() + "\t" + text);
      }
      out.flush();
    }
  }

  private void execute(String[] words) throws Exception {
    String topic = words[1];
    switch (words[0]) {
      case "create" -> create(topic, Integer.parseInt(words[2]));
      case "partitions" -> partitions(topic);
      case "produce" -> produce(topic, words[2], words[3], words[4], Integer.parseInt(words[5]));
      case "read" -> read(partition(words), Long.parseLong(words[3]));
      case "seek" -> seek(partition(words), words);
      case "time" -> time(partition(words), Long.parseLong(words[3]));
      case "bounds" -> bounds(partition(words));
      default -> throw new IllegalArgumentException("unknown command " + words[0]);
    }
  }

  private static TopicPartition partition(String[] words) {
    return new TopicPartition(words[1], Integer.parseInt(words[2]));
  }

  private void create(String topic, int partitions) throws Exception {
    try (Admin admin = Admin.create(config())) {
      var wanted = new NewTopic(topic, Optional.of(partitions), Optional.empty());
      admin.createTopics(List.of(wanted)).all().get();
    }
  }

  private void partitions(String topic) throws Exception {
    try (Admin admin = Admin.create(config())) {
      var description = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
      out.println("= " + description.partitions().size());
    }
  }

  private void produce(String topic, String codec, String acks, String largest, int count)
      throws Exception {
    // Read first: after a failure the next command must be next on the input.
    List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      records.add(parse(topic, in.readLine()));
    }
    Map<String, Object> config = config();
    config.put("compression.type", codec);
    config.put("acks", acks);
    config.put("linger.ms", 20);
    config.put("max.request.size", largest);
    config.put("enable.idempotence", acks.equals("all"));
    config.put("delivery.timeout.ms", (int) DEADLINE.toMillis());
    var bytes = new ByteArraySerializer();
    try (var producer = new KafkaProducer<>(config, bytes, bytes)) {
      List<Future<RecordMetadata>> sent = new ArrayList<>();
      for (var record : records) {
        sent.add(producer.send(record));
      }
      producer.flush();
      for (var one : sent) {
        one.get();
      }
    }
  }

  private void read(TopicPartition partition, long start) {
    try (var consumer = consumer(partition)) {
      long end = consumer.endOffsets(List.of(partition), DEADLINE).get(partition);
      if (start < 0) {
        consumer.seekToBeginning(List.of(partition));
      } else {
        consumer.seek(partition, start);
      }
      while (consumer.position(partition, DEADLINE) < end) {
        consumer.poll(Duration.ofSeconds(1)).forEach(this::print);
      }
    }
  }

  private void seek(TopicPartition partition, String[] words) {
    try (var consumer = consumer(partition)) {
      for (int i = 3; i < words.length; i++) {
        consumer.seek(partition, Long.parseLong(words[i]));
        var found = consumer.poll(DEADLINE);
        while (found.isEmpty()) {
          found = consumer.poll(DEADLINE);
        }
        print(found.iterator().next());
      }
    }
  }

  private void time(TopicPartition partition, long timestamp) {
    try (var consumer = consumer(partition)) {
      OffsetAndTimestamp found =
          consumer.offsetsForTimes(Map.of(partition, timestamp), DEADLINE).get(partition);
      out.println("= " + (found == null ? -1 : found.offset()));
    }
  }

  private void bounds(TopicPartition partition) {
    try (var consumer = consumer(partition)) {
      long first = consumer.beginningOffsets(List.of(partition), DEADLINE).get(partition);
      long end = consumer.endOffsets(List.of(partition), DEADLINE).get(partition);
      out.println("= " + first + "\t" + end);
    }
  }

  private Map<String, Object> config() {
    return new HashMap<>(Map.of("bootstrap.servers", address));
  }

  private KafkaConsumer<byte[], byte[]> consumer(TopicPartition partition) {
    Map<String, Object> config = config();
    config.put("allow.auto.create.topics", false);
    config.put("auto.offset.reset", "none");
    config.put("enable.auto.commit", false);
    config.put("fetch.max.wait.ms", 100);
    var bytes = new ByteArrayDeserializer();
    var consumer = new KafkaConsumer<>(config, bytes, bytes);
    consumer.assign(List.of(partition));
    return consumer;
  }

  private static ProducerRecord<byte[], byte[]> parse(String topic, String line) {
    String[] fields = line.split("\t", -1);
    Integer partition = fields[0].equals("-1") ? null : Integer.valueOf(fields[0]);
    Long timestamp = fields[2].equals("-1") ? null : Long.valueOf(fields[2]);
    List<Header> headers = new ArrayList<>();
    for (String pair : fields[5].isEmpty() ? new String[0] : fields[5].split(",")) {
      int colon = pair.indexOf(':');
      headers.add(new RecordHeader(pair.substring(0, colon), decode(pair.substring(colon + 1))));
    }
    byte[] key = decode(fields[3]);
    byte[] value = decode(fields[4]);
    return new ProducerRecord<>(topic, partition, timestamp, key, value, headers);
  }

  private void print(ConsumerRecord<byte[], byte[]> record) {
    List<String> headers = new ArrayList<>();
    for (Header header : record.headers()) {
      headers.add(header.key() + ":" + encode(header.value()));
    }
    out.println("= " + record.partition() + "\t" + record.offset() + "\t" + record.timestamp()
        + "\t" + encode(record.key()) + "\t" + encode(record.value())
        + "\t" + String.join(",", headers));
  }

  private static byte[] decode(String text) {
    return text.equals("-") ? null : Base64.getDecoder().decode(text);
  }

  private static String encode(byte[] data) {
    return data == null ? "-" : Base64.getEncoder().encodeToString(data);
  }
}
