// A word count with keyed state: for every word of a value, the word and how often it has come.
#include <algorithm>
#include <charconv>
#include <memory>
#include <string>

#include <millrace/operator.h>
#include <millrace/plugin.h>

namespace {

using namespace millrace;

std::int64_t number_of(std::optional<Bytes> bytes) {
  std::int64_t number = 0;
  const auto text = bytes ? as_text(*bytes) : std::string_view();
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

class WordCount final : public Operator {
 public:
  Result<> process(const RecordView& input, Emitter& out) override {
    auto rest = input.value ? as_text(*input.value) : std::string_view();
    while (!rest.empty()) {
      const auto end = std::min(rest.find(' '), rest.size());
      if (end > 0) count(as_bytes(rest.substr(0, end)), out);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return {};
  }

 private:
  // The state and the position in the input are saved together: no crash counts a word twice.
  static void count(Bytes word, Emitter& out) {
    const auto seen = std::to_string(number_of(out.state().get(word)) + 1);
    out.state().put(word, as_bytes(seen));
    out.emit({word, as_bytes(seen), {}, {}, {}});
  }
};

class WordCountFactory final : public OperatorFactory {
 public:
  Result<std::unique_ptr<Operator>> make(const OperatorSetup& /*setup*/) override {
    return std::make_unique<WordCount>();
  }
};

class WordCountPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& /*host*/) override {
    return registrar.add(std::make_unique<WordCountFactory>());
  }
};

}  // namespace

MILLRACE_PLUGIN(WordCountPlugin, .kind = "operators", .id = "org.example.operators.word_count",
                .version = "0.1.0", .summary = "counts words");
