package acquire

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/prose"
)

// HeldBy returns the end of a sentence that names the first holder, "" if there is none.
func HeldBy(holders []api.Holder) string {
	if len(holders) == 0 {
		return ""
	}
	return prose.HeldBy(cli.AgentName(holders[0].Name), holders[0].Purpose)
}

// Line tells a person that a command stands in line: on a terminal by one line
// that is written over and over, elsewhere by a line whenever something changed.
type Line struct {
	w        io.Writer
	Live     bool
	width    func() int
	key      string
	parties  int       // of the barrier that is waited at; 0: it is none
	deadline time.Time // zero: for ever
	began    time.Time

	mu       sync.Mutex
	position int
	length   int
	eta      time.Duration
	etaAt    time.Time
	holders  []api.Holder
	last     string
	shown    bool
	ended    bool
	stop     chan struct{}
	stopped  sync.WaitGroup
}

// NewLine begins to tell; parties is 0 unless the key is a barrier. end must be
// called.
func NewLine(a *cli.App, key string, parties cli.CountFlag, deadline time.Time) *Line {
	l := &Line{
		w: a.Err, key: cli.Clean(key), parties: int(parties), deadline: deadline, began: time.Now(),
		stop: make(chan struct{}),
	}
	if f, ok := a.Err.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		l.Live = true
		l.width = func() int {
			width, _, err := term.GetSize(int(f.Fd()))
			if err != nil || width < 20 {
				return 80
			}
			return width
		}
		l.stopped.Go(l.tick)
	}
	return l
}

// tick keeps the times in the line right.
func (l *Line) tick() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			l.mu.Lock()
			l.draw()
			l.mu.Unlock()
		case <-l.stop:
			return
		}
	}
}

// Queued takes note of a place in line. length may be 0 when it is not known.
func (l *Line) Queued(position, length int, eta time.Duration, holders []api.Holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.position, l.length, l.eta, l.etaAt = position, max(length, position), eta, time.Now()
	if len(holders) > 0 {
		l.holders = holders
	}
	if l.Live {
		l.draw()
		return
	}
	// Changes of the times alone are no news.
	if news := l.text(false); news != l.last {
		l.last = news
		fmt.Fprintln(l.w, "interlock: "+l.text(true))
	}
}

// Blockers returns the holders that were named last.
func (l *Line) Blockers() []api.Holder {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holders
}

func (l *Line) draw() {
	if l.position == 0 {
		return
	}
	text := "interlock: " + l.text(true)
	runes := []rune(text)
	if width := l.width(); len(runes) >= width {
		runes = append(runes[:width-2], '…')
	}
	l.shown = true
	fmt.Fprint(l.w, "\r\x1b[K"+string(runes))
}

func (l *Line) wipe() {
	if l.shown {
		fmt.Fprint(l.w, "\r\x1b[K")
		l.shown = false
	}
}

// text is the line; without times it tells whether something happened.
func (l *Line) text(times bool) string {
	var b strings.Builder
	switch {
	case l.parties > 0 && l.position <= l.parties:
		fmt.Fprintf(&b, "waiting for %s: %d of %d parties are there", l.key, min(l.length, l.parties), l.parties)
	case l.position < 1: // its offer is open, or its place is not known yet
		fmt.Fprintf(&b, "waiting for %s", l.key)
	default:
		fmt.Fprintf(&b, "waiting for %s: place %d of %d", l.key, l.position, l.length)
	}
	if times {
		if left := l.eta - time.Since(l.etaAt); l.eta > 0 && left > 0 {
			fmt.Fprintf(&b, ", about %s", cli.Short(left))
		}
		if !l.deadline.IsZero() {
			fmt.Fprintf(&b, ", giving up in %s", cli.Short(max(time.Until(l.deadline), 0)))
		}
	}
	for i := range min(len(l.holders), 1) {
		h := &l.holders[i]
		fmt.Fprintf(&b, "; held by %s", cli.AgentName(h.Name))
		if times {
			fmt.Fprintf(&b, " for %s (%s)", cli.Short(cli.Millis(h.Held)+time.Since(l.etaAt)), cli.OrDash(cli.Clean(h.Liveness)))
		}
		if purpose := cli.Clean(h.Purpose); purpose != "" {
			fmt.Fprintf(&b, ": %s", purpose)
		}
	}
	if more := len(l.holders) - 1; more > 0 {
		fmt.Fprintf(&b, ", and %d more", more)
	}
	return b.String()
}

// End takes the line away. It may be called more than once.
func (l *Line) End() {
	l.mu.Lock()
	first := !l.ended
	l.ended = true
	l.wipe()
	l.mu.Unlock()
	if first {
		close(l.stop)
	}
	l.stopped.Wait()
}
