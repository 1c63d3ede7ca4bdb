import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import kafka.api.FetchRequestBuilder;
import kafka.api.PartitionOffsetRequestInfo;
import kafka.common.TopicAndPartition;
import kafka.javaapi.OffsetRequest;
import kafka.javaapi.consumer.SimpleConsumer;
import kafka.message.MessageAndOffset;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** 0.8.2: the first producer in Java, and the simple consumer in Scala; both know format V0 alone. */
public class Client08 extends Lines {
  private static final int TIMEOUT_MS = 10_000;
  private static final int BUFFER_BYTES = 1 << 16;
  private static final int FETCH_BYTES = 4 << 20;  // what is larger never comes
  private static final String NAME = "client-0.8.2";

  private final String address;
  private final SimpleConsumer consumer;

  Client08(String address) {
    this.address = address;
    int colon = address.lastIndexOf(':');
    consumer = new SimpleConsumer(address.substring(0, colon),
        Integer.parseInt(address.substring(colon + 1)), TIMEOUT_MS, BUFFER_BYTES, NAME);
  }

  public static void main(String[] args) throws Exception {
    new Client08(args[0]).serve();
    System.exit(0);
  }

  @Override
  void execute(String command, String[] words) throws Exception {
    switch (command) {
      case "produce" -> produce(words[1], Integer.parseInt(words[2]), pairs(words, 3));
      case "read" -> read(words[1], Integer.parseInt(words[2]), Long.parseLong(words[3]));
      case "bounds" -> {
        int partition = Integer.parseInt(words[2]);
        answer(first(words[1], partition), end(words[1], partition));
      }
      default -> throw new IllegalArgumentException("unknown command " + command);
    }
  }

  private void produce(String topic, int count, Map<String, String> options) throws Exception {
    List<String[]> records = records(count);
    Map<String, Object> config = producerConfig(address, options);
    config.remove("max.in.flight.requests.per.connection");
    var bytes = new ByteArraySerializer();
    try (var producer = new KafkaProducer<>(config, bytes, bytes)) {
      List<Future<RecordMetadata>> sent = new ArrayList<>();
      for (String[] fields : records) {
        Integer partition = fields[0].equals("-1") ? null : Integer.valueOf(fields[0]);
        sent.add(producer.send(
            new ProducerRecord<>(topic, partition, decode(fields[3]), decode(fields[4]))));
      }
      for (Future<RecordMetadata> one : sent) {
        one.get();
      }
    }
  }

  private void read(String topic, int partition, long start) {
    long next = start < 0 ? first(topic, partition) : start;
    long end = end(topic, partition);
    while (next < end) {
      var request = new FetchRequestBuilder()
          .clientId(NAME)
          .addFetch(topic, partition, next, FETCH_BYTES)
          .maxWait(100)
          .build();
      var response = consumer.fetch(request);
      check(response.errorCode(topic, partition));
      for (MessageAndOffset found : response.messageSet(topic, partition)) {
        if (found.offset() < next) {
          continue;  // of the wrapper's beginning
        }
        next = found.nextOffset();
        answer(partition, found.offset(), "-", encode(bytes(found.message().key())),
            encode(bytes(found.message().payload())), "");
      }
    }
  }

  private long first(String topic, int partition) {
    return offset(topic, partition, kafka.api.OffsetRequest.EarliestTime());
  }

  private long end(String topic, int partition) {
    return offset(topic, partition, kafka.api.OffsetRequest.LatestTime());
  }

  private long offset(String topic, int partition, long time) {
    Map<TopicAndPartition, PartitionOffsetRequestInfo> asked = new HashMap<>();
    asked.put(new TopicAndPartition(topic, partition), new PartitionOffsetRequestInfo(time, 1));
    var found = consumer.getOffsetsBefore(
        new OffsetRequest(asked, kafka.api.OffsetRequest.CurrentVersion(), NAME));
    check(found.errorCode(topic, partition));
    return found.offsets(topic, partition)[0];
  }

  private static void check(short code) {
    if (code != 0) {
      throw org.apache.kafka.common.protocol.Errors.forCode(code).exception();
    }
  }

  private static byte[] bytes(ByteBuffer buffer) {
    if (buffer == null) {
      return null;
    }
    byte[] found = new byte[buffer.remaining()];
    buffer.get(found);
    return found;
  }
}
