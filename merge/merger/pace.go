package merger

import (
	"context"
	"time"
)

const (
	// paceOver is how many of the last landings tell the pace of a line, fewest how many are needed.
	paceOver = 20
	fewest   = 3
)

// Pace returns how long a landing takes at present, by the last landings of a target, oldest first. A submission at
// place k of the line is expected to land after k times as long. The pace is the mean over the last 20 landings of
//
//	at(i) - max(at(i-1), admitted(i))
//
// so that hours without a submission do not count. It is not known with fewer than 3 such pairs.
func Pace(recent []Landing) (each time.Duration, known bool) {
	var sum int64
	n := int64(0)
	for i := max(1, len(recent)-paceOver); i < len(recent); i++ {
		before, l := &recent[i-1], &recent[i]
		if before.At == 0 || l.At == 0 {
			continue // of an earlier version
		}
		sum += max(0, l.At-max(before.At, l.Admitted))
		n++
	}
	if n < fewest {
		return 0, false
	}
	return time.Duration(sum/n) * time.Millisecond, true
}

// Recent reads the last landings of a target that Pace needs, oldest first.
func Recent(ctx context.Context, c Reader, name Name) (list []Landing, err error) {
	var t Target
	if found, err := read(ctx, c, name.Key(), &t); err != nil || !found {
		return nil, err
	}
	for n := t.Sequence - min(t.Sequence, paceOver); n < t.Sequence; n++ {
		var l Landing
		found, err := read(ctx, c, name.LandingKey(n+1), &l)
		if err != nil {
			return nil, err
		}
		if found {
			list = append(list, l)
		}
	}
	return list, nil
}
