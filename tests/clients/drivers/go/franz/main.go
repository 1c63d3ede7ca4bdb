// franz-go, driven by lines: franz ADDRESS
package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace.tests/drivers/lines"
)

type client struct {
	address  string
	admin    *kadm.Client
	follower *kgo.Client
	followed map[int32]bool
	topic    string
	member   *member
}

func main() {
	address := os.Args[len(os.Args)-1]
	connection, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		panic(err)
	}
	lines.Serve(&client{address: address, admin: kadm.NewClient(connection)}, code)
}

func code(err error) int {
	var known *kerr.Error
	if errors.As(err, &known) {
		return int(known.Code)
	}
	return -1
}

// fresh is a connection that remembers nothing, as every other one does of topics for a while.
func (c *client) fresh() *kgo.Client {
	connection, err := kgo.NewClient(kgo.SeedBrokers(c.address))
	if err != nil {
		panic(err) // the address was good before
	}
	return connection
}

func deadline() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), lines.Deadline)
}

func (c *client) Create(topic string, partitions int32, config map[string]string) error {
	ctx, cancel := deadline()
	defer cancel()
	settings := map[string]*string{}
	for name, value := range config {
		settings[name] = &value
	}
	_, err := c.admin.CreateTopic(ctx, partitions, 1, settings, topic)
	return err
}

func (c *client) Delete(topic string) error {
	ctx, cancel := deadline()
	defer cancel()
	_, err := c.admin.DeleteTopic(ctx, topic)
	return err
}

func (c *client) List() ([]string, error) {
	ctx, cancel := deadline()
	defer cancel()
	connection := c.fresh()
	defer connection.Close()
	found, err := kadm.NewClient(connection).ListTopics(ctx)
	return found.Names(), err
}

func (c *client) Partitions(topic string) (int, error) {
	ctx, cancel := deadline()
	defer cancel()
	connection := c.fresh()
	defer connection.Close()
	found, err := kadm.NewClient(connection).ListTopics(ctx, topic)
	if err != nil {
		return 0, err
	}
	return len(found[topic].Partitions), found[topic].Err
}

func (c *client) Grow(topic string, partitions int32) error {
	ctx, cancel := deadline()
	defer cancel()
	answers, err := c.admin.UpdatePartitions(ctx, int(partitions), topic)
	if err != nil {
		return err
	}
	return answers[topic].Err
}

func (c *client) Trim(topic string, partition int32, offset int64) (int64, error) {
	ctx, cancel := deadline()
	defer cancel()
	var asked kadm.Offsets
	asked.AddOffset(topic, partition, offset, -1)
	answers, err := c.admin.DeleteRecords(ctx, asked)
	if err != nil {
		return 0, err
	}
	answer, _ := answers.Lookup(topic, partition)
	return answer.LowWatermark, answer.Err
}

// Describe asks for itself: the admin client does not tell what is read-only.
func (c *client) Describe(kind, name string) ([]lines.Setting, error) {
	ctx, cancel := deadline()
	defer cancel()
	request := kmsg.NewPtrDescribeConfigsRequest()
	request.IncludeSynonyms = true
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceName = name
	resource.ResourceType = kmsg.ConfigResourceTypeTopic
	if kind == "broker" {
		resource.ResourceType = kmsg.ConfigResourceTypeBroker
	}
	request.Resources = append(request.Resources, resource)
	connection := c.fresh()
	defer connection.Close()
	answer, err := request.RequestWith(ctx, connection)
	if err != nil {
		return nil, err
	}
	if err := kerr.ErrorForCode(answer.Resources[0].ErrorCode); err != nil {
		return nil, err
	}
	var settings []lines.Setting
	for _, one := range answer.Resources[0].Configs {
		setting := lines.Setting{
			Name: one.Name, Value: one.Value, Source: int8(one.Source), ReadOnly: one.ReadOnly,
		}
		for _, other := range one.ConfigSynonyms {
			setting.Synonyms = append(
				setting.Synonyms, lines.Synonym{Name: other.Name, Value: other.Value, Source: int8(other.Source)})
		}
		settings = append(settings, setting)
	}
	return settings, nil
}

func (c *client) Alter(topic string, config map[string]string) error {
	ctx, cancel := deadline()
	defer cancel()
	var changes []kadm.AlterConfig
	for name, value := range config {
		changes = append(changes, kadm.AlterConfig{Name: name, Value: &value})
	}
	return outcome(c.admin.AlterTopicConfigsState(ctx, changes, topic))
}

func (c *client) Adjust(topic string, operation int8, name, value string) error {
	ctx, cancel := deadline()
	defer cancel()
	change := kadm.AlterConfig{Op: kadm.IncrementalOp(operation), Name: name, Value: &value}
	return outcome(c.admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{change}, topic))
}

func outcome(answers kadm.AlterConfigsResponses, err error) error {
	if err != nil {
		return err
	}
	return answers[0].Err
}

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func (c *client) Produce(topic string, records []lines.Record, options lines.Options) error {
	ctx, cancel := deadline()
	defer cancel()
	producer, err := kgo.NewClient(producerOptions(c.address, options)...)
	if err != nil {
		return err
	}
	defer producer.Close()
	var sent []*kgo.Record
	for _, record := range records {
		one := &kgo.Record{Topic: topic, Partition: record.Partition, Key: record.Key, Value: record.Value}
		if record.Time != nil {
			one.Timestamp = *record.Time
		}
		for _, header := range record.Headers {
			one.Headers = append(one.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
		}
		sent = append(sent, one)
	}
	return producer.ProduceSync(ctx, sent...).FirstErr()
}

func producerOptions(address string, options lines.Options) []kgo.Opt {
	acks := map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}
	byKey := kgo.StickyKeyPartitioner(nil)
	chosen := []kgo.Opt{
		kgo.SeedBrokers(address),
		kgo.ProducerBatchCompression(codecs[options.Codec]),
		kgo.RequiredAcks(acks[options.Acks]),
		kgo.ProducerLinger(options.Linger),
		kgo.ProducerBatchMaxBytes(int32(options.Largest)),
		kgo.RecordPartitioner(ownOrByKey{byKey}),
	}
	if options.Acks != "all" || (options.Idempotent != nil && !*options.Idempotent) {
		chosen = append(chosen, kgo.DisableIdempotentWrite())
	}
	if options.InFlight > 0 {
		chosen = append(chosen, kgo.MaxProduceRequestsInflightPerBroker(options.InFlight))
	}
	return chosen
}

// ownOrByKey takes the record's partition where it names one.
type ownOrByKey struct{ byKey kgo.Partitioner }

func (p ownOrByKey) ForTopic(topic string) kgo.TopicPartitioner {
	return topicPartitioner{p.byKey.ForTopic(topic)}
}

type topicPartitioner struct{ byKey kgo.TopicPartitioner }

func (p topicPartitioner) RequiresConsistency(record *kgo.Record) bool {
	return record.Partition >= 0 || p.byKey.RequiresConsistency(record)
}

func (p topicPartitioner) Partition(record *kgo.Record, partitions int) int {
	if record.Partition >= 0 {
		return int(record.Partition)
	}
	return p.byKey.Partition(record, partitions)
}

func (c *client) Time(topic string, partition int32, timestamp int64) (int64, error) {
	offset, found, err := c.offsetAt(topic, partition, timestamp)
	if err != nil || !found {
		return -1, err
	}
	return offset, nil
}

// offsetAt asks for itself: the admin client answers the end of the partition where there is none.
func (c *client) offsetAt(topic string, partition int32, timestamp int64) (int64, bool, error) {
	ctx, cancel := deadline()
	defer cancel()
	request := kmsg.NewPtrListOffsetsRequest()
	one := kmsg.NewListOffsetsRequestTopic()
	one.Topic = topic
	place := kmsg.NewListOffsetsRequestTopicPartition()
	place.Partition, place.Timestamp = partition, timestamp
	one.Partitions = append(one.Partitions, place)
	request.Topics = append(request.Topics, one)
	connection := c.fresh()
	defer connection.Close()
	answer, err := request.RequestWith(ctx, connection)
	if err != nil {
		return 0, false, err
	}
	found := answer.Topics[0].Partitions[0]
	return found.Offset, found.Offset >= 0, kerr.ErrorForCode(found.ErrorCode)
}

func (c *client) Bounds(topic string, partition int32) (int64, int64, error) {
	first, _, err := c.offsetAt(topic, partition, -2)
	if err != nil {
		return 0, 0, err
	}
	end, _, err := c.offsetAt(topic, partition, -1)
	return first, end, err
}

func (c *client) consumer(topic string, partition int32, start int64) (*kgo.Client, error) {
	offset := kgo.NewOffset().At(start)
	if start < 0 {
		offset = kgo.NewOffset().AtStart()
	}
	return kgo.NewClient(
		kgo.SeedBrokers(c.address),
		kgo.FetchMaxWait(100*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: offset}}),
	)
}

func (c *client) Read(topic string, partition int32, start int64, emit func(lines.Record)) error {
	first, end, err := c.Bounds(topic, partition)
	if err != nil || max(first, start) >= end {
		return err
	}
	consumer, err := c.consumer(topic, partition, start)
	if err != nil {
		return err
	}
	defer consumer.Close()
	ctx, cancel := deadline()
	defer cancel()
	for next := int64(0); next < end; {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(record *kgo.Record) {
			next = record.Offset + 1
			emit(line(record))
		})
	}
	return nil
}

func (c *client) Seek(topic string, partition int32, offsets []int64, emit func(lines.Record)) error {
	consumer, err := c.consumer(topic, partition, offsets[0])
	if err != nil {
		return err
	}
	defer consumer.Close()
	ctx, cancel := deadline()
	defer cancel()
	for _, offset := range offsets {
		consumer.SetOffsets(map[string]map[int32]kgo.EpochOffset{topic: {partition: {Epoch: -1, Offset: offset}}})
		fetches := consumer.PollRecords(ctx, 1)
		if err := fetches.Err(); err != nil {
			return err
		}
		emit(line(fetches.Records()[0]))
	}
	return nil
}

func (c *client) Follow(topic string, partitions []int32) error {
	if c.follower == nil {
		follower, err := kgo.NewClient(kgo.SeedBrokers(c.address), kgo.FetchMaxWait(100*time.Millisecond))
		if err != nil {
			return err
		}
		c.follower = follower
	}
	if topic != c.topic {
		c.follower.PurgeTopicsFromClient(c.topic)
		c.topic, c.followed = topic, map[int32]bool{}
	}
	wanted, added := map[int32]bool{}, map[int32]kgo.Offset{}
	for _, partition := range partitions {
		wanted[partition] = true
		if !c.followed[partition] {
			added[partition] = kgo.NewOffset().AtStart()
		}
	}
	var removed []int32
	for partition := range c.followed {
		if !wanted[partition] {
			removed = append(removed, partition)
		}
	}
	if len(removed) > 0 {
		c.follower.RemoveConsumePartitions(map[string][]int32{topic: removed})
	}
	c.follower.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: added})
	c.followed = wanted
	return nil
}

func (c *client) Take(count int, emit func(lines.Record)) error {
	ctx, cancel := deadline()
	defer cancel()
	for taken := 0; taken < count; {
		fetches := c.follower.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return errors.Join(err, errors.New("only "+strconv.Itoa(taken)+" records came"))
		}
		fetches.EachRecord(func(record *kgo.Record) {
			taken++
			emit(line(record))
		})
	}
	return nil
}

func line(record *kgo.Record) lines.Record {
	one := lines.Record{
		Partition: record.Partition, Offset: record.Offset, Time: &record.Timestamp,
		Key: record.Key, Value: record.Value,
	}
	for _, header := range record.Headers {
		one.Headers = append(one.Headers, lines.Header{Name: header.Key, Value: header.Value})
	}
	return one
}
