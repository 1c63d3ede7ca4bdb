import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;

/**
 * The stream that tests/bench/streams measures, as a Kafka Streams job: one thread, at least once, every record that has a
 * value goes on as it is. Arguments: bootstrap servers, source, sink. Ends with standard input.
 */
public final class FilterJob {
  public static void main(String[] arguments) throws Exception {
    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "filter");
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
    settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
    settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
    settings.put("auto.offset.reset", "earliest");

    StreamsBuilder builder = new StreamsBuilder();
    builder.<byte[], byte[]>stream(arguments[1])
        .filter((key, value) -> value != null)
        .to(arguments[2]);
    try (KafkaStreams job = new KafkaStreams(builder.build(), settings)) {
      job.start();
      while (System.in.read() >= 0) {
        // Nothing is said to it; the end of the input is what it waits for.
      }
    }
  }
}
