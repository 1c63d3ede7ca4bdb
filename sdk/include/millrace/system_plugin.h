// What a plugin of a system kind (storage, coordination, transport), or one that offers a service,
// includes on top of plugin.h: the environment, and the layouts of the types that cross only there.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include <millrace/admin.h>
#include <millrace/aggregates.h>
#include <millrace/batch.h>
#include <millrace/broker.h>
#include <millrace/configs.h>
#include <millrace/coordination.h>
#include <millrace/environment.h>
#include <millrace/groups.h>
#include <millrace/operations.h>
#include <millrace/peers.h>
#include <millrace/plugin.h>
#include <millrace/storage.h>
#include <millrace/streams.h>
#include <millrace/transport.h>

namespace millrace::detail {

/// Types that cross at the system kinds alone.
inline constexpr MillraceLayout system_types[] = {
    // what coroutines and waits are made of
    layout_of<Job>("Job"),
    layout_of<PromiseBase>("PromiseBase"),
    layout_of<Promise<void>>("Promise<void>"),
    layout_of<Task<>>("Task<>"),
    layout_of<PendingState<void>>("PendingState<void>"),
    layout_of<Pending<>>("Pending<>"),
    layout_of<Resolver<>>("Resolver<>"),
    layout_of<CancelScope>("CancelScope"),
    layout_of<MemoryBudget>("MemoryBudget"),
    layout_of<MemoryBudget::Lease>("MemoryBudget::Lease"),
    // types.h, payload.h, environment.h
    layout_of<TopicPartition>("TopicPartition"),
    layout_of<Uuid>("Uuid"),
    layout_of<Payload>("Payload"),
    layout_of<FileRange>("FileRange"),
    layout_of<Address>("Address"),
    layout_of<FileInfo>("FileInfo"),
    layout_of<SpaceInfo>("SpaceInfo"),
    // observe.h, operations.h
    layout_of<MetricSample>("MetricSample"),
    layout_of<MetricFamily>("MetricFamily"),
    layout_of<PluginFact>("PluginFact"),
    layout_of<SettingFact>("SettingFact"),
    layout_of<LogLevelFact>("LogLevelFact"),
    // storage.h
    layout_of<LogOptions>("LogOptions"),
    layout_of<BatchParts>("BatchParts"),
    layout_of<LogBounds>("LogBounds"),
    layout_of<SegmentInfo>("SegmentInfo"),
    layout_of<ReadRequest>("ReadRequest"),
    layout_of<BatchPosition>("BatchPosition"),
    layout_of<AuxEntry>("AuxEntry"),
    layout_of<Opened>("Opened"),
    layout_of<PartitionOffset>("PartitionOffset"),
    layout_of<FoundPartition>("FoundPartition"),
    layout_of<DirectoryOwner>("DirectoryOwner"),
    // coordination.h
    layout_of<Versioned>("Versioned"),
    layout_of<Write>("Write"),
    layout_of<Member>("Member"),
    layout_of<Seen>("Seen"),
    // transport.h, broker.h and admin.h: calls, and every structure inside a request or an answer
    layout_of<Endpoint>("Endpoint"),
    layout_of<ClientInfo>("ClientInfo"),
    layout_of<TopicName>("TopicName"),
    layout_of<Call<ProduceAnswer>>("Call<ProduceAnswer>"),
    layout_of<Call<FetchAnswer>>("Call<FetchAnswer>"),
    layout_of<ProduceRequest>("ProduceRequest"),
    layout_of<ProduceFeatures>("ProduceFeatures"),
    layout_of<TopicRecords>("TopicRecords"),
    layout_of<PartitionRecords>("PartitionRecords"),
    layout_of<ProduceAnswer>("ProduceAnswer"),
    layout_of<TopicProduced>("TopicProduced"),
    layout_of<PartitionProduced>("PartitionProduced"),
    layout_of<RecordError>("RecordError"),
    layout_of<FetchRequest>("FetchRequest"),
    layout_of<TopicFetch>("TopicFetch"),
    layout_of<PartitionFetch>("PartitionFetch"),
    layout_of<TopicForgotten>("TopicForgotten"),
    layout_of<FetchAnswer>("FetchAnswer"),
    layout_of<TopicFetched>("TopicFetched"),
    layout_of<PartitionFetched>("PartitionFetched"),
    layout_of<AbortedTransaction>("AbortedTransaction"),
    layout_of<ListOffsetsRequest>("ListOffsetsRequest"),
    layout_of<TopicOffsetQuery>("TopicOffsetQuery"),
    layout_of<PartitionOffsetQuery>("PartitionOffsetQuery"),
    layout_of<ListOffsetsAnswer>("ListOffsetsAnswer"),
    layout_of<TopicOffsetsFound>("TopicOffsetsFound"),
    layout_of<PartitionOffsetFound>("PartitionOffsetFound"),
    layout_of<TopicEpochQuery>("TopicEpochQuery"),
    layout_of<PartitionEpochQuery>("PartitionEpochQuery"),
    layout_of<TopicEpochEnds>("TopicEpochEnds"),
    layout_of<PartitionEpochEnd>("PartitionEpochEnd"),
    layout_of<MetadataRequest>("MetadataRequest"),
    layout_of<MetadataAnswer>("MetadataAnswer"),
    layout_of<BrokerInfo>("BrokerInfo"),
    layout_of<TopicInfo>("TopicInfo"),
    layout_of<PartitionInfo>("PartitionInfo"),
    layout_of<CreateTopicsRequest>("CreateTopicsRequest"),
    layout_of<NewTopic>("NewTopic"),
    layout_of<TopicCreated>("TopicCreated"),
    layout_of<ConfigEntry>("ConfigEntry"),
    layout_of<ConfigSynonym>("ConfigSynonym"),
    layout_of<ConfigQuery>("ConfigQuery"),
    layout_of<ConfigsDescribed>("ConfigsDescribed"),
    layout_of<AlterConfigsRequest>("AlterConfigsRequest"),
    layout_of<ConfigAlteration>("ConfigAlteration"),
    layout_of<ConfigChange>("ConfigChange"),
    layout_of<ConfigsAltered>("ConfigsAltered"),
    layout_of<TopicDeleted>("TopicDeleted"),
    layout_of<GrowTopicsRequest>("GrowTopicsRequest"),
    layout_of<TopicGrowth>("TopicGrowth"),
    layout_of<TopicGrown>("TopicGrown"),
    layout_of<TrimRequest>("TrimRequest"),
    layout_of<TopicTrim>("TopicTrim"),
    layout_of<PartitionTrim>("PartitionTrim"),
    layout_of<TopicTrimmed>("TopicTrimmed"),
    layout_of<PartitionTrimmed>("PartitionTrimmed"),
    layout_of<TopicPartitions>("TopicPartitions"),
    layout_of<TopicPageRequest>("TopicPageRequest"),
    layout_of<TopicPage>("TopicPage"),
    layout_of<LogFolder>("LogFolder"),
    layout_of<TopicSizes>("TopicSizes"),
    layout_of<PartitionSize>("PartitionSize"),
    layout_of<TopicProducers>("TopicProducers"),
    layout_of<PartitionProducers>("PartitionProducers"),
    layout_of<ProducerInfo>("ProducerInfo"),
    layout_of<InitProducerIdRequest>("InitProducerIdRequest"),
    layout_of<InitProducerIdAnswer>("InitProducerIdAnswer"),
    layout_of<PartitionOutcome>("PartitionOutcome"),
    layout_of<TopicOutcome>("TopicOutcome"),
    layout_of<ClusterOutcome>("ClusterOutcome"),
    layout_of<ElectionRequest>("ElectionRequest"),
    layout_of<PartitionReassignment>("PartitionReassignment"),
    layout_of<TopicReassignment>("TopicReassignment"),
    layout_of<ReassignmentRequest>("ReassignmentRequest"),
    layout_of<OngoingReassignment>("OngoingReassignment"),
    layout_of<OngoingReassignments>("OngoingReassignments"),
    layout_of<ReassignmentsListed>("ReassignmentsListed"),
    // peers.h
    layout_of<ClusterPartition>("ClusterPartition"),
    layout_of<ClusterTopicState>("ClusterTopicState"),
    layout_of<ClusterBroker>("ClusterBroker"),
    layout_of<ClusterUpdate>("ClusterUpdate"),
    layout_of<ReplicaFailure>("ReplicaFailure"),
    layout_of<ClusterUpdated>("ClusterUpdated"),
    layout_of<InSyncChange>("InSyncChange"),
    layout_of<InSyncChanged>("InSyncChanged"),
    layout_of<LeadersMoved>("LeadersMoved"),
    // aggregates.h, groups.h
    layout_of<Command>("Command"),
    layout_of<EventInfo>("EventInfo"),
    layout_of<Effect>("Effect"),
    layout_of<EffectOutcome>("EffectOutcome"),
    layout_of<ClusterTopicState>("ClusterTopicState"),
    layout_of<AggregateDeclaration>("AggregateDeclaration"),
    layout_of<AggregateAnswer>("AggregateAnswer"),
    layout_of<Call<AggregateAnswer>>("Call<AggregateAnswer>"),
    layout_of<AggregateHome>("AggregateHome"),
    layout_of<GroupProtocol>("GroupProtocol"),
    layout_of<JoinGroupRequest>("JoinGroupRequest"),
    layout_of<JoinGroupMember>("JoinGroupMember"),
    layout_of<JoinGroupAnswer>("JoinGroupAnswer"),
    layout_of<GroupAssignment>("GroupAssignment"),
    layout_of<SyncGroupRequest>("SyncGroupRequest"),
    layout_of<SyncGroupAnswer>("SyncGroupAnswer"),
    layout_of<GroupHeartbeat>("GroupHeartbeat"),
    layout_of<LeavingMember>("LeavingMember"),
    layout_of<LeaveGroupRequest>("LeaveGroupRequest"),
    layout_of<LeaveGroupAnswer>("LeaveGroupAnswer"),
    layout_of<LeaveGroupAnswer::Member>("LeaveGroupAnswer::Member"),
    layout_of<TopicIdPartitions>("TopicIdPartitions"),
    layout_of<ConsumerHeartbeat>("ConsumerHeartbeat"),
    layout_of<ConsumerHeartbeatAnswer>("ConsumerHeartbeatAnswer"),
    layout_of<ConsumerAssignment>("ConsumerAssignment"),
    layout_of<ConsumerAssignment::Topic>("ConsumerAssignment::Topic"),
    layout_of<ConsumerGroupDescribed>("ConsumerGroupDescribed"),
    layout_of<ConsumerGroupDescribed::Member>("ConsumerGroupDescribed::Member"),
    layout_of<PartitionCommit>("PartitionCommit"),
    layout_of<TopicCommit>("TopicCommit"),
    layout_of<OffsetCommitRequest>("OffsetCommitRequest"),
    layout_of<PartitionCommitted>("PartitionCommitted"),
    layout_of<TopicCommitted>("TopicCommitted"),
    layout_of<GroupOffsetsQuery>("GroupOffsetsQuery"),
    layout_of<GroupOffsetsQuery::Topic>("GroupOffsetsQuery::Topic"),
    layout_of<GroupOffsets>("GroupOffsets"),
    layout_of<GroupOffsets::Partition>("GroupOffsets::Partition"),
    layout_of<GroupOffsets::Topic>("GroupOffsets::Topic"),
    layout_of<OffsetDeletion>("OffsetDeletion"),
    layout_of<OffsetDeletion::Topic>("OffsetDeletion::Topic"),
    layout_of<OffsetsDeleted>("OffsetsDeleted"),
    layout_of<OffsetsDeleted::Topic>("OffsetsDeleted::Topic"),
    layout_of<GroupFilter>("GroupFilter"),
    layout_of<GroupListed>("GroupListed"),
    layout_of<GroupsListed>("GroupsListed"),
    layout_of<GroupDescribed>("GroupDescribed"),
    layout_of<GroupDescribed::Member>("GroupDescribed::Member"),
    layout_of<GroupDeleted>("GroupDeleted"),
    layout_of<GroupCoordinator>("GroupCoordinator"),
    // streams.h
    layout_of<StreamStep>("StreamStep"),
    layout_of<StreamSpec>("StreamSpec"),
    layout_of<StreamStepFact>("StreamStepFact"),
    layout_of<StreamSourceFact>("StreamSourceFact"),
    layout_of<StreamTaskFact>("StreamTaskFact"),
    layout_of<StreamFact>("StreamFact"),
    {nullptr, 0, 0},
};

/// One table of two that each end with a null type.
template <std::size_t A, std::size_t B>
consteval std::array<MillraceLayout, A + B - 1> joined(const MillraceLayout (&first)[A],
                                                       const MillraceLayout (&second)[B]) {
  std::array<MillraceLayout, A + B - 1> all{};
  std::copy_n(first, A - 1, all.begin());
  std::copy_n(second, B, all.begin() + A - 1);
  return all;
}
inline constexpr auto system_table = joined(shared_layout, system_types);
/// Everything that a system plugin shares with the kernel.
inline constexpr const MillraceLayout* system_layout = system_table.data();

}  // namespace millrace::detail

/// MILLRACE_PLUGIN for storage, coordination and transport.
#define MILLRACE_SYSTEM_PLUGIN(PluginClass, ...)                                         \
  MILLRACE_PLUGIN(PluginClass, __VA_ARGS__, .layout = ::millrace::detail::system_layout, \
                  .toolchain = MILLRACE_TOOLCHAIN_SYSTEM)
