import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A producer and a reader with the client's own settings, as ../README.md describes them. */
class StreamClient {
  private static volatile boolean ending = false;

  public static void main(String[] arguments) throws Exception {
    String topic = arguments[1];
    int partitions = Integer.parseInt(arguments[2]);
    Map<String, Object> config = Map.of("bootstrap.servers", arguments[0]);
    Thread reader = new Thread(() -> read(config, topic, partitions));
    reader.start();
    var in = new BufferedReader(new InputStreamReader(System.in));
    try (var producer =
        new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
      for (String line; (line = in.readLine()) != null; ) {
        String[] words = line.split(" ");
        producer.send(new ProducerRecord<>(topic, words[1], words[0]), (stored, failure) -> {
          if (failure != null) {
            say("failed " + words[0] + " " + failure);
          } else {
            say("acknowledged " + words[0] + " " + stored.partition() + " " + stored.offset());
          }
        });
      }
    }
    ending = true;
    reader.join();
  }

  private static void read(Map<String, Object> config, String topic, int partitions) {
    List<TopicPartition> all =
        IntStream.range(0, partitions).mapToObj(n -> new TopicPartition(topic, n)).toList();
    try (var consumer =
        new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
      consumer.assign(all);
      consumer.seekToBeginning(all);
      while (!ending) {
        for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(100))) {
          say("read " + one.value() + " " + one.partition() + " " + one.offset());
        }
      }
    } catch (RuntimeException failure) {
      say("failed -1 " + failure);
    }
  }

  private static synchronized void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
}
