package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"
)

// Recorder collects the operations of clients that work at once.
type Recorder struct {
	began time.Time

	mu   sync.Mutex
	ops  []*Op
	copy *json.Encoder
	// reached is closed by the operation that reaches the goal.
	goal    int
	reached chan struct{}
}

// NewRecorder begins a history.
func NewRecorder() *Recorder { return &Recorder{began: time.Now()} }

// NewCopier begins the part of a history that another process began at that time, and
// writes each operation to it, once when it begins and once more when it was answered.
func NewCopier(began time.Time, to io.Writer) *Recorder {
	return &Recorder{began: began, copy: json.NewEncoder(to)}
}

// Began is when the history began.
func (r *Recorder) Began() time.Time { return r.began }

// Now is the time of the history.
func (r *Recorder) Now() time.Duration { return time.Since(r.began) }

// After returns a channel that is closed when n more operations have begun. There is one at a
// time.
func (r *Recorder) After(n int) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.goal, r.reached = len(r.ops)+n, make(chan struct{})
	return r.reached
}

// Begin records that an operation is about to be sent for the first time. Until End it is
// open.
func (r *Recorder) Begin(op *Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	op.Call, op.Return = r.Now(), Never
	if r.ops = append(r.ops, op); len(r.ops) == r.goal {
		close(r.reached)
	}
	r.tell(op)
}

// End records that an operation was answered. Parts of it that are read elsewhere may not be
// changed any more.
func (r *Recorder) End(op *Op, a Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	op.Answer, op.Return = a, r.Now()
	r.tell(op)
}

// tell copies an operation. A reader that is gone has ended this process's work.
func (r *Recorder) tell(op *Op) {
	if r.copy != nil {
		_ = r.copy.Encode(op)
	}
}

// Follow takes over what a Copier writes, until it ends, and shows each operation to see.
func (r *Recorder) Follow(from io.Reader, see func(*Op)) error {
	known := map[string]*Op{}
	for lines := json.NewDecoder(from); ; {
		op := new(Op)
		if err := lines.Decode(op); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		} else if err != nil {
			return err
		}
		r.mu.Lock()
		if was := known[op.ID]; was != nil {
			*was = *op
		} else {
			known[op.ID] = op
			r.ops = append(r.ops, op)
			if len(r.ops) == r.goal {
				close(r.reached)
			}
		}
		r.mu.Unlock()
		see(op)
	}
}

// Ops returns everything recorded. All work must have ended.
func (r *Recorder) Ops() []*Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ops
}

// Verify checks the history, reports what it was (count.histories and so on), and fails
// the test if no correct server can have given these answers; then the history is kept in
// a file.
func (r *Recorder) Verify(t testing.TB) {
	t.Helper()
	r.verify(t, Check)
}

// VerifyResults does the same with a history of the results of client libraries.
func (r *Recorder) VerifyResults(t testing.TB) {
	t.Helper()
	r.verify(t, CheckResults)
}

func (r *Recorder) verify(t testing.TB, check func([]*Op) []string) {
	t.Helper()
	ops := r.Ops()
	open := 0
	for _, op := range ops {
		if op.Open() {
			open++
		}
	}
	t.Attr("count.histories", "1")
	t.Attr("count.history_operations", fmt.Sprint(len(ops)))
	t.Attr("count.history_unknowns", fmt.Sprint(open))
	began := time.Now()
	problems := check(ops)
	t.Logf(
		"%d operations, %d of unknown outcome, checked in %v", len(ops), open, time.Since(began).Round(time.Millisecond),
	)
	if len(problems) == 0 {
		return
	}
	const most = 10
	for _, p := range problems[:min(most, len(problems))] {
		t.Error(p)
	}
	if len(problems) > most {
		t.Errorf("and %d more", len(problems)-most)
	}
	if name, err := r.save(); err != nil {
		t.Errorf("the history is not kept: %v", err)
	} else {
		t.Logf("the history is in %s", name)
	}
}

func (r *Recorder) save() (name string, err error) {
	f, err := os.CreateTemp("", "interlock-history-*.jsonl")
	if err != nil {
		return "", err
	}
	defer f.Close()
	return f.Name(), WriteAll(f, r.Ops())
}

// WriteAll writes operations as lines of JSON.
func WriteAll(w io.Writer, ops []*Op) error {
	b := bufio.NewWriter(w)
	lines := json.NewEncoder(b)
	for _, op := range ops {
		if err := lines.Encode(op); err != nil {
			return err
		}
	}
	return b.Flush()
}
