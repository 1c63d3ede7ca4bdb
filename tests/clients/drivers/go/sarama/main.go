// sarama, driven by lines: sarama [VERSION] ADDRESS, where VERSION is what it shall take the broker for
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"

	"millrace.tests/drivers/lines"
)

type client struct {
	address    string
	connection sarama.Client
	admin      sarama.ClusterAdmin
	consumer   sarama.Consumer
	topic      string
	followed   map[int32]sarama.PartitionConsumer
	next       map[int32]int64
	arrived    chan *sarama.ConsumerMessage
	member     *member
}

func main() {
	address := os.Args[len(os.Args)-1]
	c := &client{address: address}
	var err error
	if c.connection, err = sarama.NewClient([]string{address}, config()); err != nil {
		panic(err)
	}
	if version().IsAtLeast(sarama.V0_11_0_0) { // what is older has no requests for it
		if c.admin, err = sarama.NewClusterAdminFromClient(c.connection); err != nil {
			panic(err)
		}
	}
	if c.consumer, err = sarama.NewConsumerFromClient(c.connection); err != nil {
		panic(err)
	}
	lines.Serve(c, code)
}

func version() sarama.KafkaVersion {
	if len(os.Args) < 3 {
		return sarama.MaxVersion
	}
	known, err := sarama.ParseKafkaVersion(os.Args[1])
	if err != nil {
		panic(err)
	}
	return known
}

func config() *sarama.Config {
	chosen := sarama.NewConfig()
	chosen.Version = version()
	chosen.Metadata.AllowAutoTopicCreation = false
	chosen.Consumer.MaxWaitTime = 100 * time.Millisecond
	return chosen
}

func code(err error) int {
	var known sarama.KError
	if errors.As(err, &known) {
		return int(known)
	}
	return -1
}

func (c *client) Create(topic string, partitions int32, config map[string]string) error {
	return c.admin.CreateTopic(topic, &sarama.TopicDetail{
		NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: pointers(config),
	}, false)
}

func (c *client) Delete(topic string) error { return c.admin.DeleteTopic(topic) }

func (c *client) List() ([]string, error) {
	found, err := c.admin.ListTopics()
	var names []string
	for name := range found {
		names = append(names, name)
	}
	return names, err
}

func (c *client) Partitions(topic string) (int, error) {
	found, err := c.admin.DescribeTopics([]string{topic})
	if err != nil {
		return 0, err
	}
	if found[0].Err != sarama.ErrNoError {
		return 0, found[0].Err
	}
	return len(found[0].Partitions), nil
}

func (c *client) Grow(topic string, partitions int32) error {
	return c.admin.CreatePartitions(topic, partitions, nil, false)
}

// Trim asks for the first offset that is left: the admin client does not tell it.
func (c *client) Trim(topic string, partition int32, offset int64) (int64, error) {
	if err := c.admin.DeleteRecords(topic, map[int32]int64{partition: offset}); err != nil {
		return 0, err
	}
	return c.offsetAt(topic, partition, sarama.OffsetOldest)
}

func (c *client) Describe(kind, name string) ([]lines.Setting, error) {
	resource := sarama.ConfigResource{Type: sarama.TopicResource, Name: name}
	if kind == "broker" {
		resource.Type = sarama.BrokerResource
	}
	found, err := c.admin.DescribeConfigs(
		[]*sarama.ConfigResource{&resource}, sarama.DescribeConfigsOptions{IncludeSynonyms: true})
	if err != nil {
		return nil, err
	}
	var settings []lines.Setting
	for _, entry := range found[0].Configs {
		setting := lines.Setting{
			Name: entry.Name, Value: &entry.Value, Source: int8(entry.Source), ReadOnly: entry.ReadOnly,
		}
		for _, other := range entry.Synonyms {
			setting.Synonyms = append(setting.Synonyms,
				lines.Synonym{Name: other.ConfigName, Value: &other.ConfigValue, Source: int8(other.Source)})
		}
		settings = append(settings, setting)
	}
	return settings, nil
}

func (c *client) Alter(topic string, config map[string]string) error {
	return c.admin.AlterConfig(sarama.TopicResource, topic, pointers(config), false)
}

func (c *client) Adjust(topic string, operation int8, name, value string) error {
	entry := sarama.IncrementalAlterConfigsEntry{
		Operation: sarama.IncrementalAlterConfigsOperation(operation), Value: &value,
	}
	entries := map[string]sarama.IncrementalAlterConfigsEntry{name: entry}
	return c.admin.IncrementalAlterConfig(sarama.TopicResource, topic, entries, false)
}

func pointers(config map[string]string) map[string]*string {
	found := map[string]*string{}
	for name, value := range config {
		found[name] = &value
	}
	return found
}

func (c *client) Produce(topic string, records []lines.Record, options lines.Options) error {
	producer, err := sarama.NewAsyncProducer([]string{c.address}, producerConfig(options))
	if err != nil {
		return err
	}
	go func() {
		for _, record := range records {
			producer.Input() <- message(topic, record)
		}
		producer.AsyncClose()
	}()
	for failure := range producer.Errors() {
		err = errors.Join(err, failure.Err)
	}
	return err
}

func producerConfig(options lines.Options) *sarama.Config {
	codecs := map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
		"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}
	acks := map[string]sarama.RequiredAcks{
		"0": sarama.NoResponse, "1": sarama.WaitForLocal, "all": sarama.WaitForAll,
	}
	chosen := config()
	chosen.Metadata.AllowAutoTopicCreation = true
	chosen.Producer.Compression = codecs[options.Codec]
	chosen.Producer.RequiredAcks = acks[options.Acks]
	chosen.Producer.MaxMessageBytes = options.Largest
	chosen.Producer.Flush.Frequency = options.Linger
	chosen.Producer.Partitioner = ownOrByKey
	// More than one in flight keeps the order only for an idempotent producer.
	chosen.Net.MaxOpenRequests = 1
	if options.Idempotent != nil && *options.Idempotent {
		chosen.Producer.Idempotent = true
		chosen.Producer.Retry.Max = 10
	}
	if options.InFlight > 0 {
		chosen.Net.MaxOpenRequests = options.InFlight
	}
	return chosen
}

func ownOrByKey(topic string) sarama.Partitioner {
	return partitioner{sarama.NewHashPartitioner(topic)}
}

// partitioner takes the record's partition where it names one.
type partitioner struct{ sarama.Partitioner }

func (p partitioner) Partition(message *sarama.ProducerMessage, partitions int32) (int32, error) {
	if own := message.Metadata.(int32); own >= 0 {
		return own, nil
	}
	return p.Partitioner.Partition(message, partitions)
}

func message(topic string, record lines.Record) *sarama.ProducerMessage {
	one := &sarama.ProducerMessage{Topic: topic, Metadata: record.Partition}
	if record.Key != nil {
		one.Key = sarama.ByteEncoder(record.Key)
	}
	if record.Value != nil {
		one.Value = sarama.ByteEncoder(record.Value)
	}
	if record.Time != nil {
		one.Timestamp = *record.Time
	}
	for _, header := range record.Headers {
		one.Headers = append(one.Headers, sarama.RecordHeader{Key: []byte(header.Name), Value: header.Value})
	}
	return one
}

func (c *client) Time(topic string, partition int32, timestamp int64) (int64, error) {
	return c.offsetAt(topic, partition, timestamp)
}

func (c *client) Bounds(topic string, partition int32) (int64, int64, error) {
	first, err := c.offsetAt(topic, partition, sarama.OffsetOldest)
	if err != nil {
		return 0, 0, err
	}
	end, err := c.offsetAt(topic, partition, sarama.OffsetNewest)
	return first, end, err
}

func (c *client) offsetAt(topic string, partition int32, timestamp int64) (int64, error) {
	if err := c.connection.RefreshMetadata(topic); err != nil {
		return 0, err
	}
	return c.connection.GetOffset(topic, partition, timestamp)
}

func (c *client) Read(topic string, partition int32, start int64, emit func(lines.Record)) error {
	first, end, err := c.Bounds(topic, partition)
	if err != nil || max(first, start) >= end {
		return err
	}
	for next := max(first, start); next < end; {
		count := end - next
		if err := c.take(topic, partition, next, func(found *sarama.ConsumerMessage) bool {
			next = found.Offset + 1
			emit(line(found))
			count--
			return next < end
		}); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) Seek(topic string, partition int32, offsets []int64, emit func(lines.Record)) error {
	for _, offset := range offsets {
		err := c.take(topic, partition, offset, func(found *sarama.ConsumerMessage) bool {
			emit(line(found))
			return false
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// take gives records from start on to accept until it says no.
func (c *client) take(topic string, partition int32, start int64, accept func(*sarama.ConsumerMessage) bool) error {
	consumer, err := c.consumer.ConsumePartition(topic, partition, start)
	if err != nil {
		return err
	}
	defer consumer.Close()
	deadline := time.After(lines.Deadline)
	for {
		select {
		case found := <-consumer.Messages():
			if !accept(found) {
				return nil
			}
		case <-deadline:
			return errors.New("no message in time")
		}
	}
}

func (c *client) Follow(topic string, partitions []int32) error {
	if err := c.connection.RefreshMetadata(topic); err != nil {
		return err
	}
	wanted := map[int32]bool{}
	for _, partition := range partitions {
		wanted[partition] = true
	}
	for partition, consumer := range c.followed {
		if topic != c.topic || !wanted[partition] {
			if err := consumer.Close(); err != nil {
				return err
			}
			delete(c.followed, partition)
		}
	}
	if topic != c.topic {
		c.topic, c.followed = topic, map[int32]sarama.PartitionConsumer{}
		c.arrived = make(chan *sarama.ConsumerMessage)
	}
	for _, partition := range partitions {
		if c.followed[partition] != nil {
			continue
		}
		consumer, err := c.consumer.ConsumePartition(topic, partition, sarama.OffsetOldest)
		if err != nil {
			return err
		}
		c.followed[partition] = consumer
		go forward(consumer, c.arrived)
	}
	return nil
}

func forward(consumer sarama.PartitionConsumer, arrived chan<- *sarama.ConsumerMessage) {
	for message := range consumer.Messages() {
		arrived <- message
	}
}

func (c *client) Take(count int, emit func(lines.Record)) error {
	deadline := time.After(lines.Deadline)
	for taken := range count {
		select {
		case found := <-c.arrived:
			emit(line(found))
		case <-deadline:
			return fmt.Errorf("only %d records came", taken)
		}
	}
	return nil
}

func line(message *sarama.ConsumerMessage) lines.Record {
	one := lines.Record{
		Partition: message.Partition, Offset: message.Offset, Time: &message.Timestamp,
		Key: message.Key, Value: message.Value,
	}
	for _, header := range message.Headers {
		one.Headers = append(one.Headers, lines.Header{Name: string(header.Key), Value: header.Value})
	}
	return one
}
