package lines

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Member is a Client that can be a member of a group, which reads whatever else it is asked.
type Member interface {
	Join(group, topic string, options map[string]string) error
	// Look tells what has happened since, and what is owned now, as the words of lines.
	Look() [][]any
	Commit() error
	Leave() error
}

// Seen is what has happened to a member. Its library tells it on threads of its own.
type Seen struct {
	mutex sync.Mutex
	lines [][]any
	owned map[int32]bool
}

func (s *Seen) add(words ...any) { s.lines = append(s.lines, words) }

// Read notes a record.
func (s *Seen) Read(partition int32, offset int64, value []byte) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.add("read", partition, offset, encode(value))
}

// Got notes partitions that are owned now too.
func (s *Seen) Got(partitions []int32) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.owned == nil {
		s.owned = map[int32]bool{}
	}
	for _, partition := range partitions {
		s.owned[partition] = true
	}
	s.add("got", joined(partitions))
}

// Gave notes partitions that are owned no more.
func (s *Seen) Gave(partitions []int32) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, partition := range partitions {
		delete(s.owned, partition)
	}
	s.add("gave", joined(partitions))
}

// Take is what Look answers.
func (s *Seen) Take() [][]any {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var owned []int32
	for partition := range s.owned {
		owned = append(owned, partition)
	}
	found := append(s.lines, []any{"owns", joined(owned)})
	s.lines = nil
	return found
}

func joined(partitions []int32) string {
	sorted := slices.Sorted(slices.Values(partitions))
	texts := make([]string, len(sorted))
	for i, partition := range sorted {
		texts[i] = fmt.Sprint(partition)
	}
	return strings.Join(texts, ",")
}
