package demo

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/trace"
)

// outcome is the result of one run. The figures are those of the files afterwards.
type outcome struct {
	Accounts  []balance
	Destroyed []loss // updates that were written and are not in the files any more
	Missing   []update
	Double    []update
	Wrong     int   // accounts with a wrong balance
	Off       cents // the sum of the differences, signs ignored

	Waits   []time.Duration // in line, one for each lease
	Refused []refusal
	Killed  *death
	Thrown  time.Duration // thinking that came to nothing, before scaling
	Took    time.Duration
}

type balance struct {
	Account  string
	Expected cents
	Found    cents
}

// loss is an update that another agent wrote over.
type loss struct {
	Update update
	By     update
}

// refusal is a write that the guard refused.
type refusal struct {
	Agent, Account string
	Fence, Higher  interlock.Fence
	Frozen         time.Duration // between the freezing and the write
}

// death is the killed agent, and its successor.
type death struct {
	Agent, Account string
	Fence          interlock.Fence
	Next           string
	NextFence      interlock.Fence
	After          time.Duration // between the death and the next grant
}

// count reads the files and fills in what they contain. writes tells which agent wrote over
// which.
func (o *outcome) count(p *plan, l ledger, writes []write) error {
	expected := p.expected()
	found := map[string]int{}
	for _, name := range p.names {
		a, err := l.read(name)
		if err != nil {
			return err
		}
		b := balance{Account: name, Expected: expected[name], Found: a.Balance}
		o.Accounts = append(o.Accounts, b)
		if b.Found != b.Expected {
			o.Wrong++
			o.Off += (b.Found - b.Expected).abs()
		}
		for _, u := range a.Updates {
			found[u.Agent]++
			if found[u.Agent] == 2 {
				o.Double = append(o.Double, u)
			}
		}
	}
	for _, t := range p.tasks {
		if found[t.update.Agent] > 0 {
			continue
		}
		// An update may be wiped out, come back with a writer that had read it, and
		// be wiped out again: the last time counts.
		i := lastIndex(writes, func(w write) bool { return slices.Contains(w.wiped, t.update) })
		if i < 0 {
			o.Missing = append(o.Missing, t.update)
			continue
		}
		o.Destroyed = append(o.Destroyed, loss{Update: t.update, By: writes[i].by})
		o.Thrown += t.real
	}
	slices.SortStableFunc(
		o.Destroyed, func(a, b loss) int { return cmp.Compare(b.Update.Amount.abs(), a.Update.Amount.abs()) },
	)
	return nil
}

func lastIndex[T any](list []T, ok func(T) bool) int {
	for i := len(list) - 1; i >= 0; i-- {
		if ok(list[i]) {
			return i
		}
	}
	return -1
}

// waits returns the mean and the longest time in line.
func (o *outcome) waits() (mean, longest time.Duration) {
	if len(o.Waits) == 0 {
		return 0, 0
	}
	for _, w := range o.Waits {
		mean += w
		longest = max(longest, w)
	}
	return mean / time.Duration(len(o.Waits)), longest
}

// result is the race as one JSON document.
type result struct {
	Agents   int    `json:"agents"`
	Accounts int    `json:"accounts"`
	Speed    int    `json:"speed"`
	Seed     uint64 `json:"seed"`
	Dir      string `json:"dir"`
	Source   string `json:"source"`
	Rates    string `json:"think_time"`

	Without runResult `json:"uncoordinated"`
	With    runResult `json:"under_leases"`

	Holds    bool     `json:"holds"`
	Problems []string `json:"problems,omitempty"`
}

// runResult is one column of the comparison.
type runResult struct {
	Updates       int             `json:"updates"`
	Destroyed     []lossResult    `json:"destroyed"`
	Balances      []balanceResult `json:"balances"`
	WrongBalances int             `json:"wrong_balances"`
	Off           cents           `json:"off"`
	Refused       []refusalResult `json:"refused"`
	Killed        *deathResult    `json:"killed,omitempty"`
	WaitMeanMS    int64           `json:"wait_mean_ms"`
	WaitLongestMS int64           `json:"wait_longest_ms"`
	ThrownMS      int64           `json:"thinking_thrown_away_ms"`
	TookMS        int64           `json:"took_ms"`
}

type lossResult struct {
	update
	By string `json:"overwritten_by"`
}

type balanceResult struct {
	Account  string `json:"account"`
	Expected cents  `json:"expected"`
	Found    cents  `json:"found"`
}

type refusalResult struct {
	Agent    string          `json:"agent"`
	Account  string          `json:"account"`
	Fence    interlock.Fence `json:"fence,string"`
	Higher   interlock.Fence `json:"highest_fence,string"`
	FrozenMS int64           `json:"frozen_ms"`
}

type deathResult struct {
	Agent     string          `json:"agent"`
	Account   string          `json:"account"`
	Fence     interlock.Fence `json:"fence,string"`
	Next      string          `json:"next"`
	NextFence interlock.Fence `json:"next_fence,string"`
	AfterMS   int64           `json:"after_ms"`
}

func newResult(cfg Config, p *plan, dir string, without, with *outcome) *result {
	r := &result{
		Agents: cfg.Agents, Accounts: cfg.Accounts, Speed: cfg.Speed, Seed: cfg.Seed, Dir: dir,
		Source: trace.Source, Rates: trace.Rates,
		Without: without.result(p), With: with.result(p),
	}
	claim := func(holds bool, format string, args ...any) {
		if !holds {
			r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
		}
	}
	claim(len(without.Destroyed) > 0, "uncoordinated, no update was destroyed")
	claim(
		len(without.Missing) == 0 && len(without.Double) == 0, "uncoordinated, %d updates were never written and %d twice",
		len(without.Missing), len(without.Double),
	)
	claim(with.Wrong == 0, "under leases, %d balances are wrong by %s", with.Wrong, with.Off)
	claim(len(with.Missing) == 0, "under leases, %d updates are missing", len(with.Missing))
	claim(len(with.Double) == 0, "under leases, %d updates were written twice", len(with.Double))
	claim(slices.ContainsFunc(with.Refused, func(r refusal) bool { return r.Agent == p.tasks[p.frozen].update.Agent }),
		"under leases, the frozen agent's late write was not refused")
	claim(
		with.Killed != nil && with.Killed.NextFence > with.Killed.Fence, "under leases, nobody came after the killed agent",
	)
	r.Holds = len(r.Problems) == 0
	return r
}

func (o *outcome) result(p *plan) runResult {
	mean, longest := o.waits()
	r := runResult{
		Updates: len(p.tasks), Destroyed: []lossResult{}, Refused: []refusalResult{},
		WrongBalances: o.Wrong, Off: o.Off,
		WaitMeanMS: mean.Milliseconds(), WaitLongestMS: longest.Milliseconds(),
		ThrownMS: o.Thrown.Milliseconds(), TookMS: o.Took.Milliseconds(),
	}
	for _, b := range o.Accounts {
		r.Balances = append(r.Balances, balanceResult(b))
	}
	for _, l := range o.Destroyed {
		r.Destroyed = append(r.Destroyed, lossResult{update: l.Update, By: l.By.Agent})
	}
	for _, f := range o.Refused {
		r.Refused = append(r.Refused, refusalResult{f.Agent, f.Account, f.Fence, f.Higher, f.Frozen.Milliseconds()})
	}
	if d := o.Killed; d != nil {
		r.Killed = &deathResult{d.Agent, d.Account, d.Fence, d.Next, d.NextFence, d.After.Milliseconds()}
	}
	return r
}

// verdict is nil when the race showed what it claims.
func (r *result) verdict() error {
	if r.Holds {
		return nil
	}
	err := fmt.Errorf("%w: %s", ErrClaim, r.Problems[0])
	if n := len(r.Problems) - 1; n > 0 {
		err = fmt.Errorf("%w, and %d more", err, n)
	}
	return err
}
