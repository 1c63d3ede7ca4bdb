import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java client of 0.10: it asks for no versions, knows no headers, and has no admin client. */
public class OldRecordClient extends Lines {
  private static final long POLL_MS = 1000;

  private final String address;
  private KafkaConsumer<byte[], byte[]> follower;
  private Member member;

  OldRecordClient(String address) {
    this.address = address;
  }

  public static void main(String[] args) throws Exception {
    new OldRecordClient(args[0]).serve();
    System.exit(0);
  }

  @Override
  void execute(String command, String[] words) throws Exception {
    switch (command) {
      case "partitions" -> partitions(words[1]);
      case "produce" -> produce(words[1], Integer.parseInt(words[2]), pairs(words, 3));
      case "read" -> read(partition(words), Long.parseLong(words[3]));
      case "seek" -> seek(partition(words), words);
      case "time" -> time(partition(words), Long.parseLong(words[3]));
      case "bounds" -> bounds(partition(words));
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

  private void partitions(String topic) {
    try (var consumer = consumer()) {
      answer(consumer.partitionsFor(topic).size());
    }
  }

  private void produce(String topic, int count, Map<String, String> options) throws Exception {
    List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
    for (String[] fields : records(count)) {
      records.add(parse(topic, fields));
    }
    var bytes = new ByteArraySerializer();
    try (var producer = new KafkaProducer<>(producerConfig(address, options), bytes, bytes)) {
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
      long end = consumer.endOffsets(List.of(partition)).get(partition);
      if (start < 0) {
        consumer.seekToBeginning(List.of(partition));
      } else {
        consumer.seek(partition, start);
      }
      while (consumer.position(partition) < end) {
        consumer.poll(POLL_MS).forEach(this::print);
      }
    }
  }

  private void seek(TopicPartition partition, String[] words) {
    try (var consumer = consumer()) {
      consumer.assign(List.of(partition));
      for (int i = 3; i < words.length; i++) {
        consumer.seek(partition, Long.parseLong(words[i]));
        ConsumerRecords<byte[], byte[]> found = consumer.poll(POLL_MS);
        while (found.isEmpty()) {
          found = consumer.poll(POLL_MS);
        }
        print(found.iterator().next());
      }
    }
  }

  private void time(TopicPartition partition, long timestamp) {
    try (var consumer = consumer()) {
      OffsetAndTimestamp found =
          consumer.offsetsForTimes(Map.of(partition, timestamp)).get(partition);
      answer(found == null ? -1 : found.offset());
    }
  }

  private void bounds(TopicPartition partition) {
    try (var consumer = consumer()) {
      long first = consumer.beginningOffsets(List.of(partition)).get(partition);
      long end = consumer.endOffsets(List.of(partition)).get(partition);
      answer(first, end);
    }
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
    for (int taken = 0; taken < count; ) {
      ConsumerRecords<byte[], byte[]> found = follower.poll(POLL_MS);
      found.forEach(this::print);
      taken += found.count();
    }
  }

  private void join(String group, String topic, Map<String, String> options) {
    Map<String, Object> config = consumerConfig(address);
    Member.configure(config, group, options);
    var bytes = new ByteArrayDeserializer();
    var consumer = new KafkaConsumer<>(config, bytes, bytes);
    member = new Member(consumer, consumer::poll,
        (expression, told) -> consumer.subscribe(Pattern.compile(expression), told));
    member.join(topic);
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
    var bytes = new ByteArrayDeserializer();
    return new KafkaConsumer<>(consumerConfig(address), bytes, bytes);
  }

  private static ProducerRecord<byte[], byte[]> parse(String topic, String[] fields) {
    Integer partition = fields[0].equals("-1") ? null : Integer.valueOf(fields[0]);
    Long timestamp = fields[2].equals("-") ? null : Long.valueOf(fields[2]);
    return new ProducerRecord<>(topic, partition, timestamp, decode(fields[3]), decode(fields[4]));
  }

  private void print(ConsumerRecord<byte[], byte[]> record) {
    answer(record.partition(), record.offset(), record.timestamp(), encode(record.key()),
        encode(record.value()), "");
  }
}
