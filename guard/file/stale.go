package file

import (
	"fmt"
	"os"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/packet"
)

// StaleError refuses a change to a file that is not at the change's base any more.
// It is an *interlock.Error with CodeStale, too.
type StaleError struct {
	Path      string
	Then, Now Version // None for a file that is not there
	// Packet describes what changed. The versions of its documents are 0: a file's are Then and
	// Now, and Between those of its change's Between.
	Packet  *interlock.Packet
	Between []Version
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("%s: %s", interlock.CodeStale, e.message())
}

func (e *StaleError) message() string {
	return fmt.Sprintf(
		"%q had version %s when it was read and has %s now: read it again and repeat the change", e.Path,
		e.Then.Short(), e.Now.Short(),
	)
}

func (e *StaleError) Unwrap() error {
	return &interlock.Error{Code: interlock.CodeStale, Message: e.message(), ConflictKind: interlock.VersionMoved}
}

// told returns a version as a packet shows it: a missing file has none.
func told(v Version) string {
	if v == None {
		return ""
	}
	return v.Short()
}

// stale describes the changes of the file since the change's base.
func (d *Dir) stale(meta *os.Root, c *Change, b base, now *File) error {
	writes := d.credit(meta, now, b.version)
	s := interlock.Stale{
		Then:  interlock.Document{Key: interlock.Key(c.Path), Absent: b.version == None, Body: b.body, Size: len(b.body)},
		Known: b.known, Writes: len(writes),
		Now: interlock.Document{
			Key: interlock.Key(c.Path), Absent: now.Version == None, Body: now.Body, Size: len(now.Body),
			Agent: now.Agent, Principal: now.Principal, Note: now.Note, Age: now.Age,
		},
	}
	e := &StaleError{Path: c.Path, Then: b.version, Now: now.Version}
	var between []string
	if n := len(writes) - 1; n > 0 {
		for _, w := range writes[max(0, n-interlock.MaxBetween):n] {
			s.Between = append(s.Between, interlock.Document{
				Key: s.Now.Key, Absent: w.Version == None, Agent: w.Agent, Principal: w.Principal, Note: w.Note, Age: w.age(),
			})
			e.Between, between = append(e.Between, w.Version), append(between, told(w.Version))
		}
	}
	e.Packet = packet.NewFile(&s, told(b.version), told(now.Version), between)
	return e
}
