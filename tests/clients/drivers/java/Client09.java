import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** 0.9: the first with today's consumer, which cannot ask for offsets but by going there. */
public class Client09 extends Lines {
  private static final long POLL_MS = 1000;

  private final String address;

  Client09(String address) {
    this.address = address;
  }

  public static void main(String[] args) throws Exception {
    new Client09(args[0]).serve();
    System.exit(0);
  }

  @Override
  void execute(String command, String[] words) throws Exception {
    switch (command) {
      case "produce" -> produce(words[1], Integer.parseInt(words[2]), pairs(words, 3));
      case "read" -> read(partition(words), Long.parseLong(words[3]));
      case "bounds" -> bounds(partition(words));
      default -> throw new IllegalArgumentException("unknown command " + command);
    }
  }

  private static TopicPartition partition(String[] words) {
    return new TopicPartition(words[1], Integer.parseInt(words[2]));
  }

  private void produce(String topic, int count, Map<String, String> options) throws Exception {
    List<String[]> records = records(count);
    var bytes = new ByteArraySerializer();
    try (var producer = new KafkaProducer<>(producerConfig(address, options), bytes, bytes)) {
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

  private KafkaConsumer<byte[], byte[]> consumer(TopicPartition partition) {
    var bytes = new ByteArrayDeserializer();
    var consumer = new KafkaConsumer<>(consumerConfig(address), bytes, bytes);
    consumer.assign(List.of(partition));
    return consumer;
  }

  private static long end(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition) {
    consumer.seekToEnd(partition);
    return consumer.position(partition);
  }

  private void read(TopicPartition partition, long start) {
    try (var consumer = consumer(partition)) {
      long end = end(consumer, partition);
      if (start < 0) {
        consumer.seekToBeginning(partition);
      } else {
        consumer.seek(partition, start);
      }
      while (consumer.position(partition) < end) {
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL_MS)) {
          answer(record.partition(), record.offset(), "-", encode(record.key()),
              encode(record.value()), "");
        }
      }
    }
  }

  private void bounds(TopicPartition partition) {
    try (var consumer = consumer(partition)) {
      long end = end(consumer, partition);
      consumer.seekToBeginning(partition);
      answer(consumer.position(partition), end);
    }
  }
}
