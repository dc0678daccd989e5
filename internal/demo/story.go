package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/interlockdev/interlock/internal/trace"
)

// story prints the race for a person. With JSON it keeps quiet until the end.
type story struct {
	cfg  Config
	plan *plan
	dir  string
	out  io.Writer

	mu    sync.Mutex // held while the story prints; guards the fields below
	began time.Time
	done  int
}

func newStory(cfg Config, p *plan, dir string) *story {
	out := cfg.Out
	if cfg.JSON {
		out = io.Discard
	}
	return &story{cfg: cfg, plan: p, dir: dir, out: out}
}

// shownLosses is how many destroyed updates are printed; a file lists all of them.
const shownLosses = 4

func (s *story) opening() {
	mean, longest := s.plan.thinking()
	fmt.Fprintf(s.out, "%d agents charge fees and give credits on %d accounts, each account a plain file in\n  %s\n",
		s.cfg.Agents, s.cfg.Accounts, s.dir)
	fmt.Fprintf(
		s.out, "They come and think like %d consecutive requests to a real service, replayed %d times faster:\n",
		s.cfg.Agents, s.cfg.Speed,
	)
	fmt.Fprintf(
		s.out, "  think time = %s; mean %.1f s, longest %.1f s, here divided by %d\n", trace.Rates, mean.Seconds(),
		longest.Seconds(), s.cfg.Speed,
	)
	fmt.Fprintf(s.out, "  data: %s\n", trace.Source)
}

func (s *story) act(title string) {
	fmt.Fprintf(s.out, "\n%s\n", title)
	s.start()
}

// start sets the clock of a run to zero.
func (s *story) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began, s.done = time.Now(), 0
}

// say prints one thing that happened, with its time.
func (s *story) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintf(s.out, "  %4.1f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// written counts a written update and shows how far the run has come.
func (s *story) written() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done++
	if s.cfg.Progress == nil {
		return
	}
	total := len(s.plan.tasks)
	width := 30
	bar := s.done * width / total
	fmt.Fprintf(s.cfg.Progress, "\r  %4.1f s  [%s%s] %d of %d updates written",
		time.Since(s.began).Seconds(), strings.Repeat("#", bar), strings.Repeat(".", width-bar), s.done, total)
	if s.done == total {
		s.clear()
	}
}

// clear wipes the progress line.
func (s *story) clear() {
	if s.cfg.Progress != nil {
		fmt.Fprintf(s.cfg.Progress, "\r%s\r", strings.Repeat(" ", 72))
	}
}

// destroyed prints what the uncoordinated run did.
func (s *story) destroyed(o *outcome) {
	if len(o.Destroyed) == 0 {
		s.say("%d updates written, none was lost", len(s.plan.tasks))
		return
	}
	s.say("%d updates written, %d of them destroyed; %d of %d balances are wrong, by $%s together",
		len(s.plan.tasks), len(o.Destroyed), o.Wrong, len(o.Accounts), o.Off)
	for i, l := range o.Destroyed {
		if i == shownLosses {
			break
		}
		fmt.Fprintf(s.out, "          %s on account %s is gone: %s had read the account before and wrote over it\n",
			l.Update, l.Update.Account, l.By.Agent)
	}
	name := filepath.Join(s.dir, "destroyed.txt")
	if err := s.list(name, o.Destroyed); err != nil {
		fmt.Fprintf(s.out, "          the list of all of them could not be written: %v\n", err)
		return
	}
	if more := len(o.Destroyed) - shownLosses; more > 0 {
		fmt.Fprintf(s.out, "          and %d more: %s\n", more, name)
	}
}

func (s *story) list(name string, losses []loss) error {
	var text strings.Builder
	for _, l := range losses {
		fmt.Fprintf(&text, "account %s: %s was overwritten by %s\n", l.Update.Account, l.Update, l.By.Agent)
	}
	return os.WriteFile(name, []byte(text.String()), 0o644)
}

// closing shows both runs side by side, or the result as JSON.
func (s *story) closing(r *result) error {
	if s.cfg.JSON {
		encoder := json.NewEncoder(s.cfg.Out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	fmt.Fprintf(s.out, "\n  %-32s %16s %16s %16s\n", "balance of account", "must be", "uncoordinated", "under leases")
	for i, b := range r.Without.Balances {
		fmt.Fprintf(s.out, "  %-32s %16s %16s %16s\n", b.Account, b.Expected, found(b), found(r.With.Balances[i]))
	}
	fmt.Fprintf(s.out, "\n  %-32s %16s %16s %16s\n", "", "", "uncoordinated", "under leases")
	row := func(what string, cell func(*runResult) string) {
		fmt.Fprintf(s.out, "  %-32s %16s %16s %16s\n", what, "", cell(&r.Without), cell(&r.With))
	}
	row("updates destroyed", func(c *runResult) string { return fmt.Sprintf("%d of %d", len(c.Destroyed), c.Updates) })
	row("balances wrong", func(c *runResult) string { return fmt.Sprintf("%d of %d", c.WrongBalances, len(c.Balances)) })
	row("money off", func(c *runResult) string { return "$" + c.Off.String() })
	row("late writes refused", func(c *runResult) string { return fmt.Sprint(len(c.Refused)) })
	row("thinking thrown away", func(c *runResult) string { return seconds(c.ThrownMS) + " *" })
	row("time in line, mean", func(c *runResult) string { return seconds(c.WaitMeanMS) })
	row("time in line, longest", func(c *runResult) string { return seconds(c.WaitLongestMS) })
	row("took", func(c *runResult) string { return seconds(c.TookMS) })
	fmt.Fprintf(s.out, "  * before it was divided by %d\n\n", s.cfg.Speed)
	if r.Holds {
		fmt.Fprintln(s.out, "Under leases every balance is exact to the cent, with one agent frozen and one killed.")
		return nil
	}
	fmt.Fprintln(s.out, "The claim does not hold:")
	for _, p := range r.Problems {
		fmt.Fprintf(s.out, "  %s\n", p)
	}
	return nil
}

func found(b balanceResult) string {
	if b.Found == b.Expected {
		return b.Found.String() + " exact"
	}
	return fmt.Sprintf("%s (%s)", b.Found, (b.Found - b.Expected).signed())
}

func seconds(ms int64) string { return fmt.Sprintf("%.1f s", float64(ms)/1000) }
