// segmentio/kafka-go, driven by lines: segmentio ADDRESS
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/segmentio/kafka-go"

	"millrace.tests/drivers/lines"
)

type client struct {
	address string
	kafka   *kafka.Client
}

func main() {
	address := os.Args[len(os.Args)-1]
	c := &kafka.Client{Addr: kafka.TCP(address), Timeout: lines.Deadline}
	lines.Serve(&client{address, c}, code)
}

func code(err error) int {
	var known kafka.Error
	if errors.As(err, &known) {
		return int(known)
	}
	var failures kafka.WriteErrors
	if errors.As(err, &failures) {
		for _, one := range failures {
			if one != nil {
				return code(one)
			}
		}
	}
	var tooLarge kafka.MessageTooLargeError
	if errors.As(err, &tooLarge) {
		return int(kafka.MessageSizeTooLarge)
	}
	return -1
}

func deadline() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), lines.Deadline)
}

func (c *client) Create(topic string, partitions int32, config map[string]string) error {
	ctx, cancel := deadline()
	defer cancel()
	wanted := kafka.TopicConfig{Topic: topic, NumPartitions: int(partitions), ReplicationFactor: 1}
	for name, value := range config {
		wanted.ConfigEntries = append(
			wanted.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: value})
	}
	answer, err := c.kafka.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{wanted}})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (c *client) Delete(topic string) error {
	ctx, cancel := deadline()
	defer cancel()
	answer, err := c.kafka.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

// metadata goes by a connection of its own: the client answers from what it remembers.
func (c *client) metadata(topics ...string) ([]kafka.Partition, error) {
	connection, err := kafka.Dial("tcp", c.address)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	return connection.ReadPartitions(topics...)
}

func (c *client) List() ([]string, error) {
	partitions, err := c.metadata()
	var names []string
	for _, partition := range partitions {
		if partition.ID == 0 {
			names = append(names, partition.Topic)
		}
	}
	return names, err
}

func (c *client) Partitions(topic string) (int, error) {
	found, err := c.metadata(topic)
	return len(found), err
}

func (c *client) Grow(topic string, partitions int32) error {
	ctx, cancel := deadline()
	defer cancel()
	wanted := kafka.TopicPartitionsConfig{Name: topic, Count: partitions}
	answer, err := c.kafka.CreatePartitions(
		ctx, &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{wanted}})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (c *client) Describe(kind, name string) ([]lines.Setting, error) {
	ctx, cancel := deadline()
	defer cancel()
	resource := kafka.DescribeConfigRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: name}
	if kind == "broker" {
		resource.ResourceType = kafka.ResourceTypeBroker
	}
	answer, err := c.kafka.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{resource}, IncludeSynonyms: true,
	})
	if err != nil {
		return nil, err
	}
	var settings []lines.Setting
	for _, entry := range answer.Resources[0].ConfigEntries {
		setting := lines.Setting{
			Name: entry.ConfigName, Value: &entry.ConfigValue, Source: entry.ConfigSource, ReadOnly: entry.ReadOnly,
		}
		for _, other := range entry.ConfigSynonyms {
			setting.Synonyms = append(setting.Synonyms,
				lines.Synonym{Name: other.ConfigName, Value: &other.ConfigValue, Source: other.ConfigSource})
		}
		settings = append(settings, setting)
	}
	return settings, answer.Resources[0].Error
}

func (c *client) Alter(topic string, config map[string]string) error {
	ctx, cancel := deadline()
	defer cancel()
	resource := kafka.AlterConfigRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic}
	for name, value := range config {
		resource.Configs = append(resource.Configs, kafka.AlterConfigRequestConfig{Name: name, Value: value})
	}
	answer, err := c.kafka.AlterConfigs(
		ctx, &kafka.AlterConfigsRequest{Resources: []kafka.AlterConfigRequestResource{resource}})
	if err != nil {
		return err
	}
	for _, one := range answer.Errors {
		err = errors.Join(err, one)
	}
	return err
}

func (c *client) Adjust(topic string, operation int8, name, value string) error {
	ctx, cancel := deadline()
	defer cancel()
	change := kafka.IncrementalAlterConfigsRequestConfig{
		Name: name, Value: value, ConfigOperation: kafka.ConfigOperation(operation),
	}
	resource := kafka.IncrementalAlterConfigsRequestResource{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
		Configs: []kafka.IncrementalAlterConfigsRequestConfig{change},
	}
	answer, err := c.kafka.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{resource},
	})
	if err != nil {
		return err
	}
	return answer.Resources[0].Error
}

func (c *client) Produce(topic string, records []lines.Record, options lines.Options) error {
	ctx, cancel := deadline()
	defer cancel()
	codecs := map[string]kafka.Compression{
		"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
	}
	acks := map[string]kafka.RequiredAcks{
		"0": kafka.RequireNone, "1": kafka.RequireOne, "all": kafka.RequireAll,
	}
	writer := &kafka.Writer{
		Addr: kafka.TCP(c.address), Topic: topic, Balancer: ownOrByKey{&kafka.Hash{}},
		RequiredAcks: acks[options.Acks], Compression: codecs[options.Codec],
		BatchBytes: int64(options.Largest), BatchTimeout: max(options.Linger, time.Millisecond),
		// Its own idle connections would outlive it.
		Transport: &kafka.Transport{IdleTimeout: time.Second},
	}
	messages := make([]kafka.Message, len(records))
	for i, record := range records {
		messages[i] = kafka.Message{Key: record.Key, Value: record.Value, WriterData: record.Partition}
		if record.Time != nil {
			messages[i].Time = *record.Time
		}
		for _, header := range record.Headers {
			messages[i].Headers = append(messages[i].Headers, kafka.Header{Key: header.Name, Value: header.Value})
		}
	}
	return errors.Join(writer.WriteMessages(ctx, messages...), writer.Close())
}

// ownOrByKey takes the record's partition where it names one.
type ownOrByKey struct{ byKey kafka.Balancer }

func (b ownOrByKey) Balance(message kafka.Message, partitions ...int) int {
	if own := message.WriterData.(int32); own >= 0 {
		return int(own)
	}
	return b.byKey.Balance(message, partitions...)
}

func (c *client) Time(topic string, partition int32, timestamp int64) (int64, error) {
	ctx, cancel := deadline()
	defer cancel()
	asked := kafka.TimeOffsetOf(int(partition), time.UnixMilli(timestamp))
	found, err := c.offsets(ctx, topic, asked)
	if err != nil {
		return 0, err
	}
	for offset := range found.Offsets {
		return offset, nil
	}
	return -1, nil
}

func (c *client) Bounds(topic string, partition int32) (int64, int64, error) {
	ctx, cancel := deadline()
	defer cancel()
	found, err := c.offsets(
		ctx, topic, kafka.FirstOffsetOf(int(partition)), kafka.LastOffsetOf(int(partition)))
	return found.FirstOffset, found.LastOffset, err
}

func (c *client) offsets(
	ctx context.Context, topic string, asked ...kafka.OffsetRequest,
) (kafka.PartitionOffsets, error) {
	answer, err := c.kafka.ListOffsets(
		ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: asked}})
	if err != nil {
		return kafka.PartitionOffsets{}, err
	}
	found := answer.Topics[topic][0]
	return found, found.Error
}

func (c *client) reader(topic string, partition int32) *kafka.Reader {
	return kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{c.address}, Topic: topic, Partition: int(partition),
		MaxWait: 100 * time.Millisecond, MaxBytes: 10 << 20,
	})
}

func (c *client) Read(topic string, partition int32, start int64, emit func(lines.Record)) error {
	first, end, err := c.Bounds(topic, partition)
	if err != nil || max(first, start) >= end {
		return err
	}
	ctx, cancel := deadline()
	defer cancel()
	reader := c.reader(topic, partition)
	defer reader.Close()
	if err := reader.SetOffset(max(first, start)); err != nil {
		return err
	}
	for next := first; next < end; {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			return err
		}
		next = message.Offset + 1
		emit(line(message))
	}
	return nil
}

func (c *client) Seek(topic string, partition int32, offsets []int64, emit func(lines.Record)) error {
	ctx, cancel := deadline()
	defer cancel()
	reader := c.reader(topic, partition)
	defer reader.Close()
	for _, offset := range offsets {
		if err := reader.SetOffset(offset); err != nil {
			return err
		}
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			return err
		}
		emit(line(message))
	}
	return nil
}

func line(message kafka.Message) lines.Record {
	one := lines.Record{
		Partition: int32(message.Partition), Offset: message.Offset, Time: &message.Time,
		Key: message.Key, Value: message.Value,
	}
	for _, header := range message.Headers {
		one.Headers = append(one.Headers, lines.Header{Name: header.Key, Value: header.Value})
	}
	return one
}
