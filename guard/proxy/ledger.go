package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
)

// Calls is a file that outlives the guard's process: an *os.File that no other guard
// has. It is never synced, because the death of a process loses nothing that was
// written; that of the machine ends its connections to the API as well.
type Calls interface {
	io.ReaderAt
	io.WriterAt
}

// ledger keeps the calls under way in a file, so that a guard which was killed and
// started again knows that the API may still be at one. Each has a slot:
//
//	+{"key":"account:1","fence":"41","timeout_ms":60000}⏎  0 ...   under way
//	-{"key": ...                                                   ended: free
//
// The text is written before the plus, so a slot with a plus is whole.
type ledger struct {
	file Calls // nil: nothing is kept

	mu    sync.Mutex // guards slots and free
	slots int64      // there are so many
	free  []int64    // may be used again
}

// openCall is a call that was under way when its guard ended.
type openCall struct {
	Key     interlock.Key   `json:"key"`
	Fence   interlock.Fence `json:"fence,string"`
	Timeout int64           `json:"timeout_ms"`

	slot int64
}

const (
	slotBytes  = 4 << 10 // more than a key of the greatest length takes in JSON
	underWay   = '+'
	callEnded  = '-'
	mostOpened = 1 << 20 // slots; a file with more is none of ours
)

// openLedger reads the calls that were under way.
func openLedger(file Calls) (*ledger, []openCall, error) {
	l := &ledger{file: file}
	if file == nil {
		return l, nil, nil
	}
	damaged := errors.New(
		"the file was not written by a guard: make sure that the calls of the previous guard have ended, and delete it",
	)
	var open []openCall
	slot := make([]byte, slotBytes)
	for ; ; l.slots++ {
		n, err := file.ReadAt(slot, l.slots*slotBytes)
		if n == 0 && errors.Is(err, io.EOF) {
			return l, open, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, err
		}
		switch {
		case l.slots >= mostOpened:
			return nil, nil, damaged
		case slot[0] == callEnded || slot[0] == 0:
			l.free = append(l.free, l.slots)
			continue
		}
		text, _, whole := bytes.Cut(slot[1:n], []byte{'\n'})
		c := openCall{slot: l.slots}
		if slot[0] != underWay || !whole || json.Unmarshal(text, &c) != nil || c.Key == "" || c.Fence == 0 || c.Timeout <= 0 {
			return nil, nil, damaged
		}
		open = append(open, c)
	}
}

// begin writes down that a call is under way, and returns its slot.
func (l *ledger) begin(c openCall) (slot int64, err error) {
	if l.file == nil {
		return 0, nil
	}
	text, err := json.Marshal(c)
	if err != nil {
		return 0, err
	}
	if len(text)+2 > slotBytes {
		return 0, fmt.Errorf("a call for a key of %d bytes does not fit", len(c.Key))
	}
	l.mu.Lock()
	if n := len(l.free); n > 0 {
		slot, l.free = l.free[n-1], l.free[:n-1]
	} else {
		slot = l.slots
		l.slots++
	}
	l.mu.Unlock()
	if _, err = l.file.WriteAt(append(text, '\n'), slot*slotBytes+1); err == nil {
		_, err = l.file.WriteAt([]byte{underWay}, slot*slotBytes)
	}
	if err != nil {
		err = errors.Join(err, l.end(slot))
	}
	return slot, err
}

// end writes down that a call has ended. When that fails, its slot is not used again.
func (l *ledger) end(slot int64) error {
	if l.file == nil {
		return nil
	}
	if _, err := l.file.WriteAt([]byte{callEnded}, slot*slotBytes); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, slot)
	return nil
}

// hold keeps a key for a call of the guard before, as long as the API may be at it. The
// time begins anew, because no clock tells how much of it has passed.
func (p *Proxy) hold(c openCall) {
	turn := p.turns.resume(c.Key, c.Fence, time.Now())
	time.AfterFunc(time.Duration(c.Timeout)*time.Millisecond, func() {
		if err := p.ledger.end(c.slot); err != nil {
			p.records.failed(err)
		}
		turn.leave(time.Now())
	})
}
