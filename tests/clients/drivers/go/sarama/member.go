package main

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"millrace.tests/drivers/lines"
)

// member of a group; sarama calls it for each generation, and each partition of one.
type member struct {
	group  sarama.ConsumerGroup
	topic  string
	seen   lines.Seen
	cancel context.CancelFunc
	ended  chan struct{}

	mutex   sync.Mutex
	session sarama.ConsumerGroupSession // the present one
}

func (c *client) Join(group, topic string, options map[string]string) error {
	chosen := config()
	chosen.Consumer.Offsets.Initial = sarama.OffsetOldest
	chosen.Consumer.Offsets.AutoCommit.Enable = false
	session := 10 * time.Second
	if milliseconds, err := strconv.Atoi(options["session"]); err == nil {
		session = time.Duration(milliseconds) * time.Millisecond
	}
	chosen.Consumer.Group.Session.Timeout = session
	chosen.Consumer.Group.Heartbeat.Interval = session / 6
	chosen.Consumer.Group.InstanceId = options["instance"]
	joined, err := sarama.NewConsumerGroup([]string{c.address}, group, chosen)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.member = &member{group: joined, topic: topic, cancel: cancel, ended: make(chan struct{})}
	go c.member.consume(ctx)
	return nil
}

func (m *member) consume(ctx context.Context) {
	defer close(m.ended)
	for ctx.Err() == nil {
		if err := m.group.Consume(ctx, []string{m.topic}, m); errors.Is(err, sarama.ErrClosedConsumerGroup) {
			return
		}
	}
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session = session
	m.seen.Got(session.Claims()[m.topic])
	return nil
}

func (m *member) Cleanup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session = nil
	m.seen.Gave(session.Claims()[m.topic])
	return nil
}

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		m.seen.Read(message.Partition, message.Offset, message.Value)
		session.MarkMessage(message, "")
	}
	return nil
}

func (c *client) Look() [][]any { return c.member.seen.Take() }

// Commit tells of no error: sarama keeps it for itself.
func (c *client) Commit() error {
	c.member.mutex.Lock()
	defer c.member.mutex.Unlock()
	if c.member.session == nil {
		return sarama.ErrRebalanceInProgress
	}
	c.member.session.Commit()
	return nil
}

func (c *client) Leave() error {
	c.member.cancel()
	<-c.member.ended
	return c.member.group.Close()
}
