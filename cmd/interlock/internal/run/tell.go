package run

import (
	"errors"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/prose"
)

// watch tells what the holder of the lease should know, until the command has ended.
func (r *invocation) watch(lease *client.Lease, ended <-chan struct{}) {
	asked, warned := lease.Asked(), lease.Warned()
	for {
		select {
		case <-asked:
			asked = nil
			if y := lease.Yield(); y != nil {
				r.a.Complain("%s", cli.YieldText(cli.YieldOf(y), cli.Clean(view.JoinKeys(view.KeysOf(lease.Claims()), ", "))))
			}
		case <-warned:
			warned = nil
			info := lease.Info()
			r.a.Complain("%s", prose.Warning(&info, lease.Left()))
		case <-lease.Context().Done():
			r.tellLost(lease)
			return
		case <-ended:
			if lease.Context().Err() != nil { // both at once: that is why the command ended
				r.tellLost(lease)
			}
			return
		}
	}
}

func (r *invocation) tellLost(lease *client.Lease) {
	r.a.Complain("%s: the command is ended", prose.Loss(lease.Err(), cli.RefusalText))
}

func notesOf(notes []interlock.Note) []api.Note {
	list := make([]api.Note, len(notes))
	for i, n := range notes {
		list[i] = api.Note{
			Key: n.Key, Agent: n.Agent, Fence: n.Fence, Outcome: n.Outcome, Text: n.Text, Age: n.Age.Milliseconds(),
		}
	}
	return list
}

// endedBy returns on which tier a lease was lost, or nothing while it is not.
func endedBy(lease *client.Lease) string {
	refusal, _ := errors.AsType[*interlock.Error](lease.Err())
	if refusal == nil {
		return ""
	}
	return refusal.EndedBy
}

func skippedText(err error) string {
	text := "skipped: another holder already does it"
	var skipped *client.SkippedError
	if errors.As(err, &skipped) && len(skipped.Holders) > 0 {
		h := cli.HolderOf(&skipped.Holders[0])
		text = fmt.Sprintf("skipped: %s is held by %s", cli.Clean(string(skipped.Key)), cli.HolderText(&h))
	}
	return text
}
