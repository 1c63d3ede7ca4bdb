// What a plugin of a system kind (storage, coordination, transport) includes on top of plugin.h:
// the environment, and the layouts of the types that cross only there.
#pragma once

#include <millrace/batch.h>
#include <millrace/broker.h>
#include <millrace/coordination.h>
#include <millrace/environment.h>
#include <millrace/plugin.h>
#include <millrace/storage.h>
#include <millrace/transport.h>

namespace millrace::detail {
inline constexpr MillraceLayout system_layout[] = {
    {"Error", sizeof(Error), alignof(Error)},
    {"Result<>", sizeof(Result<>), alignof(Result<>)},
    {"Buffer", sizeof(Buffer), alignof(Buffer)},
    {"Block", sizeof(Block), alignof(Block)},
    {"Options", sizeof(Options), alignof(Options)},
    {"OptionValue", sizeof(OptionValue), alignof(OptionValue)},
    {"Log", sizeof(Log), alignof(Log)},
    {"LogField", sizeof(LogField), alignof(LogField)},
    {"Payload", sizeof(Payload), alignof(Payload)},
    {"FileRange", sizeof(FileRange), alignof(FileRange)},
    {"Job", sizeof(Job), alignof(Job)},
    {"PromiseBase", sizeof(PromiseBase), alignof(PromiseBase)},
    {"PendingState<>", sizeof(PendingState<void>), alignof(PendingState<void>)},
    {"CancelScope", sizeof(CancelScope), alignof(CancelScope)},
    {"MemoryBudget", sizeof(MemoryBudget), alignof(MemoryBudget)},
    {"Address", sizeof(Address), alignof(Address)},
    {"LogOptions", sizeof(LogOptions), alignof(LogOptions)},
    {"BatchParts", sizeof(BatchParts), alignof(BatchParts)},
    {"LogBounds", sizeof(LogBounds), alignof(LogBounds)},
    {"SegmentInfo", sizeof(SegmentInfo), alignof(SegmentInfo)},
    {"ReadRequest", sizeof(ReadRequest), alignof(ReadRequest)},
    {"Opened", sizeof(Opened), alignof(Opened)},
    {"Write", sizeof(Write), alignof(Write)},
    {"Versioned", sizeof(Versioned), alignof(Versioned)},
    {"ProduceRequest", sizeof(ProduceRequest), alignof(ProduceRequest)},
    {"ProduceAnswer", sizeof(ProduceAnswer), alignof(ProduceAnswer)},
    {"FetchRequest", sizeof(FetchRequest), alignof(FetchRequest)},
    {"FetchAnswer", sizeof(FetchAnswer), alignof(FetchAnswer)},
    {nullptr, 0, 0},
};
}  // namespace millrace::detail

/// MILLRACE_PLUGIN for storage, coordination and transport.
#define MILLRACE_SYSTEM_PLUGIN(PluginClass, ...)                                         \
  MILLRACE_PLUGIN(PluginClass, __VA_ARGS__, .layout = ::millrace::detail::system_layout, \
                  .toolchain = MILLRACE_TOOLCHAIN_SYSTEM)
