// Package lines takes commands in and gives answers out, as ../../README.md describes them; it is the
// same for every client in Go.
package lines

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Deadline is what one command may take.
const Deadline = 50 * time.Second

// Header is one of a record's; a nil Value is null.
type Header struct {
	Name  string
	Value []byte
}

// Record as it goes over the line. Partition -1 and a nil Time are the client's choice.
type Record struct {
	Partition  int32
	Offset     int64
	Time       *time.Time
	Key, Value []byte
	Headers    []Header
}

// Synonym is one place that a setting may come from.
type Synonym struct {
	Name   string
	Value  *string
	Source int8
}

// Setting as a broker describes it.
type Setting struct {
	Name     string
	Value    *string
	Source   int8
	ReadOnly bool
	Synonyms []Synonym
}

// Options of "produce".
type Options struct {
	Codec, Acks string
	Largest     int
	Linger      time.Duration
	Idempotent  *bool
	InFlight    int // 0: the client's choice
}

// Client is what every client can. What only some can are the interfaces below.
type Client interface {
	Create(topic string, partitions int32, config map[string]string) error
	Delete(topic string) error
	List() ([]string, error)
	Partitions(topic string) (int, error)
	Grow(topic string, partitions int32) error
	Produce(topic string, records []Record, options Options) error
	// Read gives each record at or after start (-1: the first) to emit, to the end as it was at first.
	Read(topic string, partition int32, start int64, emit func(Record)) error
	Seek(topic string, partition int32, offsets []int64, emit func(Record)) error
	// Time answers -1 where there is none.
	Time(topic string, partition int32, timestamp int64) (int64, error)
	Bounds(topic string, partition int32) (first, end int64, err error)
	Describe(kind, name string) ([]Setting, error)
	Alter(topic string, config map[string]string) error
	// Adjust takes set, delete, append or subtract by the place in that list.
	Adjust(topic string, operation int8, name, value string) error
}

// Trimmer is a Client that can delete the first records of a partition.
type Trimmer interface {
	Trim(topic string, partition int32, offset int64) (int64, error)
}

// Follower is a Client with one consumer of many partitions that change.
type Follower interface {
	Follow(topic string, partitions []int32) error
	Take(count int, emit func(Record)) error
}

var operations = map[string]int8{"set": 0, "delete": 1, "append": 2, "subtract": 3}

type server struct {
	client Client
	code   func(error) int
	in     *bufio.Reader
	out    *bufio.Writer
}

// Serve carries out commands until the input ends. code finds Kafka's number in an error, or -1.
func Serve(client Client, code func(error) int) {
	s := server{client, code, bufio.NewReaderSize(os.Stdin, 1<<20), bufio.NewWriterSize(os.Stdout, 1<<20)}
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if err := s.execute(words[0], words[1:]); err != nil {
			text := strings.Join(strings.Fields(err.Error()), " ")
			fmt.Fprintf(s.out, "error\t%d\t%s\n", code(err), text)
		} else {
			fmt.Fprintln(s.out, "ok")
		}
		s.out.Flush()
	}
}

func (s *server) execute(command string, words []string) error {
	switch command {
	case "create":
		return s.client.Create(words[0], int32(number(words[1])), pairs(words[2:]))
	case "delete":
		return s.client.Delete(words[0])
	case "list":
		topics, err := s.client.List()
		for _, topic := range topics {
			s.answer(topic)
		}
		return err
	case "partitions":
		count, err := s.client.Partitions(words[0])
		s.answer(count)
		return err
	case "grow":
		return s.client.Grow(words[0], int32(number(words[1])))
	case "describe":
		settings, err := s.client.Describe(words[0], words[1])
		for _, setting := range settings {
			s.answer(settingWords(setting)...)
		}
		return err
	case "alter":
		return s.client.Alter(words[0], pairs(words[1:]))
	case "adjust":
		return s.client.Adjust(words[0], operations[words[1]], words[2], words[3])
	}
	return s.executeOnRecords(command, words)
}

func (s *server) executeOnRecords(command string, words []string) error {
	switch command {
	case "produce":
		records, err := s.records(int(number(words[1])))
		if err != nil {
			return err
		}
		return s.client.Produce(words[0], records, options(pairs(words[2:])))
	case "read":
		return s.client.Read(words[0], int32(number(words[1])), number(words[2]), s.emit)
	case "seek":
		return s.client.Seek(words[0], int32(number(words[1])), numbers[int64](words[2:]), s.emit)
	case "time":
		offset, err := s.client.Time(words[0], int32(number(words[1])), number(words[2]))
		s.answer(offset)
		return err
	case "bounds":
		first, end, err := s.client.Bounds(words[0], int32(number(words[1])))
		s.answer(first, end)
		return err
	case "trim":
		left, err := s.client.(Trimmer).Trim(words[0], int32(number(words[1])), number(words[2]))
		s.answer(left)
		return err
	case "follow":
		return s.client.(Follower).Follow(words[0], numbers[int32](words[1:]))
	case "take":
		return s.client.(Follower).Take(int(number(words[0])), s.emit)
	case "join":
		return s.client.(Member).Join(words[0], words[1], pairs(words[2:]))
	case "look":
		for _, words := range s.client.(Member).Look() {
			s.answer(words...)
		}
		return nil
	case "commit":
		return s.client.(Member).Commit()
	case "leave":
		return s.client.(Member).Leave()
	}
	return fmt.Errorf("unknown command %s", command)
}

func (s *server) answer(words ...any) {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = fmt.Sprint(word)
	}
	fmt.Fprintf(s.out, "= %s\n", strings.Join(texts, "\t"))
}

func (s *server) emit(record Record) {
	headers := make([]string, len(record.Headers))
	for i, header := range record.Headers {
		headers[i] = header.Name + ":" + encode(header.Value)
	}
	timestamp := int64(-1) // what Kafka keeps for none
	if !record.Time.IsZero() {
		timestamp = record.Time.UnixMilli()
	}
	s.answer(record.Partition, record.Offset, timestamp, encode(record.Key),
		encode(record.Value), strings.Join(headers, ","))
}

func settingWords(setting Setting) []any {
	synonyms := make([]string, len(setting.Synonyms))
	for i, other := range setting.Synonyms {
		synonyms[i] = fmt.Sprintf("%s:%s:%d", other.Name, encodeText(other.Value), other.Source)
	}
	return []any{setting.Name, encodeText(setting.Value), setting.Source, setting.ReadOnly,
		strings.Join(synonyms, ",")}
}

func (s *server) records(count int) ([]Record, error) {
	records := make([]Record, 0, count)
	for range count {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		record := Record{
			Partition: int32(number(fields[0])),
			Key:       decode(fields[3]),
			Value:     decode(fields[4]),
		}
		if fields[2] != "-" {
			given := time.UnixMilli(number(fields[2]))
			record.Time = &given
		}
		for _, pair := range strings.FieldsFunc(fields[5], func(r rune) bool { return r == ',' }) {
			name, value, _ := strings.Cut(pair, ":")
			record.Headers = append(record.Headers, Header{name, decode(value)})
		}
		records = append(records, record)
	}
	return records, nil
}

func options(given map[string]string) Options {
	chosen := Options{
		Codec:    given["codec"],
		Acks:     given["acks"],
		Largest:  int(number(given["largest"])),
		Linger:   time.Duration(number(given["linger"])) * time.Millisecond,
		InFlight: int(number(given["in-flight"])),
	}
	if text, ok := given["idempotent"]; ok {
		idempotent := text == "true"
		chosen.Idempotent = &idempotent
	}
	return chosen
}

func pairs(words []string) map[string]string {
	found := map[string]string{}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		found[name] = value
	}
	return found
}

// number is 0 for what is none: only the tests speak to this program.
func number(text string) int64 {
	value, _ := strconv.ParseInt(text, 10, 64)
	return value
}

func numbers[T int32 | int64](words []string) []T {
	values := make([]T, len(words))
	for i, word := range words {
		values[i] = T(number(word))
	}
	return values
}

func encode(data []byte) string {
	if data == nil {
		return "-"
	}
	return base64.StdEncoding.EncodeToString(data)
}

func encodeText(text *string) string {
	if text == nil {
		return "-"
	}
	return encode([]byte(*text))
}

func decode(text string) []byte {
	if text == "-" {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return data
}
