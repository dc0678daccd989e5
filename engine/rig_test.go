package engine_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// begin is when every test's clock starts.
const begin = engine.Time(1_800_000_000_000_000_000)

// since returns the time passed in a test.
func since(t engine.Time) time.Duration { return t.Sub(begin) }

// listener stands for a connection: effects for it carry its name.
type listener struct{ name string }

func (l *listener) String() string { return l.name }

// counted makes an id from a counter, so that runs can be repeated.
func counted(n uint64) (id [16]byte) {
	binary.BigEndian.PutUint64(id[:8], 0xc0de)
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}

// rig drives an engine, keeps its journal, and lets the model check every step.
type rig struct {
	e       *engine.Engine
	m       *model
	now     engine.Time
	epoch   interlock.Epoch
	ids     uint64
	journal [][]byte
	trace   []string

	last   engine.Output // of the last step
	ticked func()        // is called after each Tick of advance
	blind  bool          // the model does not look: the script is about what it leaves out

	looks     int  // how many objects the searches of a step look at; 0 for the usual number
	played    int  // how many ops of its program were begun
	unchecked bool // only what the program needs is checked: see rerun

	// snapshot is the state after the first snapAt entries, and picture one that was taken
	// then, if there could be one.
	snapshot []byte
	snapAt   int
	picture  *engine.FrozenState

	// views compares what can be looked at, too, after every command.
	namespaces []interlock.Namespace
	keys       []interlock.Key
	scripted   bool            // any name may be a principal's
	finishes   bool            // what a step leaves over comes to its end before anything else
	who        string          // the principal of commands that name none
	plain      []interlock.Key // those of them without permits by a pattern
}

func newRig() *rig {
	g := &rig{e: engine.New().RememberFew(), m: &model{}, now: begin, epoch: 1}
	g.m.now = begin
	return g
}

// wide returns the engine its usual bounds, for programs that count on them.
func (g *rig) wide() *rig {
	g.e, g.m.wide = engine.New(), true
	return g
}

// bounded returns e the bounds of g's engine.
func (g *rig) bounded(e *engine.Engine) *engine.Engine {
	if g.m.wide {
		return e
	}
	return e.RememberFew()
}

// start begins the first term.
func (g *rig) start() error {
	return g.step(&engine.Recover{Epoch: g.epoch})
}

func (g *rig) id() [16]byte {
	g.ids++
	return counted(g.ids)
}

// step carries out cmd now and checks everything, and mostly lets a search for deadlocks
// that it leaves over come to its end; in the programs of the model all that it leaves over.
func (g *rig) step(cmd engine.Command) error {
	if err := g.stepOnce(cmd); err != nil {
		return err
	}
	first := g.last
	// With an even bound other commands come in between.
	goesOn := func() bool {
		return g.finishes && !g.e.IsSearching() || g.looks%2 > 0 || g.looks > 0 && len(g.trace)%5 == 0
	}
	for n := 0; g.e.IsUnfinished() && goesOn(); n++ {
		if n > 10_000 {
			return errors.New("the step never comes to its end")
		}
		if err := g.stepOnce(&engine.Tick{}); err != nil {
			return err
		}
	}
	g.last, g.m.searching = first, g.e.IsSearching()
	if g.blind || g.unchecked {
		return nil
	}
	return g.m.between(false)
}

// use makes the rig continue with an engine.
func (g *rig) use(e *engine.Engine) {
	if g.e = e; g.looks > 0 {
		e.LookAtMost(g.looks)
		e.GatherAtMost(g.looks)
		if g.looks%2 > 0 {
			e.StepAtMost(g.mostObjects())
		}
	}
}

func (g *rig) stepOnce(cmd engine.Command) error {
	head := cmd.Header()
	head.At = g.now
	g.trace = append(g.trace, commandText(cmd))
	switch cmd.(type) {
	case *engine.Tick, *engine.Recover, *engine.Limit:
	default:
		if head.Actor == "" {
			head.Actor = g.who
		}
		if head.Principal == nil {
			head.Principal = principalOf(head.Actor)
		}
		if head.From == nil {
			head.From = &listener{fmt.Sprintf("caller %d", len(g.trace))}
		}
	}
	g.m.unfinished = g.e.IsUnfinished()
	var out engine.Output
	if err := g.survives(cmd, &out); err != nil {
		return err
	}
	g.last = out
	for i := range out.Events {
		g.trace = append(g.trace, "        "+eventText(&out.Events[i]))
	}
	for i := range out.Effects {
		g.trace = append(g.trace, fmt.Sprintf("        -> %v: %s", out.Effects[i].To, effectText(&out.Effects[i])))
	}
	if len(out.Entry) > 0 {
		g.journal = append(g.journal, bytes.Clone(out.Entry))
	}
	if err := sameEvents(out.Entry, out.Events); err != nil {
		return err
	}
	if g.e.Now() < g.now && len(out.Entry) > 0 {
		return fmt.Errorf("the engine's time is %d after a command at %d", g.e.Now(), g.now)
	}
	for i := range out.Events {
		if who := strangersActor(&out.Events[i]); who != "" && !g.scripted {
			return fmt.Errorf("the actor of %s is %q, which is no principal", eventText(&out.Events[i]), who)
		}
	}
	if g.blind {
		return nil
	}
	if err := g.m.observe(cmd, &out, g.e.Before()); err != nil {
		return err
	}
	if g.unchecked {
		return nil
	}
	if err := g.e.CheckSessions(); err != nil {
		return err
	}
	if err := g.e.CheckTallies(); err != nil {
		return err
	}
	if err := g.e.CheckHolders(); err != nil {
		return err
	}
	if err := g.e.CheckPools(); err != nil {
		return err
	}
	if n := g.e.Looked(); n > g.mostLooks() {
		return fmt.Errorf("the step looks at %d objects", n)
	}
	if n := g.e.Ranked(); n > engine.StepRanks+listLooks {
		return fmt.Errorf("the step looks at %d objects for ranks", n)
	}
	_, all := cmd.(*engine.Recover) // which looks at all there is
	if n, most := g.e.Objects(), g.mostObjects()+commandObjects; n > most && !all {
		return fmt.Errorf("the step looks at %d other objects, want at most %d", n, most)
	}
	return g.e.CheckWaits()
}

// mostLooks is how many objects the searches of a step may look at: those of one list may
// come on top.
func (g *rig) mostLooks() int {
	if g.looks > 0 {
		return g.looks + listLooks
	}
	return engine.StepLooks + listLooks
}

// mostObjects is how many objects a step looks at before it leaves the rest to the next: in
// tightened runs about as many as one command of the run does.
func (g *rig) mostObjects() int {
	if g.looks%2 > 0 {
		return commandObjects + g.looks
	}
	return engine.StepObjects
}

// commandObjects is the number of objects that a command of a random run examines by itself,
// with the buckets of the lines that its conflict describes.
const commandObjects = 250

// survives carries out cmd, and makes an error of a panic, so that a run that ends so
// can be shrunk like others.
func (g *rig) survives(cmd engine.Command, out *engine.Output) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the engine panics: %v\n%s", p, debug.Stack())
		}
	}()
	g.e.Step(given(cmd), out)
	return nil
}

// given is a command for the engine, which keeps the lists of those that it is given
// and may write to them.
func given(cmd engine.Command) engine.Command {
	own := reflect.New(reflect.TypeOf(cmd).Elem())
	own.Elem().Set(reflect.ValueOf(cmd).Elem())
	if claims := own.Elem().FieldByName("Claims"); claims.IsValid() {
		claims.Set(reflect.ValueOf(slices.Clone(claims.Interface().([]interlock.Claim))))
	}
	switch c := own.Interface().(type) {
	case *engine.Commit:
		c.Reads, c.Writes = slices.Clone(c.Reads), slices.Clone(c.Writes)
	case *engine.Submit:
		c.Task = ownTask(c.Task)
	case *engine.Ack:
		c.Reads, c.Writes, c.Tasks = slices.Clone(c.Reads), slices.Clone(c.Writes), slices.Clone(c.Tasks)
		for i := range c.Tasks {
			c.Tasks[i] = ownTask(c.Tasks[i])
		}
	case *engine.AskHuman:
		c.Question.Reads = slices.Clone(c.Question.Reads)
	}
	return own.Interface().(engine.Command)
}

func ownTask(x engine.TaskSpec) engine.TaskSpec {
	if x.Claims = slices.Clone(x.Claims); x.Ask != nil {
		own := *x.Ask
		own.Reads = slices.Clone(own.Reads)
		x.Ask = &own
	}
	return x
}

// sameEvents checks that the entry encodes the given events.
func sameEvents(entry []byte, events []record.Event) error {
	if len(entry) == 0 {
		if len(events) > 0 {
			return fmt.Errorf("%d events without an entry", len(events))
		}
		return nil
	}
	i := 0
	err := record.DecodeEntry(entry, func(ev *record.Event) error {
		if i >= len(events) {
			return errors.New("the entry has more events than the step")
		}
		if got := *ev; !reflect.DeepEqual(journaled(got), journaled(events[i])) {
			return fmt.Errorf("event %d reads back as\n%+v, was\n%+v", i, got, events[i])
		}
		i++
		return nil
	})
	if err == nil && i != len(events) {
		err = fmt.Errorf("%d of %d events are in the entry", i, len(events))
	}
	return err
}

// journaled returns the part of an event that must survive writing and reading: an empty list
// equals none, and the names that it is counted under are not journaled.
func journaled(ev record.Event) record.Event {
	if len(ev.Claims) == 0 {
		ev.Claims = nil
	}
	if len(ev.Cycle) == 0 {
		ev.Cycle = nil
	}
	engine.ForgetAttributes(&ev)
	return ev
}

// pace is how the clock of a rig advances.
type pace int

const (
	everyTimer pace = iota // a Tick at every timer on the way
	atOnce                 // Ticks at the new time only, as after a pause
	noTick                 // none: commands get there before the Tick
)

// advance lets time pass.
func (g *rig) advance(to engine.Time, how pace) error {
	g.trace = append(g.trace, fmt.Sprintf("[%v] advance to %v", since(g.now), since(to)))
	if how == noTick {
		g.now = to
		return nil
	}
	for range 100_000 { // a task may step aside every 100 ms for hours
		timer, ok := g.e.NextTimer()
		if !ok || timer > to {
			g.now = to
			if g.e.Now() < to {
				// The views show the time of the last command.
				if err := g.step(&engine.Tick{}); err != nil {
					return err
				}
			}
			if g.blind || g.unchecked {
				return nil
			}
			return g.m.settled(to)
		}
		if how == everyTimer {
			g.now = max(g.now, timer)
		} else {
			g.now = to
		}
		if err := g.step(&engine.Tick{}); err != nil {
			return err
		}
		if g.ticked != nil {
			g.ticked()
		}
	}
	return errors.New("the timer never comes to an end")
}

// settled: every timer up to now was served.
func (m *model) settled(now engine.Time) error {
	m.now = now
	return m.between(true)
}

// restart throws the engine away, as a crash does, makes another one from the
// journal, and begins its term.
func (g *rig) restart(jump uint64) error {
	replayed, err := g.replay()
	if err != nil {
		return err
	}
	if err := g.sameState(replayed); err != nil {
		return err
	}
	g.use(replayed)
	g.epoch++
	return g.step(&engine.Recover{Epoch: g.epoch, FenceJump: jump})
}

// sameState compares the replayed journal with the engine that wrote it.
func (g *rig) sameState(replayed *engine.Engine) error {
	if replayed.Hash() != g.e.Hash() {
		return errors.New("the state after replay has another hash (I17)")
	}
	return nil
}

// replay makes an engine from the journal, and another one from the snapshot and
// what came after it; they must be equal.
func (g *rig) replay() (*engine.Engine, error) {
	fresh := g.bounded(engine.New())
	for i, entry := range g.journal {
		if err := fresh.Apply(entry); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i, err)
		}
	}
	if g.snapshot == nil {
		return fresh, nil
	}
	if err := g.samePicture(); err != nil {
		return nil, err
	}
	short, err := engine.ReadSnapshot(bytes.NewReader(g.snapshot))
	if err != nil {
		return nil, fmt.Errorf("snapshot after entry %d: %w", g.snapAt, err)
	}
	g.bounded(short)
	for i, entry := range g.journal[g.snapAt:] {
		if err := short.Apply(entry); err != nil {
			return nil, fmt.Errorf("entry %d after a snapshot: %w", g.snapAt+i, err)
		}
	}
	if short.Hash() != fresh.Hash() {
		return nil, fmt.Errorf("snapshot(%d) + rest has another hash than the whole journal (I17)", g.snapAt)
	}
	return short, nil
}

// snap takes a snapshot.
func (g *rig) snap() error {
	var buf bytes.Buffer
	if err := g.e.WriteSnapshot(&buf); err != nil {
		return err
	}
	again, err := engine.ReadSnapshot(bytes.NewReader(buf.Bytes()))
	if err != nil {
		return fmt.Errorf("a fresh snapshot cannot be read: %w", err)
	}
	if again.Hash() != g.e.Hash() {
		return errors.New("a snapshot reads back with another hash (I17)")
	}
	var twice bytes.Buffer
	if err := again.WriteSnapshot(&twice); err != nil {
		return err
	}
	if !bytes.Equal(buf.Bytes(), twice.Bytes()) {
		return errors.New("a snapshot of what was read from a snapshot has other bytes")
	}
	if err := g.samePicture(); err != nil {
		return err
	}
	g.snapshot, g.snapAt, g.picture = buf.Bytes(), len(g.journal), g.e.Picture(pictureEvents)
	return nil
}

// samePicture compares a picture that was taken with the last snapshot with that snapshot,
// regardless of later steps.
func (g *rig) samePicture() error {
	if g.picture == nil {
		return nil
	}
	var buf bytes.Buffer
	if err := g.picture.WriteSnapshot(&buf); err != nil {
		return err
	}
	if !bytes.Equal(buf.Bytes(), g.snapshot) {
		return fmt.Errorf("a picture taken after entry %d gives another snapshot than the engine then", g.snapAt)
	}
	return nil
}

// commandText writes a command in the words of the scripts, as far as that goes.
func commandText(cmd engine.Command) string {
	head := cmd.Header()
	name := strings.ToLower(reflect.TypeOf(cmd).Elem().Name())
	parts := []string{fmt.Sprintf("[%v] %s", since(head.At), name)}
	add := func(key string, value any) {
		if v := reflect.ValueOf(value); v.IsValid() && !v.IsZero() {
			parts = append(parts, fmt.Sprintf("%s=%v", key, value))
		}
	}
	add("ns", head.Namespace)
	add("session", shortID(head.Session))
	add("request", head.RequestID)
	add("seq", head.Seq)
	add("link", head.Link)
	add("actor", head.Actor)
	v := reflect.ValueOf(cmd).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		if !f.IsExported() || f.Anonymous && f.Name != "Head" || len(f.Index) > 1 && f.Index[0] == 0 {
			continue
		}
		name := strings.ToLower(f.Name)
		switch field := v.FieldByIndex(f.Index).Interface().(type) {
		case engine.Head:
		case [16]byte:
			add(name, shortID(field))
		case interlock.SessionID:
			add(name, shortID(field))
		case interlock.TicketID:
			add(name, shortID(field))
		case interlock.LeaseID:
			add(name, shortID(field))
		case []interlock.Claim:
			add(name, claimsText(field))
		case interlock.Pattern:
			add(name, fmt.Sprintf("%+v", field))
		default:
			add(name, field)
		}
	}
	return strings.Join(parts, " ")
}

// shortID is the counter in a counted id.
func shortID[T ~[16]byte](id T) string {
	if id == (T{}) {
		return ""
	}
	return fmt.Sprintf("#%d", binary.BigEndian.Uint64(id[8:]))
}

func eventText(ev *record.Event) string {
	text := fmt.Sprintf("%v", ev.Kind)
	if ev.Num > 0 {
		text += fmt.Sprintf(" request=%d", ev.Num)
	}
	if ev.Session > 0 {
		text += fmt.Sprintf(" session=%d", ev.Session)
	}
	if ev.Fence > 0 {
		text += fmt.Sprintf(" fence=%d", ev.Fence)
	}
	if ev.Offer {
		text += " offer"
	}
	if ev.Reason > 0 {
		text += " by " + ev.Reason.String()
	}
	if len(ev.Cycle) > 0 {
		var steps []string
		for _, s := range ev.Cycle {
			steps = append(steps, fmt.Sprintf("%s/%s at %s victim=%v", s.Agent, s.Flow, s.Key, s.Victim))
		}
		text += " cycle: " + strings.Join(steps, "; ")
	}
	if ev.Kind == record.Answered {
		text += fmt.Sprintf(" id=%s answer=%v %v", ev.RequestID, ev.Answer, ev.Code)
	}
	return text
}
