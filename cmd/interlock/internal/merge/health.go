package merge

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/merge/merger"
)

// late is how long after its next try a merger that does not take the seat is taken for gone.
const late = 15 * time.Second

// trouble tells why no submission of a target can land at present: the merger fails, dies again and again, or does not
// run. It is "" if the merger works.
func trouble(ctx context.Context, c *requests, n merger.Name) (string, error) {
	h, err := merger.HealthOf(ctx, c, n)
	if err != nil {
		return "", err
	}
	var seat api.Why
	if err := c.get(ctx, "/v1/why", url.Values{"key": {string(n.Key())}}, &seat); err != nil {
		return "", err
	}
	held := false
	for _, link := range seat.Chain {
		held = held || link.Does == "holds" && link.Key == string(n.Key())
	}
	now := time.Now()
	f := h.Failure
	text := ""
	switch {
	case f != nil && (held || now.Before(time.UnixMilli(f.Next).Add(late))):
		text = fmt.Sprintf(
			"the merger fails since %s ago, %s, last: %s; it tries again by itself, and no submission comes back for this",
			cli.Short(max(0, now.Sub(time.UnixMilli(f.Since)))), cli.Count(f.Times, "time", "times"), quoted(f.Message),
		)
	case held && h.Died > 1:
		text = fmt.Sprintf("%d mergers in a row have died; the present one takes one submission at a time", h.Died)
	case held:
	case f != nil:
		text = fmt.Sprintf("no merger runs, and the last one failed: %s; start `interlock merge serve`", quoted(f.Message))
	case !h.Left && h.Seat != 0:
		text = "no merger runs, and the last one died: start `interlock merge serve`"
	default:
		text = "no merger runs: start `interlock merge serve`"
	}
	return text, nil
}

// stops tells why a target takes nothing or not everything at present: it is frozen, or the merger does not work, which
// counts only if a submission waits.
func stops(ctx context.Context, c *requests, n merger.Name, waits bool) (text string, err error) {
	if waits {
		if text, err = trouble(ctx, c, n); err != nil {
			return "", err
		}
	}
	f, err := merger.FreezeOf(ctx, c, n)
	if err != nil || f == nil {
		return text, err
	}
	if text != "" {
		text = "; " + text
	}
	return f.Text(n) + text, nil
}

// quoted is a text of git or a forge on one line.
func quoted(text string) string {
	return fmt.Sprintf("%q", cli.Clean(strings.Join(strings.Fields(text), " ")))
}

// Troubles tells what keeps the merge queues of a namespace from landing what waits, one sentence for each target, and
// each freeze.
func Troubles(ctx context.Context, a *cli.App) ([]string, error) {
	c := &requests{a.API()}
	var all api.QueueList
	if err := c.get(ctx, "/v1/queues", nil, &all); err != nil {
		return nil, err
	}
	var list []string
	for i := range all.Queues {
		q := &all.Queues[i]
		waits := q.Tasks.Waiting+q.Tasks.Running+q.Tasks.Scheduled > 0
		n, ok := merger.NameOfQueue(q.Name)
		if !ok {
			continue
		}
		found, err := c.Document(ctx, n.Key())
		if err != nil {
			return nil, err
		}
		if found.Absent {
			continue
		}
		text, err := stops(ctx, c, n, waits)
		if err != nil {
			return nil, err
		}
		if text != "" {
			list = append(list, fmt.Sprintf("merge queue %s: %s", n, text))
		}
	}
	return list, nil
}

// merges reports whether a state is one in which a merger is needed.
func merges(state string) bool {
	return state == interlock.TaskWaiting.String() || state == interlock.TaskScheduled.String() ||
		state == interlock.TaskRunning.String()
}
