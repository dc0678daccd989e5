package engine_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

var update = flag.Bool("update", false, "write what the engine does into the scripts")

// TestScripts runs the scripts in testdata/<feature>/*.txt, which are the
// engine's specification. A script is a row of commands; below each group of
// commands and a line of dashes stands what must come of it. Blank lines
// separate groups, and '#' begins a comment.
//
// The commands and their words:
//
//	acquire key=K [mode=X|S|IX|IS|SIX|permits=N|parties=N|parts=N] [key=K ...] [any] [prefix=P] [divide=range|load] holder=NAME [flow=F] [wait|preempt|skip] [detached]
//	        [ttl=D] [grace=D] [max_hold=D] [stall=D] [lock_delay=D] [max_wait=D] [priority=N] [id=REQUEST] [seq=N] [acked=N] [as_of=VERSION] [documents] [explain] [take_over=NAME]
//	        (NAME gets a session of a day the first time it is used; with session=none it is
//	        anonymous. A mode belongs to the key before it. No grace unless it is given.
//	        explain also shows the blockers.)
//	crowd key=K holder=NAME [session=none]   (asks for K, which is held, under so many ids that older ones leave the window)
//	convert fence=N key=K [mode=M] [key=K ...] [wait|preempt] [detached] [max_wait=D] [id=R] [explain]
//	arrive fence=N [max_wait=D] [detached] [id=R]
//	declare holder=NAME [flow=F] on=AGENT | on_session=NAME [on_flow=F] [encloses] [detached] [max_wait=D] [id=R]
//	release fence=N [note="..."] [outcome=W] [id=R]   renew fence=N [progress=W] [ttl=D] [id=R]   get fence=N
//	poll ticket=tN [detached]   leave ticket=tN
//	        (all of them in the name of the lease's holder, unless as=NAME; as=nobody omits the session)
//	park fence=N [keep|free] [for=D] [reason="..."]
//	resume fence=N holder=NAME [session=none] [flow=F] [wait|preempt] [max_wait=D] [detached] [unapproved] [explain] [id=R]
//	        (fence is the one that the lease had when it was parked)
//	open holder=NAME [agent=NAME] [ttl=D]   close   heartbeat [counts=FENCE,...|none] [lists=FENCE,...|none]
//	attach   detach holder=NAME [link=N] [task=qN] or ticket=tN
//	revoke key=K fence=N [reason=W]   requestyield key=K fence=N [reason=W]   check key=K fence=N
//	advance D     time passes, with a Tick at every timer on the way
//	pass D        time passes, and no Tick yet
//	tick          one Tick
//	recover [down=D] [jump=N]   the process dies; another one replays the journal
//	snapshot      one is taken; the next recover starts from it
//	limit draining|low_space [kept]|low_memory|none
//	pattern name=N shape=S [alias=S ...] [member=K ...] [capacity=N] [rate=N per=D burst=N]
//	        [group=NAME:MIN:MAX ...] [ttl=D] [max_ttl=D] [grace=D] ... [allow=WHO:MODE,MODE ...]
//	        [preempt=ask|revoke|never] [park=choice|keep|free|never] [on_deadlock=refuse|revoke]
//	        [write=open|version|lease|single-writer] [writer=P | writer_queue=Q] [audit_refusals]
//	drop pattern=N     settings [strict_order] [closed] [near_misses] [effect_retention=D] [keys=N] [leases=N] ... [each_leases=N] ...
//	commit holder=NAME [session=none] [flow=F] [read=K@VERSION ...] [absent=K ...] [as_of=VERSION] [fence=N ...] [note="..."] [id=R]
//	        [put=K=BODY [type=T]] [delete=K] [merge=K=PATCH] [add=K=N [min=N] [max=N]] ...   (fence names a lease)
//	show doc=K [doc=K ...] | doc=K version=V | versions=K | docs [prefix=P] [after=K] [limit=N] [values]
//	claim action=A holder=NAME [flow=F] [session=none] | fence=N [ttl=D] [actor=P] [id=R]
//	        (sets out to do A, in the name of the lease with fence=N; its claimer knows it as e1, e2, ...)
//	settle effect=eN | action=A [done [result=JSON] | unknown | undone] [reason="..."] [as=NAME] [id=R]
//	forget [older=D] | action=A
//	show effects [in=STATE] [limit=N] | contention
//	queue name=Q [paused] [drain] [max_attempts=N] [backoff=D] [max_backoff=D] [ttl=D] [grace=D] [max_hold=D] [stall=D]
//	        [max_running=N] [max_tasks=N] [share=GROUP:WEIGHT:MAX ...] [pull=WHO,...] [submit=WHO,...] [admin=WHO,...] [approvers=WHO,...] [min_approvals=N]
//	        [approval=once|reuse]     drop queue=Q
//	switch queue=Q [paused=yes|no] [drain=yes|no] [id=R]
//	submit queue=Q [key=K [mode=M] ...] | message=K [payload=JSON] [kind=W] [purpose=W] [group=W] [priority=N] [delay=D] [deadline=D]
//	        [max_attempts=N] [backoff=D] [max_backoff=D] [holder=NAME] [session=none] [flow=F] [attach] [id=R]
//	        [ask="..." [limit=D] [on_limit=approved|denied] [read=K@VERSION ...]]     (its task is known as q1, q2, ...)
//	        (flow=qN is the flow in which a worker has that task)
//	ask fence=N question="..." [limit=D] [on_limit=approved|denied] [read=K@VERSION ...] [id=R]
//	answer task=qN|fence=N approved|denied [by=NAME] [reason=W] [actor=P] [id=R]
//	pull queue=Q holder=NAME [session=none] [max=N] [ttl=D] [once]     (without once the worker stays idle until there is a task)
//	ack fence=N [result=JSON] [note=W] [then=QUEUE:KEY ...] [message=K=JSON ...] [read=K@VERSION ...] [put=K=BODY] ... [id=R]
//	nack fence=N [reason=W] [delay=D|now] [dead] [jitter=full|half] [id=R]
//	cancel|replay|reschedule|discard task=qN [delay=D] [reason=W] [id=R]     follow task=qN [holder=NAME [flow=F]] [attach]
//	        (without a flow it is a wait of no flow)
//	show task=qN | tasks [queue=Q] [in=STATE] [on] [limit=N] | approvals [on] [limit=N] | queue=Q
//	start org=O [workflow=W] holder=NAME [session=none] [flow=F] [wait=D] [detached] [ttl=D] [max_hold=D] [priority=N] [id=R] [explain]
//	revert pattern=N [to=REVISION]
//	show runs [org=O] [after=FENCE] [limit=N] | revisions=PATTERN
//	show log=K [from=N] [limit=N] | stuck=K | stuck holder=NAME
//	show key=K | waits | state | keys [prefix=P] | agent=A | hot
//
// Every command takes ns=NAMESPACE, and actor=PRINCIPAL, with the rights listed in
// model_rights_test.go; one that is not listed there has all roles. Names of tickets, t1, t2,
// ..., are assigned in the order in which the script sees them. All times count from its
// beginning.
//
// The model of this package checks every step, too, except in a script with the line
// "unmodelled", which is for features that the model leaves out. With the line "with changed" a
// grant also reports whether a possible writer held a key meanwhile; with "with ends" the
// reasons for the ends of leases are printed.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "testdata/"), ".txt"), func(t *testing.T) {
			runScript(t, file)
		})
	}
}

func runScript(t *testing.T, file string) *script {
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{
		rig: newRig(), actors: map[string]*actor{}, tickets: map[[16]byte]string{}, effects: map[string]interlock.EffectID{},
		leases: map[interlock.Fence]*lease{}, nums: map[uint64]*lease{},
	}
	s.scripted = true
	s.ticked = s.afterTick
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	var fresh bytes.Buffer
	lines := strings.Split(strings.TrimRight(string(old), "\n"), "\n")
	for i := 0; i < len(lines); {
		line := lines[i]
		fresh.WriteString(line + "\n")
		i++
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		switch line {
		case "unmodelled":
			s.blind = true
			continue
		case "with changed":
			s.changed = true
			continue
		case "with ends":
			s.ends = true
			continue
		}
		if line != "----" {
			if err := s.do(line); err != nil {
				t.Fatalf("%s:%d: %s\n%v\nwhat happened so far:\n%s", file, i, line, err, strings.Join(s.trace, "\n"))
			}
			continue
		}
		var want []string
		first := i
		for i < len(lines) && lines[i] != "" {
			want = append(want, lines[i])
			i++
		}
		got := s.lines
		s.lines = nil
		for _, l := range got {
			fresh.WriteString(l + "\n")
		}
		if !*update && strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s:%d: want\n\t%s\ngot\n\t%s", file, first+1, strings.Join(want, "\n\t"), strings.Join(got, "\n\t"))
		}
	}
	if len(s.lines) > 0 {
		t.Errorf("%s: there is no expectation for\n\t%s", file, strings.Join(s.lines, "\n\t"))
	}
	if replayed, err := s.replay(); err != nil {
		t.Errorf("%s: %v", file, err)
	} else if err := s.sameState(replayed); err != nil {
		t.Errorf("%s: %v", file, err)
	}
	if *update && !bytes.Equal(old, fresh.Bytes()) {
		if err := os.WriteFile(file, fresh.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// script is a script as it runs.
type script struct {
	*rig
	lines   []string // what came of the commands since the last expectation
	actors  map[string]*actor
	tickets map[[16]byte]string
	effects map[string]interlock.EffectID
	tasks   []interlock.TaskID // in the order in which the script saw them
	pulled  *engine.Pull       // the last one
	listed  uint64             // how far the last listing of tasks got
	asked   engine.AskedAt     // and that of approvals
	leases  map[interlock.Fence]*lease
	nums    map[uint64]*lease
	changed bool
	ends    bool
	refusal string      // that is in the trail
	crowd   int         // requests for the sake of their ids
	target  engine.Time // of the advance that is under way
}

// actor is a script's user with a session.
type actor struct {
	name string
	ns   interlock.Namespace
	id   interlock.SessionID
	num  uint64
	link uint64

	public string // name of the session
}

// lease is a request with the names that the script uses for it.
type lease struct {
	id     [16]byte
	ns     interlock.Namespace
	who    string
	actor  *actor
	claims string
	fence  interlock.Fence
}

// words are the arguments of a command.
type words struct {
	list []word
	used map[string]bool
}

type word struct{ key, value string }

func (w *words) get(key string) string {
	w.used[key] = true
	for _, x := range w.list {
		if x.key == key {
			return x.value
		}
	}
	return ""
}

func (w *words) has(key string) bool {
	w.used[key] = true
	for _, x := range w.list {
		if x.key == key {
			return true
		}
	}
	return false
}

// number reads a number; what is missing is 0.
func (w *words) number(key string) int64 {
	text := w.get(key)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(fmt.Errorf("%s: %w", key, err))
	}
	return n
}

func (w *words) duration(key string) time.Duration {
	if w.get(key) == "" {
		return 0
	}
	return parseDuration(w.get(key))
}

func parseDuration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// split reads words separated by spaces; quotes keep spaces.
func split(line string) *words {
	w := &words{used: map[string]bool{}}
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		end := strings.IndexAny(line, " =")
		if end < 0 {
			end = len(line)
		}
		x := word{key: line[:end]}
		line = line[end:]
		if strings.HasPrefix(line, "=") {
			line = line[1:]
			if strings.HasPrefix(line, `"`) {
				quoted, err := strconv.QuotedPrefix(line)
				if err != nil {
					panic(fmt.Errorf("%s: %w", line, err))
				}
				x.value, _ = strconv.Unquote(quoted)
				line = line[len(quoted):]
			} else {
				end := strings.IndexByte(line+" ", ' ')
				x.value, line = line[:end], line[end:]
			}
		}
		w.list = append(w.list, x)
	}
	return w
}

// do carries out one line.
func (s *script) do(line string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if e, ok := p.(error); ok {
				err = e
				return
			}
			panic(p)
		}
	}()
	w := split(line)
	name := w.list[0].key
	w.list = w.list[1:]
	switch name {
	case "acquire":
		err = s.acquire(w)
	case "crowd":
		for i := range engine.NamespaceIDs + 1 {
			c := &engine.Acquire{
				Head: s.head(w), ID: s.id(), LeaseRequest: interlock.LeaseRequest{
					Claims: []interlock.Claim{{Key: interlock.Key(w.get("key")), Mode: interlock.Exclusive}},
				},
			}
			s.asker(&c.Head, &c.Agent, w)
			s.crowd++
			c.RequestID = fmt.Sprintf("crowd %d %d", s.crowd, i)
			err = cmp.Or(err, s.step(c))
		}
	case "forget":
		c := &engine.ForgetEffects{Head: s.head(w), OlderThan: w.duration("older")}
		if w.has("action") {
			c.One, c.Digest = true, sha256.Sum256([]byte(w.get("action")))
		}
		err = s.tell(c)
	case "convert":
		err = s.convert(w)
	case "arrive":
		head, id := s.byFence(w)
		err = s.tellMore(
			&engine.Arrive{Head: head, Lease: id, ID: s.id(), MaxWait: w.duration("max_wait"), Attach: !w.has("detached")}, w,
		)
	case "declare":
		err = s.declare(w)
	case "open":
		err = s.open(w)
	case "close":
		err = s.tell(&engine.CloseSession{Head: s.actorHead(w)})
	case "heartbeat":
		err = s.tell(&engine.Heartbeat{Head: s.actorHead(w), Progress: w.get("progress"), Known: s.known(w)})
	case "attach":
		head := s.actorHead(w)
		head.From = &listener{pushed + w.get("holder")}
		err = s.tell(&engine.Attach{Head: head})
	case "keepalive":
		head, id := s.byTicket(w)
		head.Session = interlock.SessionID{}
		err = s.tell(&engine.KeepAlive{Head: head, Ticket: id})
	case "detach":
		if w.has("ticket") {
			head, id := s.byTicket(w)
			err = s.tell(&engine.Detach{Head: head, Ticket: id})
		} else if w.has("task") {
			err = s.tell(&engine.Detach{Head: s.actorHead(w), Ticket: interlock.TicketID(s.taskID(w.get("task")))})
		} else {
			err = s.tell(&engine.Detach{Head: s.actorHead(w)})
		}
	case "poll":
		head, id := s.byTicket(w)
		err = s.tellMore(&engine.Poll{Head: head, Ticket: id, Attach: !w.has("detached")}, w)
	case "leave":
		if w.has("fence") { // it crosses the grant
			head, id := s.byFence(w)
			err = s.tell(&engine.Leave{Head: head, Ticket: interlock.TicketID(id)})
			break
		}
		head, id := s.byTicket(w)
		err = s.tell(&engine.Leave{Head: head, Ticket: id})
	case "release":
		head, id := s.byFence(w)
		err = s.tell(&engine.Release{
			Head: head, Lease: id, Outcome: w.get("outcome"), Note: w.get("note"), Run: w.has("run"),
		})
	case "renew":
		head, id := s.byFence(w)
		err = s.tell(&engine.Renew{Head: head, Lease: id, Progress: w.get("progress"), TTL: w.duration("ttl")})
	case "get":
		head, id := s.byFence(w)
		err = s.tell(&engine.GetLease{Head: head, Lease: id})
	case "park":
		head, id := s.byFence(w)
		err = s.tell(&engine.Park{
			Head: head, Lease: id, Free: w.has("free"), Keep: w.has("keep"), For: w.duration("for"), Reason: w.get("reason"),
		})
	case "resume":
		err = s.resume(w)
	case "revoke":
		err = s.tell(&engine.Revoke{
			Head: s.head(w), Key: interlock.Key(w.get("key")), Fence: interlock.Fence(w.number("fence")),
			Reason: w.get("reason"),
		})
	case "requestyield":
		err = s.tell(&engine.RequestYield{
			Head: s.head(w), Key: interlock.Key(w.get("key")), Fence: interlock.Fence(w.number("fence")),
			Reason: w.get("reason"),
		})
	case "check":
		err = s.tell(&engine.CheckFence{
			Head: s.head(w), Key: interlock.Key(w.get("key")), Fence: interlock.Fence(w.number("fence")),
		})
	case "advance", "pass":
		how := everyTimer
		if name == "pass" {
			how = noTick
		}
		d := w.list[0].key
		w.used[d] = true
		s.target = s.now.Add(parseDuration(d))
		err = s.advance(s.target, how)
	case "tick":
		s.target = s.now
		if err = s.step(&engine.Tick{}); err == nil {
			s.afterTick()
		}
	case "snapshot":
		err = s.snap()
	case "recover":
		s.now = s.now.Add(w.duration("down"))
		err = s.restart(uint64(w.number("jump")))
		s.print(nil)
	case "limit":
		err = s.tell(&engine.Limit{
			LowSpace: w.has("low_space"), LowMemory: w.has("low_memory"), Kept: w.has("kept"), Draining: w.has("draining"),
		})
		w.used["none"] = true
	case "commit":
		err = s.commit(w)
	case "claim":
		err = s.claimEffect(w)
	case "settle":
		err = s.settleEffect(w)
	case "show":
		err = s.show(w)
	case "start":
		err = s.startRun(w)
	case "revert":
		err = s.tell(&engine.RevertPattern{Head: s.head(w), Name: w.get("pattern"), Revision: uint64(w.number("to"))})
	case "queue", "switch", "submit", "pull", "ack", "nack", "cancel", "replay", "reschedule", "discard", "follow",
		"unfollow", "ask", "answer":
		err = s.taskCommand(name, w)
	case "webhook", "rotate", "unhook", "delivered":
		err = s.webhookCommand(name, w)
	case "pattern":
		err = s.tell(&engine.SetPattern{Head: s.head(w), Pattern: patternOf(w)})
	case "drop":
		if w.has("queue") {
			err = s.tell(&engine.DropQueue{Head: s.head(w), Name: w.get("queue")})
			break
		}
		err = s.tell(&engine.DropPattern{Head: s.head(w), Name: w.get("pattern")})
	case "delete":
		err = s.tell(&engine.DeleteNamespace{Head: s.head(w), Force: w.has("force")})
	case "settings":
		err = s.tell(&engine.Configure{Head: s.head(w), Settings: settingsOf(w)})
	default:
		return fmt.Errorf("no command %q", name)
	}
	for _, x := range w.list {
		if !w.used[x.key] && err == nil {
			err = fmt.Errorf("%s takes no %q", name, x.key)
		}
	}
	return err
}

// tell carries out a command and writes what came of it.
func (s *script) tell(cmd engine.Command) error {
	err := s.step(cmd)
	s.print(cmd)
	return err
}

// tellMore also writes the blockers, on request.
func (s *script) tellMore(cmd engine.Command, w *words) error {
	err := s.tell(cmd)
	if w.has("explain") {
		for i := range s.last.Effects {
			if c := s.last.Effects[i].Conflict; c != nil {
				s.explain(c)
			}
		}
	}
	return err
}

func (s *script) head(w *words) engine.Head {
	head := engine.Head{
		Namespace: interlock.DefaultNamespace, RequestID: w.get("id"),
		Seq: uint64(w.number("seq")), Acked: uint64(w.number("acked")), Actor: w.get("actor"),
	}
	if w.has("ns") {
		head.Namespace = interlock.Namespace(w.get("ns"))
	}
	head.From = &listener{""}
	return head
}

// actorHead is the head of a command in the name of holder=.
func (s *script) actorHead(w *words) engine.Head {
	head := s.head(w)
	a := s.actor(head.Namespace, w.get("holder"))
	head.Session, head.Link = a.id, a.link
	if w.has("link") {
		head.Link = uint64(w.number("link"))
	}
	head.From = &listener{a.name}
	return head
}

// actor finds the session with a name, or opens it.
func (s *script) actor(ns interlock.Namespace, name string) *actor {
	a := s.actors[string(ns)+" "+name]
	if a == nil {
		a = s.newActor(ns, name)
		if err := s.step(&engine.OpenSession{
			Head: engine.Head{Namespace: ns}, ID: a.id, Agent: name, TTL: 24 * time.Hour,
		}); err != nil {
			panic(err)
		}
		s.meet(a)
	}
	return a
}

func (s *script) newActor(ns interlock.Namespace, name string) *actor {
	if name == "" {
		panic(fmt.Errorf("who? holder= is missing"))
	}
	a := &actor{name: name, ns: ns, id: interlock.SessionID(s.id()), link: uint64(len(s.actors) + 1)}
	s.actors[string(ns)+" "+name] = a
	return a
}

// meet learns the number of a session that the last step opened.
func (s *script) meet(a *actor) {
	for i := range s.last.Events {
		if ev := &s.last.Events[i]; ev.Kind == record.SessionOpened {
			a.num = ev.Session
		}
	}
	for i := range s.last.Effects {
		if e := &s.last.Effects[i]; e.Session.ID == a.id {
			a.public = e.Session.Name
		}
	}
}

func (s *script) open(w *words) error {
	head := s.head(w)
	a := s.newActor(head.Namespace, w.get("holder"))
	head.From = &listener{a.name}
	err := s.step(&engine.OpenSession{Head: head, ID: a.id, Agent: cmp.Or(w.get("agent"), a.name), TTL: w.duration("ttl")})
	s.meet(a)
	s.print(&engine.OpenSession{})
	return err
}

// as sets the session of the actor in the head.
func (s *script) as(head *engine.Head, w *words, l *lease) {
	switch name := w.get("as"); {
	case name == "nobody":
	case name != "":
		head.Session = s.actor(head.Namespace, name).id
	case l.actor != nil:
		head.Session, head.Link = l.actor.id, l.actor.link
	default:
		head.Link = bareLink
	}
	if w.has("link") {
		head.Link = uint64(w.number("link"))
	}
	head.From = &listener{l.who}
	if !w.has("ns") {
		head.Namespace = l.ns
	}
}

// known reads a report of known leases, which lists or counts them.
func (s *script) known(w *words) *interlock.KnownLeases {
	ids := map[[16]byte]bool{}
	known := &interlock.KnownLeases{Listed: w.has("lists")}
	if !known.Listed && !w.has("counts") {
		return nil
	}
	for text := range strings.SplitSeq(w.get("lists")+w.get("counts"), ",") {
		if fence, err := strconv.ParseUint(text, 10, 64); err == nil {
			id := s.leases[interlock.Fence(fence)].id
			ids[id], known.Leases = true, append(known.Leases, interlock.LeaseID(id))
		}
	}
	known.Count, known.Digest = len(ids), *digestOf(ids)
	return known
}

func (s *script) byFence(w *words) (engine.Head, interlock.LeaseID) {
	head := s.head(w)
	l := s.leases[interlock.Fence(w.number("fence"))]
	if w.has("ticket") {
		l = s.named(w.get("ticket"))
	}
	if l == nil {
		l = &lease{id: counted(999_999), ns: head.Namespace, who: "somebody"}
	}
	s.as(&head, w, l)
	return head, interlock.LeaseID(l.id)
}

func (s *script) byTicket(w *words) (engine.Head, interlock.TicketID) {
	head := s.head(w)
	l := s.named(w.get("ticket"))
	if l == nil {
		l = &lease{id: counted(999_999), ns: head.Namespace, who: "somebody"}
	}
	s.as(&head, w, l)
	return head, interlock.TicketID(l.id)
}

func (s *script) named(ticket string) *lease {
	for _, l := range s.nums {
		if s.tickets[l.id] == ticket {
			return l
		}
	}
	return nil
}

// bareLink is the link of those without a session.
const bareLink = 1000

var modes = map[string]interlock.Mode{
	"X": interlock.Exclusive, "S": interlock.Shared, "IX": interlock.IntentExclusive, "IS": interlock.IntentShared,
	"SIX": interlock.SharedIntentExclusive,
}

// resume resumes in the name of holder=, or without a session with session=none.
func (s *script) resume(w *words) error {
	c := &engine.Resume{
		Flow: s.flowIn(w), MaxWait: w.duration("max_wait"), Attach: !w.has("detached"), Unapproved: w.has("unapproved"),
	}
	name := w.get("holder")
	l := s.leases[interlock.Fence(w.number("fence"))]
	if l == nil {
		l = &lease{id: counted(999_999)}
	}
	c.Head, c.Lease = s.head(w), interlock.LeaseID(l.id)
	if w.get("session") == "none" {
		c.Link = bareLink
	} else {
		a := s.actor(c.Namespace, name)
		c.Session, c.Link = a.id, a.link
	}
	c.From = &listener{name}
	switch {
	case w.has("wait"):
		c.OnConflict = interlock.Wait
	case w.has("preempt"):
		c.OnConflict = interlock.Preempt
	}
	return s.tellMore(c, w)
}

func (s *script) acquire(w *words) error {
	c := &engine.Acquire{
		Head: s.head(w), ID: s.id(), LeaseRequest: interlock.LeaseRequest{
			Flow: s.flowIn(w), Purpose: w.get("purpose"),
			Terms: interlock.Terms{
				TTL: w.duration("ttl"), Grace: engine.NoGrace, MaxHold: w.duration("max_hold"), Stall: w.duration("stall"),
				LockDelay: w.duration("lock_delay"), MaxWait: w.duration("max_wait"), Group: w.get("group"),
			},
			Priority:    int(w.number("priority")),
			MaxPosition: int(w.number("max_position")),
			AsOf:        interlock.Version(w.number("as_of")),
			Documents:   w.has("documents"),
			Any:         w.has("any"), Prefix: w.get("prefix"),
		},

		Attach: !w.has("detached"),
	}
	if w.has("take_over") {
		c.TakeOver = s.actor(c.Namespace, w.get("take_over")).id
	}
	if w.has("divide") {
		c.Division, _ = interlock.ParseDivision(w.get("divide"))
	}
	switch {
	case w.has("wait"):
		c.OnConflict = interlock.Wait
	case w.has("preempt"):
		c.OnConflict = interlock.Preempt
	case w.has("skip"):
		c.OnConflict = interlock.Skip
	}
	if w.has("grace") {
		c.Grace = w.duration("grace")
	}
	s.asker(&c.Head, &c.Agent, w)
	var err error
	if c.Claims, err = claimsIn(w); err != nil {
		return err
	}
	return s.tellMore(c, w)
}

// asker sets the calling session and agent to those of holder=.
func (s *script) asker(head *engine.Head, agent *string, w *words) {
	if w.get("session") == "none" {
		*agent = w.get("holder")
		head.Link = bareLink
	} else if w.has("holder") {
		a := s.actor(head.Namespace, w.get("holder"))
		head.Session, head.Link = a.id, a.link
	}
	if w.has("link") {
		head.Link = uint64(w.number("link"))
	}
	head.From = &listener{w.get("holder")}
}

// convert changes what the lease with fence= claims.
func (s *script) convert(w *words) error {
	head, id := s.byFence(w)
	c := &engine.Convert{Head: head, Lease: id, ID: s.id(), MaxWait: w.duration("max_wait"), Attach: !w.has("detached")}
	switch {
	case w.has("wait"):
		c.OnConflict = interlock.Wait
	case w.has("preempt"):
		c.OnConflict = interlock.Preempt
	}
	var err error
	if c.Claims, err = claimsIn(w); err != nil {
		return err
	}
	return s.tellMore(c, w)
}

// declare announces that one flow waits for another.
func (s *script) declare(w *words) error {
	c := &engine.Declare{
		Head: s.head(w), ID: s.id(), Flow: s.flowIn(w), Purpose: w.get("purpose"),
		On: engine.FlowRef{Agent: w.get("on"), Flow: w.get("on_flow")}, MaxWait: w.duration("max_wait"),
		Attach: !w.has("detached"), Encloses: w.has("encloses"),
	}
	if w.has("on_session") {
		c.On.Session = s.actor(c.Namespace, w.get("on_session")).public
	}
	s.asker(&c.Head, &c.Agent, w)
	return s.tell(c)
}

// claimsIn reads the words about keys.
func claimsIn(w *words) (claims []interlock.Claim, err error) {
	for _, x := range w.list {
		switch x.key {
		case "key":
			for _, key := range strings.Split(x.value, ",") {
				claims = append(claims, interlock.Claim{Key: interlock.Key(key)})
			}
		case "mode":
			mode, ok := modes[x.value]
			if !ok {
				n, err := strconv.Atoi(x.value)
				if err != nil {
					return nil, fmt.Errorf("no mode %q", x.value)
				}
				mode = interlock.Mode(n)
			}
			claims[len(claims)-1].Mode = mode
		case "permits":
			claim := &claims[len(claims)-1]
			claim.Mode, claim.Count = interlock.Permits, uint32(parseNumber(x.value))
		case "parties":
			claim := &claims[len(claims)-1]
			claim.Mode, claim.Count = interlock.Barrier, uint32(parseNumber(x.value))
		case "parts":
			claim := &claims[len(claims)-1]
			claim.Mode, claim.Count = interlock.Member, uint32(parseNumber(x.value))
		}
	}
	w.used["key"], w.used["mode"], w.used["permits"], w.used["parties"], w.used["parts"] = true, true, true, true, true
	return claims, nil
}
