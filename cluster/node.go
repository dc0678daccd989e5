package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock/journal/remote"
	"github.com/interlockdev/interlock/placement"
)

// Value is a value beside the journal that servers compare and swap. *remote.Shared is one.
type Value interface {
	Load(ctx context.Context) (remote.Value, error)
	Swap(ctx context.Context, data []byte, was string) (version string, done bool, err error)
}

// Owned is a shard that this server owns, with its APIs.
type Owned interface {
	// Failed is closed when the shard can no longer answer; Err returns why.
	Failed() <-chan struct{}
	Err() error
	// Leave ends the ownership in order: nothing is granted any more, and the journal is closed.
	Leave(ctx context.Context)
	// Abandon ends it without order: another server owns the shard, or the shard has failed.
	Abandon(ctx context.Context)
	// Moving lists the namespaces that answer nothing, because they move.
	Moving(ctx context.Context) ([]Moving, error)
	// Take takes a step of a move. It may be repeated. done is false if the step is not possible yet.
	Take(ctx context.Context, step MoveStep, m Moving) (done bool, err error)
}

// Config describes a node.
type Config struct {
	// Me is how others find this server. Its ID and its beat are the node's.
	Me Member
	// Writes is the format of the newest entries that an owner of this version writes as long as no namespace moves.
	// Only a shard with a move needs servers that read all of this version, so an upgrade can be undone before one.
	Writes uint32
	// TTL is how long a member may show no beat before others take its shards; half of it, if it answers no probe either.
	TTL time.Duration
	// Settle is how long the first server of a new journal leaves it to an act that fills it: see Fill. A restore that
	// was started beside it comes in that time.
	Settle time.Duration
	// Directory and Table are the shared values.
	Directory, Table Value
	// Open makes this server the owner of a shard after it took the seat.
	Open func(ctx context.Context, shard int) (Owned, error)
	// Fatal reports whether no server of this version can open the shard, so that a node of one shard ends.
	Fatal func(error) bool
	// Probe asks a member whether it answers calls. It is called by several goroutines. nil: no member is asked.
	Probe func(ctx context.Context, m Member) error
	// Wake has a member look at the table at once. It is called by several goroutines. nil: members look in their time.
	Wake func(ctx context.Context, m Member)
	// Changed is called after each change of the view, by one goroutine.
	Changed func(*View)

	Logger *slog.Logger
}

// The names of the shared values beside a journal.
const (
	DirectoryName = "directory"
	ServersName   = "servers"
)

// DefaultTTL is the time without a beat after which a member's seats are free, if it answers probes: with two looks and
// the time to open journals, its shards have an owner again within 6 s, and within 3 s if it answers nothing.
const DefaultTTL = 3500 * time.Millisecond

// looks is the number of looks at the table in the TTL, and the others those in each beat and in the time after which a
// probe without an answer counts.
const (
	looks        = 7
	looksInBeat  = 2
	looksInProbe = 3
)

// The pauses of a node.
const (
	// joinTimeout bounds one attempt to read or to make the directory.
	joinTimeout = 2 * time.Second

	// openAtOnce bounds the journals that are being opened: to open one takes some 20 answers of the engine one after
	// the other, and little else unless its state is large.
	openAtOnce = 16
	// wakeTimeout bounds a call that wakes another server, and lookPause is the least time between a look and one that
	// another server has asked for.
	wakeTimeout = 500 * time.Millisecond
	lookPause   = 50 * time.Millisecond
	// retryAfter is how long a shard is left to others after it could not be opened, and fatalAfter the same for one that
	// this server cannot open.
	retryAfter = 500 * time.Millisecond
	fatalAfter = 30 * time.Second
)

func beatEvery(ttl time.Duration) time.Duration { return ttl * looksInBeat / looks }

// View is what a node knows. It does not change.
type View struct {
	Me        string
	Address   string // this server's, for HTTP
	Directory placement.Directory
	Members   []Member
	// Holders has the member with the seat of each shard; nil where it is free.
	Holders []*Member
	// Owned has the shards that this server answers for; nil where it does not.
	Owned []Owned
	// Unreached has the members that do not answer this server, and since when.
	Unreached map[string]time.Time

	seen map[string]time.Time // the last beat of each member, as this server saw it in the table
	late time.Duration        // more than the time between two beats
}

// Silent returns for how long a member has shown no beat, if that is longer than it should be. It is of all members,
// and of this one, where the table cannot be read or written.
func (v *View) Silent(id string, now time.Time) time.Duration {
	at, ok := v.seen[id]
	if silent := now.Sub(at); ok && silent > v.late {
		return silent
	}
	return 0
}

// Node is this server among the members. Run runs it; the other methods may be called by any number of
// goroutines.
type Node struct {
	cfg     Config
	id      string
	planner *placement.Planner
	view    atomic.Pointer[View]
	wake    chan struct{} // something has happened that the table should show
	called  chan struct{} // another server has changed the table
	waking  sync.WaitGroup
	opening chan struct{} // a place for each shard that is being opened
	life    context.Context
	end     context.CancelFunc // when Run returns

	mu        sync.Mutex // guards the fields below
	shards    []local
	directory placement.Directory // the newest one that was read
	reach     map[string]*reach   // by member
	draining  bool
	joined    bool          // it was in the table
	left      chan struct{} // closed when a draining node has left the table

	// Only Run uses these.
	table  *table
	beat   uint64
	beatAt time.Time // when the last one was stored
	looked time.Time // when the table was last read
	asked  time.Time // when the directory was last read
	seen   map[string]sign
}

// local is what this server does about a shard.
type local struct {
	phase phase
	owned Owned // in the phases owned and leaving
	err   error // of the phase failed; nil if the shard was left in order
	until time.Time
	stop  context.CancelFunc // of taking and of watching

	tending   bool // a goroutine takes steps of moves
	unsettled bool // a namespace may be in the middle of a move
}

type phase uint8

const (
	idle    phase = iota // it is another server's, or free
	taking               // the journal is being opened
	owned                // this server answers for it
	leaving              // it is drained and closed, and then idle
	failed               // the seat goes back, and for a while it is left to others
)

// sign is the last sign of life of a member.
type sign struct {
	beat uint64
	at   time.Time
}

// Join makes a node over the directory of a journal. If there is none, it makes one with so many shards as
// shards returns.
func Join(ctx context.Context, cfg Config, shards func(context.Context) (int, error)) (*Node, error) {
	if cfg.TTL == 0 {
		cfg.TTL = DefaultTTL
	}
	directory, err := openDirectory(ctx, &cfg, shards)
	if err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, id: rand.Text(), wake: make(chan struct{}, 1), called: make(chan struct{}, 1),
		opening: make(chan struct{}, openAtOnce), shards: make([]local, directory.All()), directory: directory,
		left: make(chan struct{}), seen: map[string]sign{}, reach: map[string]*reach{},
	}
	n.life, n.end = context.WithCancel(context.Background())
	n.planner = placement.NewPlanner(n.id, cfg.TTL)
	n.view.Store(&View{
		Me: n.id, Directory: directory, Holders: make([]*Member, directory.All()),
		Owned: make([]Owned, directory.All()),
	})
	return n, nil
}

// openDirectory reads the directory, or makes it. It is made with a mark, which yields to that of an act that is
// begun at the same time, such as a restore by another server.
func openDirectory(
	ctx context.Context, cfg *Config, shards func(context.Context) (int, error),
) (d placement.Directory, err error) {
	for {
		v, err := load(ctx, cfg.Directory)
		if err != nil {
			return d, err
		}
		if v.Version != "" {
			d, err := placement.DecodeDirectory(v.Data)
			if f, ok := errors.AsType[*placement.FillingError](err); !ok || f.Act != "" && f.Act != startAct {
				return d, err
			}
		}
		f, err := BeginFill(ctx, cfg.Directory, startAct, func(context.Context) (bool, error) { return true, nil })
		if errors.Is(err, remote.ErrNotEmpty) {
			continue // another server was faster
		}
		if err != nil {
			return d, err
		}
		if err := f.start(ctx, cfg.Settle, shards); err != nil && !errors.Is(err, remote.ErrNotEmpty) {
			return d, err
		}
	}
}

// start makes the directory of a journal with as many shards as shards returns.
func (f *Fill) start(ctx context.Context, settle time.Duration, shards func(context.Context) (int, error)) error {
	n, err := shards(ctx)
	if err == nil {
		var d placement.Directory
		if d, err = placement.NewDirectory(n); err == nil {
			f.mu.Lock()
			d.Filling = f.directory.Filling
			f.directory = d
			f.mu.Unlock()
			pause(ctx, settle)
			err = f.Finish(ctx)
		}
	}
	if err != nil {
		f.Stop(ctx)
	}
	return err
}

func load(ctx context.Context, at Value) (remote.Value, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	return at.Load(ctx)
}

// View returns what the node knows now.
func (n *Node) View() *View { return n.view.Load() }

// Run takes part until ctx ends, or until this version can open no shard. Owned shards stay owned, and are no
// longer watched.
func (n *Node) Run(ctx context.Context) error {
	defer n.end()
	for ctx.Err() == nil {
		err := n.step(ctx)
		if err == nil {
			err = n.look(ctx)
		}
		if err != nil && ctx.Err() == nil {
			n.cfg.Logger.Warn("the table of servers cannot be used", "error", err)
			if n.table != nil {
				n.show(n.table) // what has happened here
			}
		}
		if err := n.fatal(); err != nil {
			return err
		}
		timer := time.NewTimer(n.untilLook())
		select {
		case <-timer.C:
		case <-n.wake:
		case <-n.called:
			pause(ctx, time.Until(n.looked.Add(lookPause)))
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// untilLook returns the time until the next look: sooner than usual, if a member may be gone sooner.
func (n *Node) untilLook() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	rest := n.cfg.TTL / looks
	for id := range n.seen {
		if at := n.lostAt(id); id != n.id && at.After(n.looked) {
			rest = min(rest, max(time.Until(at), lookPause))
		}
	}
	return rest
}

// step reads the table, changes it where this server has something to change, and acts on it.
func (n *Node) step(ctx context.Context) error {
	for range 4 {
		limit, cancel := context.WithTimeout(ctx, beatEvery(n.cfg.TTL))
		v, err := n.cfg.Table.Load(limit)
		cancel()
		if err != nil {
			return err
		}
		n.grow()
		t := newTable(len(n.shards))
		if v.Version != "" {
			if t, err = decodeTable(v.Data, len(n.shards)); errors.Is(err, errMoreSeats) {
				n.asked = time.Time{} // another server knows a newer directory
				return n.look(ctx)
			} else if err != nil {
				return err
			}
		}
		now := time.Now()
		n.observe(t, now)
		n.probe(t, now)
		next, handed, changed := n.plan(t, now)
		if !changed && now.Sub(n.beatAt) < beatEvery(n.cfg.TTL) {
			n.adopt(t)
			return nil
		}
		if done, err := n.save(ctx, next, v.Version, handed, now); err != nil || done {
			return err
		}
		// Another server was faster: look again.
	}
	return nil
}

// grow takes in shards that came since. Only Run calls it, so that the number of shards does not change in a step.
func (n *Node) grow() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.shards) < n.directory.All() {
		n.shards = append(n.shards, local{})
	}
}

// look reads the directory once in the time of a beat, and always while namespaces move.
func (n *Node) look(ctx context.Context) error {
	n.mu.Lock()
	moves := len(n.directory.Moves) > 0
	n.mu.Unlock()
	now := time.Now()
	if !moves && now.Sub(n.asked) < beatEvery(n.cfg.TTL) {
		return nil
	}
	n.asked = now
	limit, cancel := context.WithTimeout(ctx, beatEvery(n.cfg.TTL))
	defer cancel()
	_, _, err := n.readDirectory(limit)
	return err
}

// save stores a table in the place of a version, with a new beat, and wakes the others if it hands seats to them.
func (n *Node) save(ctx context.Context, next *table, was string, handed bool, now time.Time) (done bool, err error) {
	n.beat++
	if me := next.member(n.id); me != nil {
		me.Beat = n.beat
	}
	text, err := next.encode()
	if err != nil {
		return false, err
	}
	limit, cancel := context.WithTimeout(ctx, beatEvery(n.cfg.TTL))
	defer cancel()
	_, done, err = n.cfg.Table.Swap(limit, text, was)
	if err != nil || !done {
		return false, err // if it was stored all the same, the next look shows it
	}
	n.beatAt = now
	n.observe(next, now)
	if handed {
		n.tell(next) // before Drain can see that this server has left
	}
	n.adopt(next)
	return true, nil
}

// observe takes note of signs of life. In a time without a look nothing could be seen, so it does not count.
func (n *Node) observe(t *table, now time.Time) {
	blind := now.Sub(n.looked) >= n.cfg.TTL/2
	n.looked = now
	for i := range t.Members {
		m := &t.Members[i]
		if s, known := n.seen[m.ID]; !known || blind || s.beat != m.Beat {
			n.seen[m.ID] = sign{m.Beat, now}
		}
	}
	for id := range n.seen {
		if t.member(id) == nil {
			delete(n.seen, id)
		}
	}
}

// Look has the node look at the table soon, because another server has changed it.
func (n *Node) Look() {
	select {
	case n.called <- struct{}{}:
	default:
	}
}

// tell wakes the other members of a table.
func (n *Node) tell(t *table) {
	if n.cfg.Wake == nil {
		return
	}
	for _, m := range t.Members {
		if m.ID == n.id {
			continue
		}
		n.waking.Go(func() {
			ctx, cancel := context.WithTimeout(n.life, wakeTimeout)
			defer cancel()
			n.cfg.Wake(ctx, m)
		})
	}
}

// hand needs mu. It frees the seats of the shards that were left in order, and names the next holder of each if one is
// reached.
func (n *Node) hand(next *table, now time.Time) (handed bool) {
	var left []int
	for s := range n.shards {
		if l := &n.shards[s]; next.Seats[s].Holder == n.id && l.phase == failed && l.err == nil {
			next.Seats[s].Holder = ""
			left = append(left, s)
		}
	}
	if len(left) == 0 {
		return false
	}
	view := next.situation()
	view.Members = slices.DeleteFunc(view.Members, func(m placement.Member) bool {
		r := n.reach[m.ID]
		return m.ID != n.id && (m.Draining || r != nil && !r.since.IsZero())
	})
	for i := range view.Members { // a holder of its other seats, which count as taken, and no successor
		m := &view.Members[i]
		m.Draining = m.Draining || m.ID == n.id
	}
	successors := n.planner.Successors(now, view)
	for _, s := range left {
		if successors[s] != n.id {
			next.Seats[s].Holder = successors[s]
		}
	}
	return true
}

// plan returns the table as this server wants it, and whether more than its beat is different; handed, whether it
// leaves seats to others, its own or those of a member that is gone.
func (n *Node) plan(t *table, now time.Time) (next *table, handed, changed bool) {
	next = t.clone()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range t.Members {
		why := ""
		switch r := n.reach[m.ID]; {
		case m.ID == n.id:
			continue
		case now.Sub(n.seen[m.ID].at) >= n.cfg.TTL:
			why = "it is silent"
		case !now.Before(n.lostAt(m.ID)):
			why = "it is silent, and does not answer"
		case r != nil && r.gone:
			why = "it refuses connections"
		case !n.joined && m.HTTP == n.cfg.Me.HTTP:
			why = "this server has its address" // and listens there, so that one has ended
		default:
			continue
		}
		n.cfg.Logger.Info("a server is gone: its shards are free", "http", m.HTTP, "why", why, "silent",
			now.Sub(n.seen[m.ID].at))
		next.remove(m.ID)
		handed = true
	}
	handed = n.hand(next, now) || handed
	changed = handed
	if n.draining && n.nothing() {
		if next.member(n.id) == nil {
			return next, handed, changed
		}
		next.remove(n.id)
		return next, handed, true
	}
	me := next.member(n.id)
	if me == nil {
		if len(next.Members) >= maxTableMembers {
			n.cfg.Logger.Error("the cluster has its greatest number of servers: this one stands by", "servers", maxTableMembers)
			return next, handed, changed
		}
		m := n.cfg.Me
		m.ID = n.id
		next.Members = append(next.Members, m)
		me, changed = &next.Members[len(next.Members)-1], true
	}
	if marks := n.marks(now); !slices.Equal(me.Unreached, marks) {
		me.Unreached, changed = marks, true
	}
	cut := next.cutOff(n.id)
	if cut && !me.Draining {
		n.cfg.Logger.Warn("most other servers do not reach this one: it leaves its shards to them", "http", me.HTTP)
	}
	if draining := n.draining || me.Evacuate || cut; me.Draining != draining {
		me.Draining, changed = draining, true
	}
	for s := range n.shards {
		seat, l := &next.Seats[s], &n.shards[s]
		switch {
		case seat.Holder == n.id && l.phase == failed:
			seat.Holder, changed = "", true
		case seat.Holder == "" && (l.phase == owned || l.phase == taking):
			// This server was silent for too long, and no other one has taken its place.
			seat.Holder, changed = n.id, true
		}
	}
	decision := n.planner.Step(now, next.situation())
	if me.Resting != decision.Resting {
		me.Resting, changed = decision.Resting, true
	}
	for _, s := range decision.Take {
		l := &n.shards[s]
		if l.phase == failed || l.phase == leaving {
			continue
		}
		next.Seats[s].Holder, changed = n.id, true
	}
	for s := range n.shards {
		needs := n.cfg.Writes
		if concerns(n.directory, s) {
			needs = max(needs, n.cfg.Me.Reads)
		}
		if seat := &next.Seats[s]; seat.Holder == n.id && seat.Needs < needs {
			seat.Needs, changed = needs, true
		}
		if n.shards[s].phase == owned && (cut || decision.Give == s) {
			n.leave(s)
		}
	}
	return next, handed, changed
}

// adopt acts on a table that is stored.
func (n *Node) adopt(t *table) {
	n.mu.Lock()
	n.table = t
	n.joined = n.joined || t.member(n.id) != nil
	for s := range n.shards {
		l, mine := &n.shards[s], t.Seats[s].Holder == n.id
		switch {
		case mine && l.phase == idle && !n.draining:
			n.take(s)
		case !mine && l.phase == taking:
			l.stop()
		case !mine && l.phase == owned && t.Seats[s].Holder != "":
			n.cfg.Logger.Warn("another server has the seat of a shard", "shard", s)
			n.abandon(s, errors.New("another server has the seat"))
		case !mine && l.phase == failed && !time.Now().Before(l.until):
			l.phase = idle
		}
	}
	n.follow()
	gone := n.draining && n.nothing() && t.member(n.id) == nil
	n.mu.Unlock()
	n.show(t)
	if gone {
		n.closeLeft()
	}
}

// nothing needs mu. It reports whether this server does nothing about any shard.
func (n *Node) nothing() bool {
	for s := range n.shards {
		if p := n.shards[s].phase; p != idle && p != failed {
			return false
		}
	}
	return true
}

func (n *Node) fatal() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.shards) == 1 && n.shards[0].phase == failed && n.cfg.Fatal(n.shards[0].err) {
		return n.shards[0].err
	}
	return nil
}

func (n *Node) ring() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *Node) closeLeft() {
	select {
	case <-n.left:
	default:
		close(n.left)
	}
}

// take needs mu. It opens a shard.
func (n *Node) take(s int) {
	ctx, stop := context.WithCancel(n.life)
	n.shards[s] = local{phase: taking, stop: stop}
	go func() {
		defer stop()
		defer n.ring()
		var got Owned
		err := error(nil)
		select {
		case n.opening <- struct{}{}:
			got, err = n.cfg.Open(ctx, s)
			<-n.opening
		case <-ctx.Done():
			err = ctx.Err()
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		l := &n.shards[s]
		if err != nil {
			n.fail(s, fmt.Errorf("opening: %w", err), err)
			return
		}
		l.phase, l.owned, l.unsettled = owned, got, true
		if n.draining {
			n.leave(s)
			return
		}
		watched, unwatch := context.WithCancel(n.life)
		l.stop = unwatch
		go n.watch(watched, s, got)
	}()
}

// watch abandons a shard when it fails.
func (n *Node) watch(ctx context.Context, s int, o Owned) {
	select {
	case <-o.Failed():
	case <-ctx.Done():
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := &n.shards[s]; l.phase == owned && l.owned == o {
		n.abandon(s, o.Err())
	}
}

// fail needs mu. It leaves a shard to others for a while.
func (n *Node) fail(s int, logged, err error) {
	wait := retryAfter
	if n.cfg.Fatal(err) {
		wait = fatalAfter
	}
	n.shards[s] = local{phase: failed, err: err, until: time.Now().Add(wait)}
	if !errors.Is(err, context.Canceled) {
		n.cfg.Logger.Warn("this server does not own a shard", "shard", s, "error", logged)
	}
}

// abandon needs mu.
func (n *Node) abandon(s int, why error) {
	o := n.shards[s].owned
	n.shards[s].stop()
	n.shards[s] = local{phase: leaving}
	go func() {
		defer n.ring()
		ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
		defer cancel()
		o.Abandon(ctx)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.fail(s, why, why)
	}()
}

// endTimeout bounds how long a shard is drained and closed.
const endTimeout = 5 * time.Second

// leave needs mu. It leaves a shard to others in order.
func (n *Node) leave(s int) {
	o := n.shards[s].owned
	n.shards[s].stop()
	n.shards[s] = local{phase: leaving, owned: o}
	go func() {
		defer n.ring()
		ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
		defer cancel()
		o.Leave(ctx)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.shards[s] = local{phase: failed, until: time.Now().Add(n.cfg.TTL)}
	}()
}

// Drain leaves all shards at once, tells the others, and returns when this server has left the table or ctx
// ends. Run must be running.
func (n *Node) Drain(ctx context.Context) error {
	n.mu.Lock()
	n.draining = true
	for s := range n.shards {
		switch l := &n.shards[s]; l.phase {
		case owned:
			n.leave(s)
		case taking:
			l.stop()
		}
	}
	n.mu.Unlock()
	n.ring()
	select {
	case <-n.left:
		n.waking.Wait()
		return nil
	case <-n.life.Done():
		return errors.New("cluster: the node has ended")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// show publishes the view.
func (n *Node) show(t *table) {
	v := &View{
		Me: n.id, Address: n.cfg.Me.HTTP, Members: t.Members, Unreached: map[string]time.Time{},
		seen: map[string]time.Time{n.id: n.beatAt}, late: 2 * beatEvery(n.cfg.TTL),
	}
	for id, s := range n.seen {
		if id != n.id {
			v.seen[id] = s.at
		}
	}
	n.mu.Lock()
	for id, r := range n.reach {
		if !r.since.IsZero() {
			v.Unreached[id] = r.since
		}
	}
	v.Directory = n.directory
	v.Holders, v.Owned = make([]*Member, v.Directory.All()), make([]Owned, v.Directory.All())
	for s := range t.Seats {
		v.Holders[s] = t.member(t.Seats[s].Holder)
		if l := &n.shards[s]; l.phase == owned || l.phase == leaving {
			v.Owned[s] = l.owned
		}
	}
	n.mu.Unlock()
	n.view.Store(v)
	n.cfg.Changed(v)
}
