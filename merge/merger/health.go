package merger

import (
	"context"
	"maps"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/merge/train"
)

// A merger that dies cannot tell why. So each seat is noted in a document, and crossed out by a goodbye. After seats of
// processes that died without ending a submission, the next merger is wary: it takes one submission at a time, and
// notes which one before it works on it. One that has killed maxDeaths mergers goes back.

const (
	// waryAfter is how many processes may die in a row before the next one is wary.
	waryAfter = 2
	// maxDeaths is how many wary mergers may die while they work on a submission.
	maxDeaths = 3
)

// Health is the document of how the merger of a target does.
type Health struct {
	// Seat is the fence of the last seat. Left is set if its merger has left it by itself.
	Seat uint64 `json:"seat"`
	Left bool   `json:"left,omitempty"`
	// Died counts the processes in a row that died in the seat, since a submission has ended.
	Died int `json:"died,omitempty"`
	// Working is the task of the submission that a wary merger works on. Deaths counts, by task, the mergers that died
	// while they worked on it.
	Working string         `json:"working,omitempty"`
	Deaths  map[string]int `json:"deaths,omitempty"`
	// Failure is why the merger cannot work at present.
	Failure *Failure `json:"failure,omitempty"`
}

// Failure is a failure of the merger, and not of a submission: a full disk, a forge that cannot be reached or takes no
// landing at all.
type Failure struct {
	// Message has words of git or the forge, cleaned.
	Message string `json:"message"`
	// Times counts the failures in a row, from Since on. All times are in milliseconds since 1970.
	Times int   `json:"times"`
	Since int64 `json:"since_ms"`
	// Next is when the merger tries again.
	Next int64 `json:"next_ms"`
	// Taking is set if it fails before it looks at a submission.
	Taking bool `json:"taking,omitempty"`
}

// HealthKey is the key of a target's health.
func (n Name) HealthKey() interlock.Key { return n.Key() + "/health" }

// HealthOf reads how the merger of a target does.
func HealthOf(ctx context.Context, c Reader, name Name) (h Health, err error) {
	_, err = read(ctx, c, name.HealthKey(), &h)
	return h, err
}

// takeSeat notes the seat, and counts the death of the merger before.
func (l *line) takeSeat(ctx context.Context) error {
	var h Health
	if _, err := read(ctx, l.Client, l.Name.HealthKey(), &h); err != nil {
		return err
	}
	if died := h.Seat != 0 && !h.Left && !l.seats[h.Seat]; died {
		h.Died++
		if h.Working != "" {
			if h.Deaths == nil {
				h.Deaths = map[string]int{}
			}
			h.Deaths[h.Working]++
		}
		l.Log.Warn("the last merger died in the seat", "died", h.Died, "working", h.Working)
	}
	h.Seat, h.Left, h.Working = uint64(l.seat.Fence()), false, ""
	l.seats[h.Seat] = true
	l.health = h
	if l.wary() {
		l.Log.Warn("mergers have died: one submission is taken at a time", "died", h.Died, "deaths", h.Deaths)
	}
	return l.writeHealth(ctx)
}

func (l *line) writeHealth(ctx context.Context) error {
	return l.commit(ctx, client.Put(l.Name.HealthKey(), encode(l.health)))
}

func (l *line) wary() bool { return l.health.Died >= waryAfter || len(l.health.Deaths) > 0 }

// trainConfig is the train's configuration: that of a wary merger has one check at a time, of one submission.
func (l *line) trainConfig() train.Config {
	c := l.Train
	if l.wary() {
		c.Runners, c.FirstBatch, c.MaxBatch, c.Lanes = 1, 1, 1, false
	}
	return c
}

// recovered notes that a failure from before the line has gone.
func (l *line) recovered(ctx context.Context) error {
	l.settled = true
	if l.health.Failure == nil || !l.health.Failure.Taking {
		return nil
	}
	l.health.Failure = nil
	return l.writeHealth(ctx)
}

// working notes, for a wary merger, which submission it works on from now on; "" is none.
func (l *line) working(ctx context.Context, task string) error {
	if !l.wary() || l.health.Working == task {
		return nil
	}
	l.health.Working = task
	return l.writeHealth(ctx)
}

// doomed is the fault of a submission that kills mergers.
func (l *line) doomed(task train.ID) *fault {
	if l.health.Deaths[string(task)] < maxDeaths {
		return nil
	}
	return &fault{CauseCrash, "Mergers died while they worked on it. Look for what is very large or deep in it."}
}

// progress notes that submissions have ended, or that none is in line: the merger works.
func (l *line) progress(ctx context.Context, ended ...string) error {
	h := l.health
	h.Died, h.Failure = 0, nil
	h.Deaths = maps.Clone(h.Deaths)
	for _, task := range ended {
		if delete(h.Deaths, task); h.Working == task {
			h.Working = ""
		}
	}
	l.worked = l.worked || len(ended) > 0
	same := h.Died == l.health.Died && h.Failure == l.health.Failure && h.Working == l.health.Working &&
		len(h.Deaths) == len(l.health.Deaths)
	if l.health = h; same {
		return nil
	}
	return l.writeHealth(ctx)
}

// leaveSeat crosses the seat out, with the failure if there is one.
func (l *line) leaveSeat(ctx context.Context, failed error, failures int) {
	stopped := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	h := l.health
	h.Left, h.Working = true, ""
	if !stopped && failed != nil && l.seat.Err() == nil {
		now := time.Now()
		f := Failure{Since: now.UnixMilli()}
		if h.Failure != nil {
			f = *h.Failure
		}
		if l.worked {
			failures = 1
		}
		f.Message, f.Taking = git.Words(failed.Error()), !l.settled
		f.Times++
		f.Next = now.Add(l.pause(failures)).UnixMilli()
		h.Failure = &f
	}
	l.health = h
	if h.Seat == uint64(l.seat.Fence()) {
		_ = l.writeHealth(ctx) // if the server is gone, no caller can read it either
	}
}
