package journal

import (
	"slices"

	"github.com/interlockdev/interlock"
)

// MaxSnapshots is how many snapshots a journal keeps.
const MaxSnapshots = 16

// Saved is a snapshot that a journal has.
type Saved struct {
	Index interlock.Index
	Bytes int64
}

// Retain returns which snapshots a journal keeps when its oldest entry is first. saved is in the order of
// the indexes, and stays as it is. The newest two always stay: a restart needs the newest, or the other one
// if that is damaged. An older one leads to the states behind it, so it stays as long as all entries behind
// it do. If those are too many, or have more than maxOld bytes, the ones go that make the smallest gaps in
// relation to their distance from the newest: distances grow about twofold with age, and a state of the
// near past costs a short replay.
func Retain(saved []Saved, first interlock.Index, maxOld int64) []Saved {
	const needed = 2
	if len(saved) <= needed {
		return slices.Clone(saved)
	}
	recent := saved[len(saved)-needed:]
	var old []Saved
	var bytes int64
	for _, s := range saved[:len(saved)-needed] {
		if s.Index+1 >= first {
			old = append(old, s)
			bytes += s.Bytes
		}
	}
	for len(old) > 0 && (len(old)+needed > MaxSnapshots || bytes > maxOld) {
		i := leastMissed(append(old, recent[0]), recent[1].Index)
		bytes -= old[i].Bytes
		old = slices.Delete(old, i, i+1)
	}
	return append(old, recent...)
}

// leastMissed returns the snapshot, of all but the last, without which the gap is smallest in relation to
// its distance from the newest index.
func leastMissed(saved []Saved, newest interlock.Index) (least int) {
	smallest := -1.0
	for i, s := range saved[:len(saved)-1] {
		var before interlock.Index
		if i > 0 {
			before = saved[i-1].Index
		}
		gap := float64(saved[i+1].Index-before) / float64(newest-s.Index)
		if smallest < 0 || gap < smallest {
			least, smallest = i, gap
		}
	}
	return least
}
