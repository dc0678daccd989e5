package account

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
)

// Ledger is the log of all accounts, kept for ever: lines of JSON in a file, or written to an
// io.Writer. The server keeps the log of an account for its last entries only; a ledger copies
// them before they are forgotten.
//
//	server: log of account:1   … 41 42 43        the truth, bounded
//	        log of account:2   … 7 8                │ Record
//	                                                ▼
//	file:   line 1, 2, 3, …    each with the hash of the one before
//
// A line is an entry that the server has: it was acknowledged, so a ledger has nothing that did
// not happen, and an attempt that crashed leaves no trace in it. It continues after the last
// line for each account, so nothing stands in it twice.
//
// Missing entries show: the entries of an account are numbered, and each reply names the
// version of the account that it was decided on, which must be the one that the line before has
// left. Record then fails with a *GapError, unless gaps are accepted; the line after an
// accepted one names what is missing.
//
// Nothing acknowledged is missing if the Agent has the ledger: it decides no message
// before the ledger has all earlier ones of the account, on disk, and few of others
// are outstanding at a time; so nothing is forgotten before it is here.
//
// A Ledger may be used by several goroutines. After an error of its file it is of no use any
// more: Failed reports that.
type Ledger struct {
	// Since leaves out what was decided earlier. Accounts that have a line go on after it.
	Since time.Time
	// OnGap, if set, accepts gaps, and is called with each.
	OnGap func(*GapError)
	// OnJump, if set, is called for each account with numbers that do not go on, although it
	// has not changed: the server had forgotten its log, or that of refusals.
	OnJump func(account interlock.Key, after, next uint64)

	to   io.Writer
	file *os.File    // that to is, if it is to be durable
	seen func(*Line) // if set, is called with each line that is read

	mu       sync.Mutex // guards the fields up to failed
	accounts map[interlock.Key]*accountBalance
	expected map[interlock.TaskID]interlock.Key // decided by our agent, and not seen in a log yet
	line     uint64
	hash     string
	kept     []byte // lines that are not written yet
	added    uint64 // lines that were ever added to kept
	failure  error
	failed   chan struct{}

	writing sync.Mutex // held while kept is written out; guards written
	written uint64     // of added
}

// accountBalance is the ledger's state of an account.
type accountBalance struct {
	mu      sync.Mutex // guards the fields below
	entry   uint64     // the last one; 0: none
	version interlock.Version
	// Amounts after it, unless they are not known.
	balance, held, available Money
	known                    bool
}

// maxExpected is how many decisions an agent may be ahead of its ledger.
const maxExpected = 64

// GapError reports that the server has forgotten entries that a ledger does not have.
type GapError struct {
	Account interlock.Key
	What    string
}

func (e *GapError) Error() string {
	return fmt.Sprintf("the ledger has a gap: %s: %s", e.Account, e.What)
}

// NewLedger returns a ledger that is written to w from its first line on.
func NewLedger(w io.Writer) *Ledger {
	return &Ledger{
		to: w, accounts: map[interlock.Key]*accountBalance{}, expected: map[interlock.TaskID]interlock.Key{},
		failed: make(chan struct{}),
	}
}

// OpenLedger continues the ledger in a file, after its last whole line: a torn rest behind it
// is cut off. The ledgers before are those that this one continues, oldest first. No other
// process may write the file meanwhile.
func OpenLedger(file *os.File, before ...io.Reader) (*Ledger, error) {
	l := NewLedger(file)
	l.file = file
	for _, r := range before {
		if whole, torn, err := l.read(r); err != nil || torn > 0 {
			return nil, fmt.Errorf("the ledger before it: %w", cmp.Or(err, fmt.Errorf("it is torn after %d bytes", whole)))
		}
	}
	whole, torn, err := l.read(file)
	if err != nil {
		return nil, err
	}
	if torn > 0 {
		if err := file.Truncate(whole); err != nil {
			return nil, err
		}
	}
	if _, err := file.Seek(whole, io.SeekStart); err != nil {
		return nil, err
	}
	return l, nil
}

// Reader checks a ledger: the hash of each line, the chain, and that no account has a gap
// that is not said.
type Reader struct {
	l    *Ledger
	gaps []string
}

// NewReader returns a Reader that has read nothing.
func NewReader() *Reader { return &Reader{l: NewLedger(io.Discard)} }

// Read reads a file that continues those that were read before.
func (r *Reader) Read(file io.Reader) error {
	r.l.seen = func(line *Line) {
		if line.Gap != "" {
			r.gaps = append(
				r.gaps, fmt.Sprintf("line %d says that something is missing: %s: %s", line.Line, line.Account, line.Gap),
			)
		}
	}
	whole, torn, err := r.l.read(file)
	if err == nil && torn > 0 {
		err = fmt.Errorf("line %d is torn: it has no end after %d bytes", r.l.line+1, whole)
	}
	return err
}

// End is how many lines were read, and the hash of the last one.
func (r *Reader) End() (lines uint64, hash string) { return r.l.line, r.l.hash }

// Gaps returns the gaps that the ledger names.
func (r *Reader) Gaps() []string { return r.gaps }

// MaxLineBytes bounds a line of a ledger.
const MaxLineBytes = 1 << 20

// read takes in the lines of a ledger. whole is how many bytes its whole lines have, torn
// how many there are behind them.
func (l *Ledger) read(r io.Reader) (whole, torn int64, err error) {
	lines := bufio.NewReaderSize(r, 1<<20)
	var text []byte
	for {
		part, err := lines.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(text) <= MaxLineBytes:
			continue
		case errors.Is(err, io.EOF):
			return whole, int64(len(text)), nil
		case err != nil:
			return whole, 0, fmt.Errorf("line %d: %w", l.line+1, err)
		}
		if err := l.take(bytes.TrimSuffix(text, []byte("\n"))); err != nil {
			return whole, 0, fmt.Errorf("line %d: %w", l.line+1, err)
		}
		whole += int64(len(text))
		text = text[:0]
	}
}

// take takes in a line that was written before.
func (l *Ledger) take(text []byte) error {
	line, err := parseLine(text)
	switch {
	case err != nil:
		return err
	case line.Line != l.line+1:
		return fmt.Errorf("it says that it is line %d", line.Line)
	case line.Previous != l.hash:
		return errors.New("it does not go on from the line before: one was changed, added, removed or moved")
	}
	s := l.standing(line.Account)
	if gap := s.gap(&line); gap != "" && line.Gap == "" {
		return fmt.Errorf("%s has a gap that is not said: %s", line.Account, gap)
	}
	s.after(&line)
	l.line, l.hash = line.Line, line.Hash
	if l.seen != nil {
		l.seen(&line)
	}
	return nil
}

// standing returns the ledger's state of an account, which may be empty.
func (l *Ledger) standing(account interlock.Key) *accountBalance {
	s := l.accounts[account]
	if s == nil {
		s = &accountBalance{}
		l.accounts[account] = s
	}
	return s
}

// gap returns what is missing between what the ledger has of an account and a line.
func (s *accountBalance) gap(line *Line) string {
	switch on := line.On; {
	case line.Entry <= s.entry:
		return fmt.Sprintf("entry %d comes after entry %d", line.Entry, s.entry)
	case s.entry == 0 && line.Entry != 1 && (on == nil || *on != 0):
		return fmt.Sprintf("what came before entry %d", line.Entry)
	case s.entry == 0:
	case on != nil && *on != s.version:
		return fmt.Sprintf(
			"entry %d was decided on version %d of the account, but entry %d has left version %d", line.Entry, *on, s.entry,
			s.version,
		)
	case on == nil && line.Entry != s.entry+1:
		return fmt.Sprintf("what came between entries %d and %d", s.entry, line.Entry)
	}
	return ""
}

// after moves on to a line.
func (s *accountBalance) after(line *Line) {
	s.entry, s.version = line.Entry, line.Version
	s.balance, s.held, s.available, s.known = line.Balance, line.Held, line.Available, line.Reason != notOurs
}

// Source is where logs are read: a client.Client is one.
type Source interface {
	// Log returns the entries of a log from a number on, or from the oldest that is kept.
	Log(ctx context.Context, key interlock.Key, from uint64) iter.Seq2[interlock.LogEntry, error]
}

// Record adds what the ledger does not have of an account, and returns when it is on disk.
func (l *Ledger) Record(ctx context.Context, from Source, account interlock.Key) error {
	l.mu.Lock()
	s, err := l.standing(account), l.failure
	l.mu.Unlock()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := uint64(0)
	for entry, err := range from.Log(ctx, account, s.entry+1) {
		if err == nil && entry.Seq > s.entry {
			last, err = l.add(s, &entry)
		}
		if err != nil {
			return errors.Join(err, l.write(last))
		}
	}
	return l.write(last)
}

// add adds an entry after those that the ledger has of its account, and returns the number that
// write is to be asked for; 0 if it is left out.
func (l *Ledger) add(s *accountBalance, e *interlock.LogEntry) (uint64, error) {
	line, decided := lineOf(e, time.Now())
	early := line.At.Before(l.Since)
	if gap := s.gap(&line); gap != "" && !early {
		missing := &GapError{line.Account, gap}
		if l.OnGap == nil {
			return 0, l.fail(missing)
		}
		l.OnGap(missing)
		line.Gap = gap
	} else if gap == "" && s.entry != 0 && line.Entry != s.entry+1 {
		line.After = s.entry
		if l.OnJump != nil {
			l.OnJump(line.Account, s.entry, line.Entry)
		}
	}
	switch {
	case !decided:
		line.Balance, line.Held, line.Available = s.balance, s.held, s.available
	case s.known && line.Gap == "":
		line.Change = line.Balance - s.balance
	case s.entry == 0 && line.Gap == "":
		line.Change = line.Balance
	}
	s.after(&line)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.expected, e.Message)
	if early {
		return 0, nil
	}
	l.line++
	line.Line, line.Previous = l.line, l.hash
	l.kept = append(l.kept, line.text()...)
	l.hash = line.Hash
	l.added++
	return l.added, nil
}

// write writes what was added, up to a number at least. The lines of callers that come
// meanwhile are written together.
func (l *Ledger) write(upTo uint64) error {
	if upTo == 0 {
		return nil
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	kept, added, failure := l.kept, l.added, l.failure
	_, gap := errors.AsType[*GapError](failure)
	writes := l.written < upTo && (failure == nil || gap)
	if writes { // under the same lock, or it would drop what is added meanwhile
		l.kept = nil
	}
	l.mu.Unlock()
	switch {
	case failure != nil && !gap:
		return failure
	case !writes:
		return nil
	}
	_, err := l.to.Write(kept)
	if err == nil && l.file != nil {
		err = l.file.Sync()
	}
	if err != nil {
		return l.fail(fmt.Errorf("the ledger cannot be written: %w", err))
	}
	l.written = added
	return nil
}

// fail makes the ledger fail for good, with the first reason.
func (l *Ledger) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure == nil {
		l.failure = err
		close(l.failed)
	}
	return err
}

// Failed is closed when the ledger takes nothing more. Err returns the reason.
func (l *Ledger) Failed() <-chan struct{} { return l.failed }

// Err is why the ledger takes nothing more, or nil.
func (l *Ledger) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}

// Lines is how many lines there are.
func (l *Ledger) Lines() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.line
}

// Verify records an account after its document was read, and compares. A document that is ahead
// of its log was changed in a way that is forgotten; one that is behind the ledger is another
// server's, or one's that was restored. The ledger may go on while a document is read, so again
// reads one anew that seems to be behind.
func (l *Ledger) Verify(
	ctx context.Context, from Source, doc interlock.Document, again func(context.Context) (interlock.Document, error),
) error {
	l.mu.Lock()
	s := l.standing(doc.Key)
	l.mu.Unlock()
	s.mu.Lock()
	had := s.version
	s.mu.Unlock()
	if doc.Version < had {
		now, err := again(ctx)
		if err != nil {
			return err
		}
		if doc.Version = now.Version; doc.Version < had {
			return l.fail(&GapError{doc.Key, fmt.Sprintf(
				"the server has version %d of the account, and the ledger version %d: is it another server's, or was the server "+
					"restored?",
				doc.Version, had,
			)})
		}
	}
	if err := l.Record(ctx, from, doc.Key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version >= doc.Version {
		return nil
	}
	missing := &GapError{
		doc.Key,
		fmt.Sprintf(
			"the account has version %d, but entry %d, the last one that is kept, has left version %d", doc.Version, s.entry,
			s.version,
		),
	}
	if l.OnGap == nil {
		return l.fail(missing)
	}
	l.OnGap(missing)
	return nil
}

// ahead has the ledger up to date for an agent that is about to decide a message.
func (l *Ledger) ahead(ctx context.Context, from Source, account interlock.Key) error {
	l.mu.Lock()
	behind := map[interlock.Key]bool{}
	if len(l.expected) >= maxExpected {
		behind = l.undone()
	}
	behind[account] = true
	l.mu.Unlock()
	return l.recordAll(ctx, from, behind)
}

// recordAll is Record for several accounts.
func (l *Ledger) recordAll(ctx context.Context, from Source, accounts map[interlock.Key]bool) error {
	for key := range accounts {
		if err := l.Record(ctx, from, key); err != nil {
			return err
		}
	}
	return nil
}

// expect records that an agent has decided a message, which will be in the log.
func (l *Ledger) expect(message interlock.TaskID, account interlock.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expected[message] = account
}

// catchUp records what an agent has decided.
func (l *Ledger) catchUp(ctx context.Context, from Source) error {
	l.mu.Lock()
	behind := l.undone()
	l.mu.Unlock()
	return l.recordAll(ctx, from, behind)
}

// undone returns the accounts with messages that an agent has decided and the ledger does not
// have. It needs mu.
func (l *Ledger) undone() map[interlock.Key]bool {
	accounts := map[interlock.Key]bool{}
	for _, key := range l.expected {
		accounts[key] = true
	}
	return accounts
}
