package main

import (
	"context"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"millrace.tests/drivers/lines"
)

// member of a group; it polls on its own.
type member struct {
	connection *kgo.Client
	seen       lines.Seen
	polling    chan struct{} // closed when it polls no more
}

func (c *client) Join(group, topic string, options map[string]string) error {
	m := &member{polling: make(chan struct{})}
	session := 10 * time.Second
	if milliseconds, err := strconv.Atoi(options["session"]); err == nil {
		session = time.Duration(milliseconds) * time.Millisecond
	}
	chosen := []kgo.Opt{
		kgo.SeedBrokers(c.address),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.SessionTimeout(session),
		kgo.HeartbeatInterval(session / 6),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) {
			m.seen.Got(got[topic])
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, gave map[string][]int32) {
			m.seen.Gave(gave[topic])
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, gave map[string][]int32) {
			m.seen.Gave(gave[topic])
		}),
	}
	if options["assignor"] != "cooperative" { // which is its own choice
		chosen = append(chosen, kgo.Balancers(kgo.RangeBalancer()))
	}
	if instance := options["instance"]; instance != "" {
		chosen = append(chosen, kgo.InstanceID(instance))
	}
	var err error
	if m.connection, err = kgo.NewClient(chosen...); err != nil {
		return err
	}
	c.member = m
	go m.poll()
	return nil
}

func (m *member) poll() {
	defer close(m.polling)
	for {
		fetches := m.connection.PollFetches(context.Background())
		if fetches.IsClientClosed() {
			return
		}
		fetches.EachRecord(func(record *kgo.Record) {
			m.seen.Read(record.Partition, record.Offset, record.Value)
		})
	}
}

func (c *client) Look() [][]any { return c.member.seen.Take() }

func (c *client) Commit() error {
	ctx, cancel := deadline()
	defer cancel()
	return c.member.connection.CommitUncommittedOffsets(ctx)
}

func (c *client) Leave() error {
	c.member.connection.Close()
	<-c.member.polling
	return nil
}
