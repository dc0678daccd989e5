package merger

import (
	"context"
	"strings"

	"github.com/interlockdev/interlock"
)

// The server bounds the bytes of a commit and of a result. A batch is bounded by its number, and what authors write can
// be long: so a staged batch shares its room out among its landings, outcomes are shortened until they fit, and the end
// of a landing is written in several commits. The head comes last, so that a merger that takes over writes them again.

const (
	// maxCommit is how many bytes of documents one commit has, unless a single one has more.
	maxCommit = interlock.MaxCommitBytes * 3 / 4
	// maxStaged is how many bytes the landings of a batch have in the document of the target.
	maxStaged = interlock.MaxDocumentBytes / 2
	// maxOutcome is how many bytes an outcome has.
	maxOutcome = interlock.MaxResultBytes * 3 / 4
	// maxOutcomeText is how many bytes its message has, if the rest does not leave more.
	maxOutcomeText = 4 << 10
)

// fit shortens what is only told about a landing until it has at most some bytes.
func (o *Landing) fit(most int) {
	for len(encode(o)) > most && len(o.Paths) > 0 {
		keep := len(o.Paths) / 2
		o.More += len(o.Paths) - keep
		o.Paths = o.Paths[:keep]
	}
	if len(encode(o)) > most {
		o.Held, o.Renamed = nil, nil
	}
}

// fit shortens an outcome until it has at most maxOutcome bytes: what is longest and tells least goes first.
func (o *Outcome) fit() {
	for _, shorten := range []func() (more bool){
		func() bool {
			for i := range o.Checks {
				text := o.Checks[i].Tail
				o.Checks[i].Tail = strings.ToValidUTF8(text[max(0, len(text)-maxTail/8):], "")
			}
			return false
		},
		func() bool {
			if len(o.Conflicts) > 20 {
				o.Conflicts = o.Conflicts[:(len(o.Conflicts)+1)/2]
			}
			return len(o.Conflicts) > 20
		},
		func() bool {
			for i := len(o.Conflicts) - 1; i >= 0; i-- {
				if c := &o.Conflicts[i]; c.Hunks != "" {
					c.Hunks, c.Cut = "", true
					return true
				}
			}
			return false
		},
		func() bool {
			o.Conflicts = o.Conflicts[:(len(o.Conflicts)+1)/2]
			return len(o.Conflicts) > 1
		},
		func() bool {
			o.Sequence = o.Sequence[:(len(o.Sequence)+1)/2]
			return len(o.Sequence) > 1
		},
		func() bool {
			o.Message = strings.ToValidUTF8(o.Message[:min(len(o.Message), maxOutcomeText)], "")
			return false
		},
	} {
		for more := true; more; {
			if len(encode(o)) <= maxOutcome {
				return
			}
			more = shorten()
		}
	}
}

// commitAll writes documents in as many commits as they need, in order.
func (l *line) commitAll(ctx context.Context, writes []interlock.Write) error {
	for len(writes) > 0 {
		n, size := 1, len(writes[0].Body)
		for n < len(writes) && n < interlock.MaxWrites && size+len(writes[n].Body) <= l.commitBytes {
			size += len(writes[n].Body)
			n++
		}
		if err := l.commit(ctx, writes[:n]...); err != nil {
			return err
		}
		writes = writes[n:]
	}
	return nil
}
