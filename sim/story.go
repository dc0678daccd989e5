package sim

import (
	"fmt"
	"io"
	"time"
)

// story is the events of a run, for a person to read, and a hash of them, to compare two runs
// by.
type story struct {
	w    *world
	out  io.Writer
	hash uint64
}

// tell adds a line. Its arguments must print the same in every run.
func (s *story) tell(format string, args ...any) {
	if s.out == nil {
		return
	}
	fmt.Fprintf(s.out, "%12.6f  %s\n", float64(s.w.now)/float64(time.Second), fmt.Sprintf(format, args...))
}

// told reports whether the story has a reader, so that no words are made in vain.
func (s *story) told() bool { return s.out != nil }

// mix adds numbers to the hash.
func (s *story) mix(numbers ...uint64) {
	for _, n := range numbers {
		s.hash = (s.hash ^ n) * 0x9e3779b97f4a7c15
		s.hash ^= s.hash >> 29
	}
}

// mixBytes adds bytes to the hash.
func (s *story) mixBytes(b []byte) { s.mix(sum(b)) }

// sum is a hash of bytes that is the same in every process (FNV-1a).
func sum(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}
