package oncejournal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// A record's head is a line of text:
//
//	1 append 7 93B1C0… 41 8f3a0c12 here 5d0e11aa90c1f2b3
//	| |      | |       | |        | the place that it was adopted at
//	| |      | |       | |        "moved" while fences have yet to jump, else "here"
//	| |      | the owner   the end of the log, after the record
//	| what the record is
//	the format
//
// The data of an append is its frame, that of a founding record a name and a value, divided by a line feed.
const formatNumber = 1

// What a record is.
const (
	kindOwner   = "owner"   // it begins an ownership
	kindFounded = "founded" // likewise: the log continues one that is elsewhere
	kindAppend  = "append"
	kindAdopted = "adopted" // the place is adopted
)

// record is a link of the chain.
type record struct {
	number uint64 // 1 is the first; 0 means that there is none
	kind   string
	head   remote.Head // after it
	home   string      // where the journal was adopted
}

// begins reports whether the record begins an ownership. Such a record stays for ever.
func (r *record) begins() bool { return r.kind == kindOwner || r.kind == kindFounded }

func (r *record) String() string {
	mark := "here"
	if r.head.Moved {
		mark = "moved"
	}
	return fmt.Sprintf(
		"%d %s %d %s %d %08x %s %s", formatNumber, r.kind, uint64(r.head.Owner.Epoch), r.head.Owner.Word,
		uint64(r.head.Tail.Index), r.head.Tail.Chain, mark, r.home,
	)
}

func parseRecord(number uint64, text string) (r record, err error) {
	r.number = number
	var format int
	var mark string
	if format, err = strconv.Atoi(strings.SplitN(text, " ", 2)[0]); err == nil && format > formatNumber {
		return r, fmt.Errorf("%w: the format is %d, and this version knows %d", journal.ErrNewer, format, formatNumber)
	}
	_, err = fmt.Sscanf(
		text, "%d %s %d %s %d %x %s %s", &format, &r.kind, (*uint64)(&r.head.Owner.Epoch), &r.head.Owner.Word,
		(*uint64)(&r.head.Tail.Index), &r.head.Tail.Chain, &mark, &r.home,
	)
	r.head.Moved = mark == "moved"
	if err != nil || r.head.Owner.Epoch == 0 || r.String() != text {
		return r, errors.New("it is no record")
	}
	return r, nil
}

func recordName(number uint64) string { return fmt.Sprintf("log/%020d", number) }

// parse reads the head of a record that exists.
func (d *driver) parse(number uint64, o *object) (record, error) {
	r, err := parseRecord(number, o.head)
	switch {
	case errors.Is(err, journal.ErrNewer):
		return r, fmt.Errorf("%s: %w", d.objects.place(o.name), err)
	case err != nil:
		return r, &journal.DamageError{File: d.objects.place(o.name), Reason: err.Error()}
	}
	return r, nil
}

// heads reads the heads of records by their numbers. One that does not exist has the number 0.
func (d *driver) heads(ctx context.Context, numbers ...uint64) ([]record, error) {
	names := make([]string, len(numbers))
	for i, n := range numbers {
		names[i] = recordName(n)
	}
	list, err := d.objects.read(ctx, names, false)
	if err != nil {
		return nil, err
	}
	records := make([]record, len(list))
	for i := range list {
		if !list[i].exists() {
			continue
		}
		if records[i], err = d.parse(numbers[i], &list[i]); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// bounds is the content of the object "begin".
type bounds struct {
	first   uint64 // the first record that is kept
	swept   uint64 // records below it are deleted already, those from here to first perhaps
	version string
}

const beginName = "begin"

// bounds reads where the log begins.
func (d *driver) bounds(ctx context.Context) (b bounds, err error) {
	b = bounds{first: 1, swept: 1}
	list, err := d.objects.read(ctx, []string{beginName}, false)
	if err != nil || !list[0].exists() {
		return b, err
	}
	b.version = list[0].version
	if _, err := fmt.Sscanf(list[0].head, "%d %d", &b.first, &b.swept); err != nil || b.swept > b.first || b.swept == 0 {
		return b, &journal.DamageError{File: d.objects.place(beginName), Reason: "it names no records"}
	}
	return b, nil
}

const (
	// probes is how many names are looked at in one round.
	probes = 16
	// strides is the same while it is not known how far the log reaches.
	strides = 6
)

// find looks for the newest record of a log that begins at first.
func (d *driver) find(ctx context.Context, first uint64) (record, error) {
	numbers, step := []uint64{first}, uint64(1)
	var low record
	high := uint64(0) // the lowest name that is known to be free; 0 if none is
	for {
		for i := 0; high == 0 && i < strides; i++ {
			numbers = append(numbers, first+step)
			step <<= 2
		}
		list, err := d.heads(ctx, numbers...)
		if err != nil {
			return record{}, err
		}
		for i := range list {
			if list[i].number == 0 {
				high = numbers[i]
				break
			}
			low = list[i]
		}
		switch {
		case low.number == 0, high-low.number == 1, high == 0 && step >= 1<<32:
			return low, nil
		case high == 0:
			numbers = nil
		default:
			numbers = spread(low.number, high)
		}
	}
}

// spread returns up to probes numbers between two.
func spread(low, high uint64) (numbers []uint64) {
	for i := uint64(1); i <= probes; i++ {
		n := low + (high-low)*i/(probes+1)
		if n > low && (len(numbers) == 0 || n > numbers[len(numbers)-1]) {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// locate returns the number of the first record from low to high after which the log ends at index or later.
func (d *driver) locate(ctx context.Context, low, high uint64, index interlock.Index) (uint64, error) {
	for low < high {
		numbers := append([]uint64{low}, spread(low, high)...)
		list, err := d.heads(ctx, numbers...)
		if err != nil {
			return 0, err
		}
		for i := range list {
			if list[i].number == 0 {
				return 0, errMoved
			}
			if list[i].head.Tail.Index >= index {
				high = numbers[i]
				break
			}
			low = numbers[i] + 1
		}
	}
	return low, nil
}

// errMoved: the log was truncated under a reader.
var errMoved = errors.New("the log was truncated meanwhile")
