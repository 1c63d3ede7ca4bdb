import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.common.protocol.Errors;

/** Commands in, answers out, as ../README.md describes them; the same for every version of the client. */
abstract class Lines {
  private final BufferedReader in =
      new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 20);
  private final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);

  /** Carries out one command; what it throws is the answer "error". */
  abstract void execute(String command, String[] words) throws Exception;

  /** What is done while no command comes; false when there is nothing to do. */
  boolean work() {
    return false;
  }

  private String next() throws IOException {
    while (!in.ready() && work()) {}
    return in.readLine();
  }

  void serve() throws IOException {
    for (String line; (line = next()) != null; ) {
      String[] words = line.split("\t", -1);
      try {
        execute(words[0], words);
        out.println("ok");
      } catch (Exception failure) {
        Throwable cause = failure instanceof ExecutionException ? failure.getCause() : failure;
        String text = cause.toString().replaceAll("\\s", " ");
        out.println("error\t" + Errors.forException(cause).code() + "\t" + text);
      }
      out.flush();
    }
  }

  void answer(Object... words) {
    List<String> texts = new ArrayList<>();
    for (Object word : words) {
      texts.add(word.toString());
    }
    out.println("= " + String.join("\t", texts));
  }

  /** The record lines that follow a command, each split into its fields. */
  List<String[]> records(int count) throws IOException {
    List<String[]> records = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      records.add(in.readLine().split("\t", -1));
    }
    return records;
  }

  /** NAME=VALUE words from the one at `from` on. */
  static Map<String, String> pairs(String[] words, int from) {
    Map<String, String> pairs = new HashMap<>();
    for (int i = from; i < words.length; i++) {
      int equals = words[i].indexOf('=');
      pairs.put(words[i].substring(0, equals), words[i].substring(equals + 1));
    }
    return pairs;
  }

  static byte[] decode(String text) {
    return text.equals("-") ? null : Base64.getDecoder().decode(text);
  }

  static String encode(byte[] data) {
    return data == null ? "-" : Base64.getEncoder().encodeToString(data);
  }

  static String encode(String text) {
    return encode(text == null ? null : text.getBytes(StandardCharsets.UTF_8));
  }

  static Map<String, Object> producerConfig(String address, Map<String, String> options) {
    Map<String, Object> config = new HashMap<>();
    config.put("bootstrap.servers", address);
    config.put("compression.type", options.get("codec"));
    config.put("acks", options.get("acks"));
    config.put("linger.ms", options.get("linger"));
    config.put("max.request.size", options.get("largest"));
    if (options.containsKey("in-flight")) {
      config.put("max.in.flight.requests.per.connection", options.get("in-flight"));
    }
    return config;
  }

  static Map<String, Object> consumerConfig(String address) {
    Map<String, Object> config = new HashMap<>();
    config.put("bootstrap.servers", address);
    config.put("auto.offset.reset", "none");
    config.put("enable.auto.commit", false);
    config.put("fetch.max.wait.ms", 100);
    return config;
  }
}
