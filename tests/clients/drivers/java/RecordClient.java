import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigSource;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java client since 2.8: one source, compiled against each version. */
public class RecordClient extends Lines {
  private static final Duration DEADLINE = Duration.ofSeconds(50);

  /** By Kafka's number. */
  private static final List<ConfigSource> SOURCES = List.of(
      ConfigSource.UNKNOWN,
      ConfigSource.DYNAMIC_TOPIC_CONFIG,
      ConfigSource.DYNAMIC_BROKER_CONFIG,
      ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
      ConfigSource.STATIC_BROKER_CONFIG,
      ConfigSource.DEFAULT_CONFIG);

  private final String address;
  private final Admin admin;
  private KafkaConsumer<byte[], byte[]> follower;
  private Member member;

  RecordClient(String address) {
    this.address = address;
    this.admin = Admin.create(Map.of("bootstrap.servers", address));
  }

  public static void main(String[] args) throws Exception {
    new RecordClient(args[0]).serve();
    System.exit(0);  // without waiting for what the broker may not answer any more
  }

  @Override
  void execute(String command, String[] words) throws Exception {
    switch (command) {
      case "create" -> create(words[1], Integer.parseInt(words[2]), pairs(words, 3));
      case "delete" -> admin.deleteTopics(List.of(words[1])).all().get();
      case "list" -> admin.listTopics().names().get().forEach(this::answer);
      case "partitions" -> partitions(words[1]);
      case "grow" -> grow(words[1], Integer.parseInt(words[2]));
      case "produce" -> produce(words[1], Integer.parseInt(words[2]), pairs(words, 3));
      case "read" -> read(partition(words), Long.parseLong(words[3]));
      case "seek" -> seek(partition(words), words);
      case "time" -> time(partition(words), Long.parseLong(words[3]));
      case "bounds" -> bounds(partition(words));
      case "trim" -> trim(partition(words), Long.parseLong(words[3]));
      case "describe" -> describe(words[1], words[2]);
      case "adjust" -> adjust(words[1], words[2], words[3], words[4]);
      case "follow" -> follow(words);
      case "take" -> take(Integer.parseInt(words[1]));
      case "join" -> join(words[1], words[2], pairs(words, 3));
      case "look" -> member.look(this);
      case "commit" -> member.commit();
      case "leave" -> leave();
      default -> throw new IllegalArgumentException("unknown command " + command);
    }
  }

  private static TopicPartition partition(String[] words) {
    return new TopicPartition(words[1], Integer.parseInt(words[2]));
  }

  private void create(String topic, int partitions, Map<String, String> config) throws Exception {
    var wanted = new NewTopic(topic, Optional.of(partitions), Optional.empty()).configs(config);
    admin.createTopics(List.of(wanted)).all().get();
  }

  private void partitions(String topic) {
    try (var consumer = consumer()) {
      var found = consumer.partitionsFor(topic, DEADLINE);
      if (found == null || found.isEmpty()) {
        throw new UnknownTopicOrPartitionException("no partitions of " + topic);
      }
      answer(found.size());
    }
  }

  private void grow(String topic, int partitions) throws Exception {
    admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(partitions))).all().get();
  }

  private void produce(String topic, int count, Map<String, String> options) throws Exception {
    List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
    for (String[] fields : records(count)) {
      records.add(parse(topic, fields));
    }
    Map<String, Object> config = producerConfig(address, options);
    config.put("delivery.timeout.ms", (int) DEADLINE.toMillis());
    if (options.containsKey("idempotent")) {
      config.put("enable.idempotence", options.get("idempotent"));
    }
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
    try (var consumer = consumer()) {
      consumer.assign(List.of(partition));
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
    try (var consumer = consumer()) {
      consumer.assign(List.of(partition));
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
    try (var consumer = consumer()) {
      OffsetAndTimestamp found =
          consumer.offsetsForTimes(Map.of(partition, timestamp), DEADLINE).get(partition);
      answer(found == null ? -1 : found.offset());
    }
  }

  private void bounds(TopicPartition partition) {
    try (var consumer = consumer()) {
      long first = consumer.beginningOffsets(List.of(partition), DEADLINE).get(partition);
      long end = consumer.endOffsets(List.of(partition), DEADLINE).get(partition);
      answer(first, end);
    }
  }

  private void trim(TopicPartition partition, long offset) throws Exception {
    var asked = Map.of(partition, RecordsToDelete.beforeOffset(offset));
    answer(admin.deleteRecords(asked).lowWatermarks().get(partition).get().lowWatermark());
  }

  private void describe(String kind, String name) throws Exception {
    var type = kind.equals("topic") ? ConfigResource.Type.TOPIC : ConfigResource.Type.BROKER;
    var resource = new ConfigResource(type, name);
    var options = new DescribeConfigsOptions().includeSynonyms(true);
    for (ConfigEntry entry :
        admin.describeConfigs(List.of(resource), options).all().get().get(resource).entries()) {
      List<String> synonyms = new ArrayList<>();
      for (var other : entry.synonyms()) {
        String source = Integer.toString(SOURCES.indexOf(other.source()));
        synonyms.add(String.join(":", other.name(), encode(other.value()), source));
      }
      answer(entry.name(), encode(entry.value()), SOURCES.indexOf(entry.source()),
          entry.isReadOnly(), String.join(",", synonyms));
    }
  }

  private void adjust(String topic, String operation, String name, String value) throws Exception {
    var change = new AlterConfigOp(
        new ConfigEntry(name, value), AlterConfigOp.OpType.valueOf(operation.toUpperCase()));
    var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
    Map<ConfigResource, Collection<AlterConfigOp>> changes = Map.of(resource, List.of(change));
    admin.incrementalAlterConfigs(changes).all().get();
  }

  private void follow(String[] words) {
    if (follower == null) {
      follower = consumer();
    }
    Set<TopicPartition> wanted = new HashSet<>();
    for (int i = 2; i < words.length; i++) {
      wanted.add(new TopicPartition(words[1], Integer.parseInt(words[i])));
    }
    Set<TopicPartition> added = new HashSet<>(wanted);
    added.removeAll(follower.assignment());
    follower.assign(wanted);
    if (!added.isEmpty()) {  // none would mean all
      follower.seekToBeginning(added);
    }
  }

  private void take(int count) {
    long deadline = System.nanoTime() + DEADLINE.toNanos();
    for (int taken = 0; taken < count; ) {
      if (System.nanoTime() > deadline) {
        throw new IllegalStateException("only " + taken + " records came");
      }
      var found = follower.poll(Duration.ofSeconds(1));
      found.forEach(this::print);
      taken += found.count();
    }
  }

  private void join(String group, String topic, Map<String, String> options) {
    Map<String, Object> config = consumerConfig(address);
    Member.configure(config, group, options);
    var bytes = new ByteArrayDeserializer();
    var consumer = new KafkaConsumer<>(config, bytes, bytes);
    member = new Member(consumer, millis -> consumer.poll(Duration.ofMillis(millis)),
        (expression, told) -> match(consumer, expression, told));
    member.join(topic);
  }

  /** For the broker to resolve (KIP-848); the class is of Kafka 4. */
  private static void match(
      KafkaConsumer<?, ?> consumer, String expression, ConsumerRebalanceListener told) {
    try {
      var pattern = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
      KafkaConsumer.class.getMethod("subscribe", pattern, ConsumerRebalanceListener.class)
          .invoke(consumer, pattern.getConstructor(String.class).newInstance(expression), told);
    } catch (ReflectiveOperationException failure) {
      throw new IllegalStateException(failure);
    }
  }

  private void leave() {
    member.leave();
    member = null;
  }

  @Override
  boolean work() {
    if (member != null) {
      member.poll();
    }
    return member != null;
  }

  private KafkaConsumer<byte[], byte[]> consumer() {
    Map<String, Object> config = consumerConfig(address);
    config.put("allow.auto.create.topics", false);
    var bytes = new ByteArrayDeserializer();
    return new KafkaConsumer<>(config, bytes, bytes);
  }

  private static ProducerRecord<byte[], byte[]> parse(String topic, String[] fields) {
    Integer partition = fields[0].equals("-1") ? null : Integer.valueOf(fields[0]);
    Long timestamp = fields[2].equals("-") ? null : Long.valueOf(fields[2]);
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
    answer(record.partition(), record.offset(), record.timestamp(), encode(record.key()),
        encode(record.value()), String.join(",", headers));
  }
}
