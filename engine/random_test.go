package engine_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/test/search"
)

var (
	runs    = flag.Int("runs", 300, "random runs of the engine against the model (also INTERLOCK_RUNS)")
	seed    = flag.Uint64("seed", 0, "first seed of the random runs, 0 for the fixed ones; with -runs 1 it repeats one")
	steps   = flag.Int("steps", 200, "commands in a random run")
	shrinks = flag.Bool("shrink", true, "shrink a random run that fails")
)

// op is one step of a random run before it is known to what it applies: the
// numbers choose among what exists then. So a run with some ops left out is
// still a run, and a failing one can be shrunk.
type op struct {
	kind opKind
	r    [10]uint32
}

type opKind int

const (
	opAcquire opKind = iota
	opRepeat
	opOpen
	opClose
	opHeartbeat
	opAttach
	opDetach
	opPoll
	opLeave
	opGetLease
	opRenew
	opRelease
	opRevoke
	opRequestYield
	opCheck
	opAdvance
	opRace
	opSnapshot
	opRestart
	opConvert
	opPattern
	opBarrier
	opMember
	opArrive
	opDeclare
	opPark
	opResume
	opClaimEffect
	opSettleEffect
	opCommit
	opQueue
	opSubmit
	opSend
	opPull
	opAck
	opNack
	opChangeTask
	opFollow
	opCross
	opAskHuman
	opAnswer
	opRun
	opLast
)

var weights = map[opKind]int{
	opAcquire: 40, opRepeat: 4, opOpen: 5, opClose: 1, opHeartbeat: 10, opAttach: 3, opDetach: 3, opPoll: 5, opLeave: 3,
	opGetLease: 2, opRenew: 8, opRelease: 22, opRevoke: 1, opRequestYield: 3, opCheck: 3, opAdvance: 22, opRace: 4,
	opSnapshot: 1,
	opRestart:  1,
	opConvert:  10, opPattern: 3, opBarrier: 10, opMember: 6, opArrive: 8, opDeclare: 6, opPark: 6, opResume: 7,
	opClaimEffect: 6, opSettleEffect: 6, opCommit: 16,
	opQueue: 5, opSubmit: 20, opSend: 12, opPull: 18, opAck: 12, opNack: 5, opChangeTask: 6, opFollow: 5, opCross: 4,
	opAskHuman: 4, opAnswer: 8, opRun: 10,
}

func program(seed uint64, n int) []op {
	rng := rand.New(rand.NewPCG(seed, 0x1e7e1))
	var deck []opKind
	for kind := opAcquire; kind < opLast; kind++ {
		for range weights[kind] {
			deck = append(deck, kind)
		}
	}
	ops := make([]op, n)
	for i := range ops {
		ops[i].kind = deck[rng.IntN(len(deck))]
		for k := range ops[i].r {
			ops[i].r[k] = rng.Uint32()
		}
	}
	return ops
}

// run carries out a program from an empty engine on.
func run(ops []op) (*rig, error) { return play(newRig(), ops) }

// looksOf chooses how much the searches of a step look at: in every third program so
// little that they take many steps.
func looksOf(ops []op) int {
	if len(ops) == 0 || ops[0].r[9]%3 > 0 {
		return 0
	}
	return 1 + int(ops[0].r[9]>>8%16)
}

// rerun is run for a program that was run before. It skips checks that do not depend on the
// engine.
func rerun(ops []op) (*rig, error) {
	g := newRig()
	g.unchecked = true
	return play(g, ops)
}

// The namespaces of random runs. One name begins with the other, so that whatever takes a
// part of a name for the whole mixes them up.
const (
	firstNamespace interlock.Namespace = "one"
	otherNamespace interlock.Namespace = "one-b"
)

func play(g *rig, ops []op) (*rig, error) {
	g.namespaces = []interlock.Namespace{firstNamespace, otherNamespace}
	g.keys = []interlock.Key{
		"a", "a/x", "a/x/1", "a/y", "b", "c", "p", "g:1", "t", "bar", "c/bar", "m", "m/1", "w:1", "w:2", "w:1/x",
		"org:o/runs", "r:prod", "r:PROD/x", "r:Prod", "prod/x", "merge:r/t", "freeze:r/t",
	}
	g.plain = g.keys[:6]
	g.looks, g.finishes = looksOf(ops), true
	g.use(g.e)
	p := &player{rig: g}
	err := g.start()
	for i := 0; i < len(ops) && err == nil; i++ {
		g.played = i + 1
		err = p.play(&ops[i])
		if err == nil && i%4 == 0 && ops[i].kind != opRace {
			if err = g.step(&engine.Tick{}); err != nil { // a view is as of its namespace's last command
				break
			}
			if !g.unchecked {
				err = g.m.checkViews(g.e, g.namespaces, g.keys)
			}
		}
	}
	return g, err
}

// mostSeeds is how many runs TestModelMeets looks at, if some rare thing wants them.
const mostSeeds = 1000

// TestModelMeets makes sure that the random runs come across everything that the
// model has a rule for: a check that never happens finds nothing.
func TestModelMeets(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a minute to see what long runs meet")
	}
	met := map[string]int{}
	for seed := uint64(1); seed <= mostSeeds && len(missing(met)) > 0; seed++ {
		g, err := run(program(seed, *steps))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, line := range g.trace {
			if _, code, ok := strings.Cut(line, ": refused "); ok {
				met["refused "+strings.Fields(code)[0]]++
			}
		}
		g.m.meetMail(met)
		met["barred by its group"] += g.m.barred[false]
		met["barred by a pattern"] += g.m.barred[true]
		for _, entry := range g.journal {
			err := record.DecodeEntry(entry, func(ev *record.Event) error {
				met[ev.Kind.String()]++
				met[ev.Kind.String()+" "+ev.Reason.String()]++
				if ev.Offer {
					met["offer"]++
				}
				if ev.Part {
					met["part"]++
				}
				if ev.Version > 0 {
					met[ev.Kind.String()+" and moved"]++
				}
				if ev.Kind == record.EffectChanged && len(ev.Blob) == 0 {
					met["effect settled "+interlock.EffectState(ev.Op).String()]++
				}
				asks := interlock.TaskState(ev.Op) == interlock.TaskAsking
				switch {
				case ev.By > 0 && (ev.Kind == record.PatternSet || ev.Kind == record.PatternDropped):
					met[ev.Kind.String()+" again"]++
				case ev.Kind == record.TaskMoved && asks:
					met["asked again"]++
				case ev.Kind == record.ApprovalDecided && interlock.TaskState(ev.Op) == interlock.TaskDead:
					met["denied"]++
				case ev.Kind == record.ApprovalDecided && ev.Agent == interlock.ByPolicy:
					met["answered by policy"]++
				}
				if ev.Kind == record.EffectChanged && ev.Generation > 1 {
					met["effect again"]++
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, what := range missing(met) {
		t.Errorf("no run met %q", what)
	}
	t.Logf("%v", met)
}

// missing returns the features that no run has met yet.
func missing(met map[string]int) (list []string) {
	for _, what := range []string{
		"opened", "session_opened", "session_ended session_closed", "session_ended session_expired", "queued", "granted",
		"admitted", "offer", "claimed",
		"grace ttl", "grace max_hold", "grace session_expired", "ended released", "ended ttl", "ended max_hold",
		"ended session_closed", "ended taken_over",
		"ended session_expired", "ended lapsed", "ended left", "ended revoked", "left left", "left deadlock",
		"left session_closed",
		"left session_expired", "left lapsed", "answered", "left wait_limit", "grace stall", "ended stall", "closed ttl",
		"closed stall",
		"converted", "ttl_changed", "left lease_ended", "yield_requested", "grace preempted", "ended preempted", "pattern_set",
		"pattern_dropped", "configured", "left barrier_broken",
		"parked", "resumed", "ended park_limit", "left target_ended", "left deadlock", "grace deadlock", "part",
		"effect", "effect again", "effect settled done", "effect settled unknown", "effect settled ",
		"granted and moved", "admitted and moved", "claimed and moved", "resumed and moved", "written",
		"refused stale", "refused future_version", "refused version_required", "refused lease_required",
		"refused writer_only",
		"queue_set", "queue_dropped", "task_submitted", "task_dispatched", "task_moved", "task_moved deadlock",
		"task_forgotten",
		"approval_requested", "approval_decided", "ended question", "denied", "answered by policy", "asked again",
		"refused not_asking", "left too_many_runs", "refused too_many_runs",
		"pattern_set again", "pattern_dropped again", "refused unknown_revision", "refused unknown_pattern",
		"barred by its group", "barred by a pattern",
		"task_attempt_failed nack", "task_attempt_failed ttl", "task_attempt_failed max_hold", "task_attempt_failed stall",
		"task_attempt_failed released", "task_attempt_failed revoked", "task_attempt_failed session_expired",
		"task_attempt_failed session_closed",
		"refused task_moved", "refused task_settled", "refused unknown_queue", "refused too_many_tasks",
		"refused queue_draining", "refused unknown_task",
		"refused already_replied", "refused no_writer", "message held back", "message gave way", "message logged done",
		"message logged dead", "message logged cancelled",
		"message changed its key", "message of key", "message of session", "message of principal", "message of agent",
		"message of ",
		"refused bad_patch", "refused not_a_counter", "refused out_of_bounds", "refused too_many_documents",
		"refused too_much_state",
	} {
		if met[what] == 0 {
			list = append(list, what)
		}
	}
	return list
}

// TestModel runs random programs and compares the engine with the model after
// every command.
func TestModel(t *testing.T) {
	t.Parallel()
	n, first := *runs, *seed
	if s := os.Getenv("INTERLOCK_RUNS"); s != "" {
		more, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("INTERLOCK_RUNS: %v", err)
		}
		n = more
	}
	from, to := first, first+uint64(n)
	if first == 0 {
		from, to = search.Seeds(t, 1, uint64(min(n, 50)), uint64(n))
	}
	for seed := from; seed < to; seed++ {
		compare(t, seed, *steps)
	}
	t.Logf("%d runs of %d commands each", n, *steps)
}

// TestModelLong is TestModel for runs that are long enough for states which short ones do
// not come to.
func TestModelLong(t *testing.T) {
	t.Parallel()
	seeds := []uint64{800099, 800139, 1, 2, 3, 4}
	if round := search.Round(t); round > 0 {
		for i := range seeds {
			seeds[i] += 1_000_000 * round
		}
	} else if testing.Short() {
		seeds = seeds[:2]
	}
	for _, seed := range seeds {
		compare(t, seed, 1000)
	}
}

// compare runs one program, and shrinks it if the engine and the model differ.
func compare(t *testing.T, seed uint64, steps int) {
	t.Helper()
	ops := program(seed, steps)
	g, err := run(ops)
	if err == nil {
		err = replaysEqual(g, ops)
	}
	if err == nil {
		return
	}
	if *shrinks {
		ops, g, err = shrink(ops, g, err)
	}
	t.Fatalf("seed %d (repeat with -run TestModel$ -seed %d -runs 1 -steps %d), shrunk to %d ops:\n%s\n%v",
		seed, seed, steps, len(ops), strings.Join(g.trace, "\n"), err)
}

// fails runs a program for shrinking.
func fails(ops []op) (*rig, error) {
	g, err := run(ops)
	if err == nil {
		err = replaysEqual(g, ops)
	}
	return g, err
}

// shrinkTime bounds how long a failing program is shrunk, for each 200 ops of it.
const shrinkTime = 20 * time.Second

// shrink leaves out of a failing program what it fails without, in ever smaller
// pieces.
func shrink(ops []op, g *rig, err error) ([]op, *rig, error) {
	tries, until := 0, time.Now().Add(shrinkTime*time.Duration(1+len(ops)/200))
	ops = ops[:g.played] // it failed by then
	for size := len(ops) / 2; size > 0; {
		removed := false
		for i := 0; i+size <= len(ops) && tries < 3000 && time.Now().Before(until); {
			tries++
			less := append(append([]op{}, ops[:i]...), ops[i+size:]...)
			if g2, err2 := fails(less); err2 != nil {
				ops, g, err, removed = less, g2, err2, true
				continue
			}
			i += size
		}
		if size > 1 {
			size /= 2
		} else if !removed {
			break
		}
		if tries >= 3000 || !time.Now().Before(until) {
			break
		}
	}
	return ops, g, err
}

// replaysEqual checks that the journal yields the same state as the run, whole and from the
// snapshot on; and that the same commands yield the same journal again.
func replaysEqual(g *rig, ops []op) error {
	replayed, err := g.replay()
	if err != nil {
		return err
	}
	if err := g.sameState(replayed); err != nil {
		return err
	}
	again, err := rerun(ops)
	if err != nil {
		return fmt.Errorf("the second run of the same commands: %w", err)
	}
	if again.e.Hash() != g.e.Hash() || len(again.journal) != len(g.journal) {
		return fmt.Errorf("the second run of the same commands has another hash or journal (I17)")
	}
	for i := range g.journal {
		if string(again.journal[i]) != string(g.journal[i]) {
			return fmt.Errorf("the second run of the same commands has another entry %d (I17)", i)
		}
	}
	return nil
}
