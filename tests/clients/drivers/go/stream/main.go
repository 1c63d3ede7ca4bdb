// A producer and a reader of franz-go with the client's own settings, as ../../README.md describes
// them.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

var saying sync.Mutex

func say(format string, words ...any) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Printf(format+"\n", words...)
}

func read(ctx context.Context, brokers []string, topic string, partitions int) {
	all := map[int32]kgo.Offset{}
	for partition := range partitions {
		all[int32(partition)] = kgo.NewOffset().AtStart()
	}
	consumer, err := kgo.NewClient(kgo.SeedBrokers(brokers...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: all}))
	if err != nil {
		panic(err)
	}
	defer consumer.Close()
	for ctx.Err() == nil {
		fetches := consumer.PollFetches(ctx)
		fetches.EachError(func(_ string, _ int32, err error) {
			if ctx.Err() == nil {
				say("failed -1 %v", err)
			}
		})
		fetches.EachRecord(func(one *kgo.Record) {
			say("read %s %d %d", one.Value, one.Partition, one.Offset)
		})
	}
}

func main() {
	brokers, topic := strings.Split(os.Args[1], ","), os.Args[2]
	partitions, err := strconv.Atoi(os.Args[3])
	if err != nil {
		panic(err)
	}
	ctx, end := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	reading.Add(1)
	go func() {
		defer reading.Done()
		read(ctx, brokers, topic, partitions)
	}()
	producer, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		panic(err)
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := strings.Split(in.Text(), " ")
		one := &kgo.Record{Topic: topic, Key: []byte(words[1]), Value: []byte(words[0])}
		producer.Produce(context.Background(), one, func(stored *kgo.Record, err error) {
			if err != nil {
				say("failed %s %v", stored.Value, err)
			} else {
				say("acknowledged %s %d %d", stored.Value, stored.Partition, stored.Offset)
			}
		})
	}
	if err := producer.Flush(context.Background()); err != nil {
		panic(err)
	}
	producer.Close()
	end()
	reading.Wait()
}
