#include "kernel/daemon/read_plan.h"

#include "kernel/daemon/setting_problems.h"
#include "kernel/partition/config_options.h"

namespace millrace::kernel {

std::expected<Plan, ConfigErrors> read_plan(const ConfigSource& source, const LoadLibrary& load) {
  const auto config = Config::load(source);
  if (!config) return std::unexpected(config.error());
  auto plan = make_plan(*config, broker_defaults(), topic_table_settings(), load);
  if (!plan) return plan;
  auto problems = setting_problems(*plan);
  if (!problems.empty()) return std::unexpected(std::move(problems));
  return plan;
}

}  // namespace millrace::kernel
