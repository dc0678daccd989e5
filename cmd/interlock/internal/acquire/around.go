package acquire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// Neighbours is the flow in which this command was started, by an "interlock run" or for a task, and
// which does not go on before this one does. A command that stands in line does so in a session of
// its own, and the flow around it knows nothing of that. So it declares to the server that the flow
// waits for that session: a circle through both is then found like any other.
//
//	holder of k1 ─ declared ─► session of the command in line ─ k2 ─► holder of k2
type Neighbours struct {
	api     *cli.API
	session string
	flow    string
}

// Around returns the flow around this command, nil if there is none.
func Around(a *cli.App) *Neighbours {
	session, flow, ok := link.Around(a)
	if !ok {
		return nil
	}
	return &Neighbours{api: a.API(), session: session, flow: flow}
}

// ErrOwnLease reports that a request waits for the lease around this command.
var ErrOwnLease = errors.New("waiting would never end")

// OwnLease returns the refusal of a request that is blocked by the lease under which this command runs; nil if none of
// the holders is that. choice are the keys of a request for one of several: the holders are those of one key alone, so
// all keys have to be in the way.
func OwnLease(holders []api.Holder, choice []interlock.Key) error {
	fence, keys := os.Getenv("INTERLOCK_FENCE"), ownKeys()
	if slices.ContainsFunc(choice, func(key interlock.Key) bool { return !isOwn(keys, key) }) {
		return nil
	}
	for i := range holders {
		if h := &holders[i]; h.Fence.String() == fence && slices.Contains(keys, string(h.Key)) {
			return cli.ExitWith(cli.ExitDeadlock, fmt.Errorf(
				"%w: %s is held by your own lease, under which this command runs (fence %s in INTERLOCK_FENCE): "+
					"work under that, or ask for other keys", ErrOwnLease, cli.Clean(string(h.Key)), h.Fence,
			))
		}
	}
	return nil
}

// ChoiceOf returns the keys of a request for one of several, nil for any other. The members of a prefix are not known
// here, so it has one that no lease has: the server finds whether all of them are in the way.
func ChoiceOf(q *api.AcquireRequest) (choice []interlock.Key) {
	switch {
	case q.Prefix != "":
		return []interlock.Key{""}
	case q.Any:
		for i := range q.Claims {
			choice = append(choice, interlock.Key(q.Claims[i].Key))
		}
	}
	return choice
}

// ownKeys are the keys of the lease around this command.
func ownKeys() []string { return strings.Split(os.Getenv("INTERLOCK_KEYS"), "\n") }

// Overlaps returns the first of some keys that is one of the lease around this command, or lies above or below one; ""
// for none.
func (o *Neighbours) Overlaps(keys []interlock.Key) interlock.Key {
	own := ownKeys()
	if i := slices.IndexFunc(keys, func(key interlock.Key) bool { return isOwn(own, key) }); i >= 0 {
		return keys[i]
	}
	return ""
}

// isOwn reports whether a key is one of those, or lies above or below one.
func isOwn(keys []string, key interlock.Key) bool {
	k := string(key)
	return slices.ContainsFunc(keys, func(own string) bool {
		return own != "" && (k == own || strings.HasPrefix(k, own+"/") || strings.HasPrefix(own, k+"/"))
	})
}

// Await declares that the flow waits for the session of that public name, until end is called. If
// that wait is the one of a circle that is to end, lost is called with the refusal. Where the
// server knows no such flow, nothing is declared: nothing waits with it.
func (o *Neighbours) Await(name string, lost context.CancelCauseFunc) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		body := &api.DeclareRequest{
			Session: o.session, Flow: o.flow, On: api.PartyRequest{Session: name}, Purpose: "a command of its own",
			Encloses: true,
		}
		ask := cli.Request{Method: http.MethodPost, Path: "/v1/waits", Body: body, ID: cli.FreshID()}
		var got view.LeaseAnswer
		_, answer, err := o.api.Insist(ctx, ask, false)
		if err == nil {
			err = json.Unmarshal(answer, &got)
		}
		for err == nil {
			_, err = Follow(ctx, o.api, got.Ticket.ID, time.Time{})
		}
		if refusal := Deadlocked(err); refusal != nil {
			lost(refusal)
		}
		if ctx.Err() != nil {
			LeaveLine(o.api, ask, &got)
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-done
	})
}

// Deadlocked returns the refusal that the victim of a deadlock receives, if err is one, else nil.
func Deadlocked(err error) *interlock.Error {
	if refusal, ok := errors.AsType[*interlock.Error](err); ok && refusal.Code == interlock.CodeDeadlock {
		return refusal
	}
	return nil
}
