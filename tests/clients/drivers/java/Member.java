import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import java.util.function.LongFunction;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** A member of a group that polls between commands; the same for every version of the client. */
class Member implements ConsumerRebalanceListener {
  private static final long POLL_MS = 50;

  private final KafkaConsumer<byte[], byte[]> consumer;
  private final LongFunction<ConsumerRecords<byte[], byte[]>> poll;
  private final BiConsumer<String, ConsumerRebalanceListener> match;
  private final List<Object[]> seen = new ArrayList<>();

  /**
   * `poll` takes milliseconds, `match` subscribes to a regular expression: how that is done differs
   * by version.
   */
  Member(KafkaConsumer<byte[], byte[]> consumer,
      LongFunction<ConsumerRecords<byte[], byte[]>> poll,
      BiConsumer<String, ConsumerRebalanceListener> match) {
    this.consumer = consumer;
    this.poll = poll;
    this.match = match;
  }

  static void configure(Map<String, Object> config, String group, Map<String, String> options) {
    config.put("group.id", group);
    config.put("auto.offset.reset", "earliest");
    boolean newer = "consumer".equals(options.get("protocol"));
    if (newer) {
      config.put("group.protocol", "consumer");
    }
    if (options.containsKey("instance")) {
      config.put("group.instance.id", options.get("instance"));
    }
    if (options.containsKey("session") && !newer) {
      config.put("session.timeout.ms", Integer.valueOf(options.get("session")));
      config.put("heartbeat.interval.ms", Integer.parseInt(options.get("session")) / 6);
    }
    if (options.containsKey("assignor") && !newer) {
      boolean cooperative = options.get("assignor").equals("cooperative");
      config.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer."
          + (cooperative ? "CooperativeStickyAssignor" : "RangeAssignor"));
    }
  }

  /** What begins with "^" is a regular expression. */
  void join(String topic) {
    if (topic.startsWith("^")) {
      match.accept(topic, this);
    } else {
      consumer.subscribe(List.of(topic), this);
    }
  }

  void poll() {
    for (ConsumerRecord<byte[], byte[]> record : poll.apply(POLL_MS)) {
      String value = Lines.encode(record.value());
      seen.add(new Object[] {"read", record.partition(), record.offset(), value});
    }
  }

  /** What has happened since it was last asked, and what it owns now. */
  void look(Lines out) {
    seen.forEach(out::answer);
    seen.clear();
    out.answer("owns", numbers(consumer.assignment()));
  }

  void commit() {
    consumer.commitSync();
  }

  void leave() {
    consumer.close();
  }

  @Override
  public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
    seen.add(new Object[] {"got", numbers(partitions)});
  }

  @Override
  public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
    seen.add(new Object[] {"gave", numbers(partitions)});
  }

  private static String numbers(Collection<TopicPartition> partitions) {
    var sorted = new TreeSet<Integer>();
    partitions.forEach(one -> sorted.add(one.partition()));
    List<String> texts = new ArrayList<>();
    sorted.forEach(one -> texts.add(one.toString()));
    return String.join(",", texts);
  }
}
