package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

// The whole scene with real processes, much faster than a person sees it.
func TestRace(t *testing.T) {
	var out bytes.Buffer
	dir := filepath.Join(t.TempDir(), "race")
	err := Race(t.Context(), Config{Out: &out, JSON: true, Dir: dir, Binary: launchtest.Binary(t), Speed: 100})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	var r result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if !r.Holds {
		t.Errorf("problems: %q", r.Problems)
	}
	if len(r.Without.Destroyed) == 0 || r.Without.WrongBalances == 0 {
		t.Error("uncoordinated, nothing was lost")
	}
	for _, l := range r.Without.Destroyed {
		if l.By == "" || l.By == l.Agent {
			t.Errorf("%+v was overwritten by %q", l.update, l.By)
		}
	}
	if len(r.With.Destroyed) > 0 || r.With.WrongBalances > 0 || r.With.Off != 0 {
		t.Errorf("under leases: %+v", r.With)
	}
	if len(r.With.Refused) == 0 || r.With.Refused[0].Fence >= r.With.Refused[0].Higher {
		t.Errorf("refused: %+v", r.With.Refused)
	}
	if k := r.With.Killed; k == nil || k.NextFence <= k.Fence || k.Next == k.Agent {
		t.Errorf("killed: %+v", k)
	}

	// The files contain the same.
	for _, b := range r.With.Balances {
		a, err := ledger{dir: filepath.Join(dir, "under-leases")}.read(b.Account)
		if err != nil {
			t.Fatal(err)
		}
		if a.Balance != b.Expected {
			t.Errorf("account %s: the file says %s, must be %s", b.Account, a.Balance, b.Expected)
		}
	}
}

func TestRaceTellsItsStory(t *testing.T) {
	var out, progress bytes.Buffer
	cfg := Config{
		Out: &out, Progress: &progress, Dir: t.TempDir(), Binary: launchtest.Binary(t), Speed: 200, Agents: 12, Accounts: 3,
	}
	if err := Race(t.Context(), cfg); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"divided by 200", "CC BY 4.0", "1. Uncoordinated", "of them destroyed", "wrote over it", "2. Under leases",
		"SIGSTOP", "SIGKILL",
		"refused, the file has seen", "exact", "Under leases every balance is exact to the cent",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the story lacks %q:\n%s", want, out.String())
		}
	}
	if !strings.Contains(progress.String(), "12 of 12 updates written") {
		t.Errorf("progress: %q", progress.String())
	}
}

func TestUncoordinatedLosesUpdates(t *testing.T) {
	cfg, err := Config{Out: io.Discard, Binary: "unused", Speed: 100}.complete()
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlan(cfg)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o, err := uncoordinated(t.Context(), p, filepath.Join(dir, "accounts"), newStory(cfg, p, dir))
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Destroyed) == 0 || o.Wrong == 0 || o.Off == 0 {
		t.Errorf("nothing was lost: %+v", o)
	}
	if len(o.Missing) > 0 || len(o.Double) > 0 {
		t.Errorf("missing %v, double %v", o.Missing, o.Double)
	}
	// The difference is exactly the destroyed amount.
	lost := map[string]cents{}
	for _, l := range o.Destroyed {
		lost[l.Update.Account] += l.Update.Amount
	}
	for _, b := range o.Accounts {
		if b.Found != b.Expected-lost[b.Account] {
			t.Errorf("account %s: found %s, must be %s without %s", b.Account, b.Found, b.Expected, lost[b.Account])
		}
	}
}

func TestTheVerdictCanFail(t *testing.T) {
	cfg, err := Config{Binary: "unused"}.complete()
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlan(cfg)
	if err != nil {
		t.Fatal(err)
	}
	frozen := p.tasks[p.frozen].update
	good := func() (without, with *outcome) {
		return &outcome{Destroyed: []loss{{Update: frozen}}},
			&outcome{Refused: []refusal{{Agent: frozen.Agent, Fence: 1, Higher: 2}}, Killed: &death{Fence: 1, NextFence: 2}}
	}
	tests := []struct {
		name  string
		spoil func(without, with *outcome)
	}{
		{"nothing lost without leases", func(without, _ *outcome) { without.Destroyed = nil }},
		{"a wrong balance", func(_, with *outcome) { with.Wrong = 1 }},
		{"a missing update", func(_, with *outcome) { with.Missing = []update{frozen} }},
		{"a double update", func(_, with *outcome) { with.Double = []update{frozen} }},
		{"no late write refused", func(_, with *outcome) { with.Refused = nil }},
		{"another agent's write refused", func(_, with *outcome) { with.Refused[0].Agent = "somebody" }},
		{"nobody after the killed one", func(_, with *outcome) { with.Killed = nil }},
		{"a fence twice", func(_, with *outcome) { with.Killed.NextFence = 1 }},
	}
	without, with := good()
	if err := newResult(cfg, p, "", without, with).verdict(); err != nil {
		t.Errorf("as it must be: %v", err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			without, with := good()
			tt.spoil(without, with)
			if err := newResult(cfg, p, "", without, with).verdict(); !errors.Is(err, ErrClaim) {
				t.Errorf("error %v, want ErrClaim", err)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	cfg, err := Config{Binary: "unused"}.complete()
	if err != nil {
		t.Fatal(err)
	}
	one, err := newPlan(cfg)
	if err != nil {
		t.Fatal(err)
	}
	two, err := newPlan(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(one.tasks, two.tasks) || one.frozen != two.frozen || one.killed != two.killed {
		t.Error("the same seed gives two plans")
	}
	perAccount := map[string]int{}
	names := map[string]bool{}
	for _, task := range one.tasks {
		perAccount[task.update.Account]++
		names[task.update.Agent] = true
		if task.update.Amount == 0 || task.think != task.real/6 {
			t.Errorf("task %+v", task)
		}
	}
	if len(names) != 50 || len(perAccount) != 6 {
		t.Errorf("%d agents on %d accounts", len(names), len(perAccount))
	}
	if one.tasks[one.frozen].update.Account == one.tasks[one.killed].update.Account {
		t.Error("the frozen and the killed agent share an account")
	}
}

func TestConfigRefuses(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "precious"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []Config{
		{Agents: 7},
		{Agents: 501},
		{Accounts: 1},
		{Accounts: 13},
		{Agents: 8, Accounts: 3},
		{Speed: -1},
		{Speed: 1001},
		{Dir: full},
	} {
		cfg.Out = io.Discard
		err := Race(t.Context(), cfg)
		var refused *interlock.Error
		if !errors.As(err, &refused) || refused.Code != interlock.CodeInvalidRequest {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestMoney(t *testing.T) {
	for _, tt := range []struct {
		amount cents
		text   string
	}{{0, "0.00"}, {5, "0.05"}, {-5, "-0.05"}, {12345, "123.45"}, {-10000, "-100.00"}} {
		if got := tt.amount.String(); got != tt.text {
			t.Errorf("%d is %q, want %q", int64(tt.amount), got, tt.text)
		}
		var back cents
		if err := back.UnmarshalText([]byte(tt.text)); err != nil || back != tt.amount {
			t.Errorf("%q is %d (%v), want %d", tt.text, int64(back), err, int64(tt.amount))
		}
	}
	for _, bad := range []string{"", "1", "1.5", "1.234", "x.00", "--1.00", "1.-1"} {
		var c cents
		if err := c.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was read as %s", bad, c)
		}
	}
}

func TestGuard(t *testing.T) {
	l := ledger{dir: t.TempDir()}
	if err := l.write(account{Account: "1", Balance: 100}); err != nil {
		t.Fatal(err)
	}
	fee := update{Agent: "a", Account: "1", What: "fee", Amount: 50}

	first, err := l.readFenced("1", 3)
	if err != nil {
		t.Fatal(err)
	}
	// The next holder has only read, and the late writer is refused already.
	if _, err := l.readFenced("1", 4); err != nil {
		t.Fatal(err)
	}
	var stale *staleError
	if err := l.writeFenced(first.with(fee), 3); !errors.As(err, &stale) || stale.Fence != 3 || stale.Higher != 4 {
		t.Fatalf("the late write: %v", err)
	}
	if _, err := l.readFenced("1", 2); !errors.As(err, &stale) {
		t.Fatalf("the late read: %v", err)
	}
	second, err := l.readFenced("1", 4)
	if err != nil {
		t.Fatalf("the same fence again: %v", err)
	}
	if err := l.writeFenced(second.with(fee), 4); err != nil {
		t.Fatal(err)
	}
	a, err := l.read("1")
	if err != nil || a.Balance != 150 || a.Fence != 4 || !slices.Equal(a.Updates, []update{fee}) {
		t.Errorf("the account is %+v (%v)", a, err)
	}
}

// Many writers with different fences at once: those accepted have rising fences.
func TestGuardUnderItsLock(t *testing.T) {
	l := ledger{dir: t.TempDir()}
	if err := l.write(account{Account: "1"}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for fence := range interlock.Fence(32) {
		all.Go(func() {
			_, err := l.guarded("1", fence+1, func(a account) account {
				return a.with(update{What: (fence + 1).String(), Amount: cents(fence) + 1})
			})
			var stale *staleError
			if err != nil && !errors.As(err, &stale) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	a, err := l.read("1")
	if err != nil {
		t.Fatal(err)
	}
	if a.Fence != 32 || !slices.IsSortedFunc(a.Updates, func(a, b update) int { return int(a.Amount - b.Amount) }) {
		t.Errorf("the account is %+v", a)
	}
}
