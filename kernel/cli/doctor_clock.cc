// The machine's clock.
#include <chrono>

#include "kernel/cli/doctor.h"
#include "kernel/cli/doctor_proc.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli::doctor {

Findings check_clock(const Patient& /*patient*/, Probe& probe) {
  constexpr Duration much = std::chrono::milliseconds(500);
  const auto* check = "clock.synchronised";
  const auto* remedy =
      "systemctl enable --now systemd-timesyncd (or install chrony): retention, timestamps and "
      "lookups by time go by this clock, and brokers are compared by it";
  const auto clock = probe.clock();
  if (!clock) {
    return {{check, Severity::warning, "whether the clock is right could not be found out",
             clock.error().detail, remedy}};
  }
  const auto error = concat("the system estimates that it is wrong by ",
                            clock->error_max / std::chrono::milliseconds(1), " ms at most");
  if (!clock->synchronised) {
    return {{check, Severity::warning, "nothing keeps the clock right", "adjtimex: unsynchronised",
             remedy}};
  }
  if (clock->error_max > much) {
    return {{check, Severity::warning, "the clock may be wrong by much", "adjtimex: " + error,
             "see timedatectl timesync-status or chronyc tracking for the servers it asks"}};
  }
  return {{check, Severity::ok, "the clock is kept right", "adjtimex: " + error, ""}};
}

}  // namespace millrace::kernel::cli::doctor
