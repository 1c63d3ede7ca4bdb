// A bank account as an entity: "deposit 500" and "withdraw 200", in cents; nobody overdraws.
#include <algorithm>
#include <memory>
#include <string>

#include <millrace/entity.h>
#include <millrace/plugin.h>

namespace {

using namespace millrace;

struct Account {
  using Command = std::string;
  using Event = std::int64_t;  // cents that came, or went when below 0

  // Looks, and says what happens. The answer is the balance after it.
  Result<std::string> decide(const Command& command, Decision<Event>& decision) const {
    const auto space = std::min(command.find(' '), command.size());
    const auto verb = command.substr(0, space);
    if (verb != "deposit" && verb != "withdraw") {
      return Error{Errc::invalid_argument, "expected deposit or withdraw, found " + verb};
    }
    std::int64_t moved = 0;
    MR_CHECK(millrace::decode(as_bytes(command).subspan(space + (space < command.size())), moved));
    if (moved <= 0) return Error{Errc::invalid_argument, "expected an amount above 0"};
    if (verb == "withdraw") moved = -moved;
    if (cents + moved < 0) return Error{Errc::conflict, "there are " + std::to_string(cents)};
    decision.emit(moved);
    return std::to_string(cents + moved);
  }
  void apply(const Event& moved) { cents += moved; }

  std::int64_t cents = 0;
};
// The state as a snapshot keeps it.
std::string encode(const Account& account) { return std::to_string(account.cents); }
Result<> decode(Bytes from, Account& into) { return millrace::decode(from, into.cents); }

class BankPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& /*host*/) override {
    return registrar.add(std::make_unique<EntityFactory<Account>>("accounts"));
  }
};

}  // namespace

MILLRACE_PLUGIN(BankPlugin, .kind = "operators", .id = "org.example.operators.bank",
                .version = "0.1.0", .summary = "bank accounts");
