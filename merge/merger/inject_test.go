//go:build unix

package merger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/search"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/proto"
)

// An injector makes one call of a merger fail: of git, or of the server. It counts calls from arm on. A git that
// answers many requests is one call; it fails after some of them.
type injector struct {
	at      int // the number of the call, from 1; 0 for none
	fault   string
	answers int            // of a git that answers requests, before it fails
	code    interlock.Code // of a refusal by the server
	session func()         // ends the session
	head    string         // of the submission that sticks is about

	mu    sync.Mutex
	calls int
	hit   string // the call that has failed
	names []string
}

// The faults of an injector.
const (
	fails   = "fails"   // it ends with an error, and has done nothing
	hangs   = "hangs"   // it never ends by itself
	unknown = "unknown" // it is done, and ends with an error, or its answer is lost
	ends    = "ends"    // the session ends, with the seat
	sticks  = "sticks"  // each git about one submission fails from there on
	breaks  = "breaks"  // each git with this command fails, until the health tells it
)

// count counts a call, and reports whether it fails.
func (in *injector) count(name string) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.calls++
	in.names = append(in.names, name)
	if in.calls != in.at {
		return false
	}
	in.hit = name
	return true
}

// goesOn reports whether a git may fail besides the first one.
func (in *injector) goesOn(command string) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.hit != "" && (in.fault == sticks || in.fault == breaks && strings.HasPrefix(in.hit, "git "+command+" "))
}

// mend ends the fault.
func (in *injector) mend() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.fault == breaks {
		in.fault = "mended"
	}
}

// wrap is git.Repository.Wrap.
func (in *injector) wrap(cmd *exec.Cmd) (done func(), err error) {
	args := cmd.Args[1:]
	if !in.count("git "+strings.Join(args[:min(3, len(args))], " ")) && !in.goesOn(args[0]) {
		return func() {}, nil
	}
	if in.fault == ends {
		in.session()
		return func() {}, nil
	}
	script := map[string]string{
		fails:   "echo 'fatal: injected' >&2; exit 128",
		hangs:   "exec sleep 1000",
		unknown: `"$@"; kill -9 $$`,
		sticks:  `t=$(mktemp); cat >$t; grep -q ` + in.head + ` $t && { echo 'fatal: injected' >&2; exit 128; }; "$@" <$t`,
	}[in.fault]
	first := func(n int) string { return fmt.Sprintf("head -n %d", n) }
	coprocess := slices.Contains(args, "--stdin-paths") || slices.Contains(args, "--batch") ||
		args[0] == "diff-tree" && slices.Contains(args, "--stdin")
	about := slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, in.head) })
	switch {
	case in.fault == sticks && about:
		script = "echo 'fatal: injected' >&2; exit 128"
	case in.fault == breaks:
		script = "echo 'fatal: injected' >&2; exit 128"
	case in.fault == sticks && coprocess:
		script = `while read -r line; do case $line in *` + in.head + `*) exit ;; esac; echo "$line"; done | "$@"`
	case !coprocess:
	case in.fault == fails:
		script = first(in.answers) + ` | "$@"`
	case in.fault == hangs:
		script = "{ " + first(in.answers) + `; exec sleep 1000; } | "$@"`
	case args[0] == "hash-object":
		script = first(in.answers+1) + ` | "$@" | ` + first(in.answers)
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		return nil, err
	}
	cmd.Args = slices.Concat([]string{"sh", "-c", script, "sh", cmd.Path}, args)
	cmd.Path = shell
	return func() {}, nil
}

// link is a link to the server with an injector. Its frames come through a channel, so that it can answer by itself.
type link struct {
	proto.ClientLink
	in      *injector
	refused atomic.Uint64 // the number of a call that is answered by a refusal
	frames  chan proto.ServerFrame
	over    chan struct{} // closed when the link hangs, or has ended
	cut     func()
	failure error // after frames is closed
}

func (in *injector) dial(
	inner func(context.Context, proto.Hello) (proto.ClientLink, error),
) func(context.Context, proto.Hello) (proto.ClientLink, error) {
	return func(ctx context.Context, hello proto.Hello) (proto.ClientLink, error) {
		to, err := inner(ctx, hello)
		if err != nil {
			return nil, err
		}
		l := &link{
			ClientLink: to, in: in, frames: make(chan proto.ServerFrame),
			over: make(chan struct{}),
		}
		l.cut = sync.OnceFunc(func() { close(l.over) })
		go l.receive()
		return l, nil
	}
}

func (l *link) receive() {
	defer close(l.frames)
	for {
		var f proto.ServerFrame
		if l.failure = l.ClientLink.Recv(&f); l.failure != nil {
			return
		}
		for i := range f.Replies {
			if r := &f.Replies[i]; r.Seq != 0 && r.Seq == l.refused.Load() {
				*r = proto.Reply{
					Outcome: proto.Refused, Slot: r.Slot, Seq: r.Seq, Index: r.Index, Code: l.in.code, Message: "injected",
				}
			}
		}
		select {
		case l.frames <- f:
		case <-l.over:
			l.failure = io.ErrUnexpectedEOF
			return
		}
	}
}

func (l *link) Recv(f *proto.ServerFrame) error {
	f.Reset()
	select {
	case <-l.over:
		return io.ErrUnexpectedEOF
	case got, ok := <-l.frames:
		if !ok {
			return l.failure
		}
		*f = got
		return nil
	}
}

func (l *link) Close(reason *interlock.Error) {
	l.cut()
	l.ClientLink.Close(reason)
}

func (l *link) Send(f *proto.ClientFrame) error {
	for i := range f.Ops {
		o := &f.Ops[i]
		switch o.Kind {
		case proto.OpOpen, proto.OpAttach, proto.OpHeartbeat, proto.OpPoll, proto.OpClose:
			continue
		}
		name := fmt.Sprintf("server %v", o.Kind)
		if o.Commit != nil && len(o.Commit.Writes) > 0 {
			name += " " + string(o.Commit.Writes[len(o.Commit.Writes)-1].Key)
		}
		if !l.in.count(name) {
			continue
		}
		switch l.in.fault {
		case fails: // the server does something else, and the answer is replaced
			l.refused.Store(o.Seq)
			*o = proto.Op{Kind: proto.OpListQueues, Slot: o.Slot, Seq: o.Seq, Acked: o.Acked}
		case hangs:
			time.AfterFunc(300*time.Millisecond, func() { l.Close(nil) }) // as the transport does after its own limit
			f.Ops = f.Ops[:i]
		case unknown:
			f.Ops = f.Ops[:i+1]
			err := l.ClientLink.Send(f)
			l.cut()
			return err
		case ends:
			l.in.session()
		}
		break
	}
	if len(f.Ops) == 0 {
		return nil
	}
	return l.ClientLink.Send(f)
}

// ten submits ten submissions that need different things of git, and all land if nothing fails.
func (r *rig) ten(in *injector) map[string]interlock.TaskID {
	r.t.Helper()
	base := r.commit(r.begin, files{"old": "1\n2\n3\n4\n5\n", "gone": "x\n"})
	r.run("update-ref", "refs/heads/main", base)
	tasks := map[string]interlock.TaskID{}
	for i := range 10 {
		s := Submission{ID: fmt.Sprintf("s-%d", i)}
		change := files{fmt.Sprintf("file-%d", i): "1\n"}
		switch i {
		case 2:
			s.Style = merge.StyleSquash
		case 3:
			s.Style, s.Base = merge.StyleSquash, base
		case 4:
			change["old"], change["new"] = "-", "1\n2\n3\n4\n5\n"
		case 5:
			change["gone"] = "-"
		case 6:
			change["migrations/0001_a.sql"] = "x\n"
		case 7:
			s.Workspace = "w"
		case 8:
			s.Message = "its own message"
		}
		s.Head = r.commit(base, change)
		if tasks[s.ID] = r.submit(s); i == 5 {
			in.head = s.Head
		}
	}
	return tasks
}

// within is how long a git may take. It is longer than one takes on a busy machine.
const within = 4 * time.Second

// A run is one merger with an injector, that lands ten submissions in the repository or at a forge.
func injectedRun(t *testing.T, in *injector, remote bool) {
	r := newRig(t)
	r.work(anything)
	tasks := r.ten(in)
	c, err := client.New(t.Context(), in.dial(r.streams.Dial), client.Config{Agent: "merger", SessionTTL: 9 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	in.session = sync.OnceFunc(func() { r.endSession(c.SessionID().String()) })
	config := r.configOf(c, "merger")
	repository := r.git
	repository.Wrap, repository.Guard = in.wrap, Limit(within)
	target := &merge.Target{Repository: repository, Ref: "refs/heads/main"}
	forge := ""
	if remote {
		forge, _ = r.forge("exit 0\n")
		target.Remote = forge
	}
	profile, err := merge.NewProfile(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	b, err := merge.Open(t.Context(), merge.Config{Repository: r.git.Dir, Profile: profile, Wrap: in.wrap})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	in.mu.Lock()
	in.calls, in.names = 0, nil
	in.mu.Unlock()
	config.Boundary, config.Target, config.Files = b, target, &Repository{repository}
	config.Poll, config.LockAge, config.GitWithin = time.Hour, 1, within
	config.commitBytes = 3000 // a landing ends in several commits
	config.Log = slog.New(&told{config.Log.Handler(), r, in})
	stop := r.start(config)
	outcomes := map[string]Outcome{}
	for id, task := range tasks {
		settled, err := r.author.Await(busy.Context(t), task)
		if err != nil {
			t.Fatalf("%s has no outcome: %v", id, err)
		}
		o, err := OutcomeOf(&settled)
		if err != nil {
			t.Fatal(err)
		}
		outcomes[id] = o
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	var landed, back []string
	for _, id := range slices.Sorted(maps.Keys(outcomes)) {
		var record Record
		o := outcomes[id]
		if o.Code == Landed {
			landed = append(landed, id)
		} else if back = append(back, id); o.Code != Returned || o.Words == "" || o.Message == "" {
			t.Errorf("%s: %+v", id, o)
		}
		if _, err := read(t.Context(), r.author, web.RecordKey(id), &record); err != nil {
			t.Fatal(err)
		} else if record.State != o.Code && !(record.State == "" && o.Tries == 0) {
			t.Errorf("the record of %s is %+v, and its outcome %s", id, record, o.Code)
		}
	}
	if len(back) > 1 || len(back) > 0 && in.fault != sticks {
		t.Errorf("%v came back", back)
	}
	got := r.landings()
	if remote {
		got = r.at(forge)
	}
	if got := slices.Sorted(slices.Values(got)); !slices.Equal(got, landed) {
		t.Errorf("landed %v, by the outcomes %v", got, landed)
	}
	if h, err := HealthOf(t.Context(), r.author, web); err != nil || h.Failure != nil || h.Died != 0 {
		t.Errorf("the health is %+v, %v", h, err)
	}
}

// told checks that a failure of the merger is in its health when it begins again. A seat that is lost has none.
type told struct {
	slog.Handler
	r  *rig
	in *injector
}

func (h *told) Handle(ctx context.Context, rec slog.Record) error {
	if rec.Message == "the merger begins again" {
		health, err := HealthOf(context.WithoutCancel(ctx), h.r.author, web)
		if err != nil {
			h.r.t.Error(err)
		}
		rec.Attrs(func(a slog.Attr) bool {
			err, _ := a.Value.Any().(error)
			_, ofGit := errors.AsType[*git.Error](err)
			if ofGit = ofGit || errors.Is(err, errLimit); ofGit && (health.Failure == nil || health.Failure.Message == "") {
				h.r.t.Errorf("the merger begins again after %v, and its health is %+v", err, health)
			}
			return true
		})
		if health.Failure != nil {
			h.in.mend()
		}
	}
	return h.Handler.Handle(ctx, rec)
}

// typical are faults that each run of the tests has, in the own repository or at a forge: of calls that begin so.
var typical = []struct {
	remote      bool
	fault, call string
}{
	{false, hangs, "git for-each-ref"}, // before the seat
	{true, hangs, "git ls-remote"},
	{false, fails, "git rev-list --objects --disk-usage"},
	{false, breaks, "git rev-list --objects --disk-usage"},
	{true, breaks, "git index-pack"},
	{false, sticks, "git rev-list --objects"},
	{false, unknown, "git update-ref"},
	{true, unknown, "git push"},
	{false, ends, "git merge-tree"},
}

// stride takes seeds through all calls in some rounds of a night. It is a prime.
const stride = 211

// TestInjectedFaults has each call that a merger makes, of git and of the server, fail once: with an error, without an
// end, with an effect and no answer, and with the end of the session. All ten submissions land, whatever fails. Where
// each git about one submission fails from some call on, that one may come back with a word. Where each git with one
// command fails, none comes back: the health tells it, and all land when it works again. Nothing lands twice.
func TestInjectedFaults(t *testing.T) {
	faults := []string{fails, hangs, unknown, ends, sticks, breaks}
	codes := []interlock.Code{interlock.CodeInternal, interlock.CodeOverloaded, interlock.CodeNoSpace}
	for _, remote := range []bool{false, true} {
		t.Run(fmt.Sprintf("remote=%v", remote), func(t *testing.T) {
			clean := &injector{}
			if !t.Run("whole", func(t *testing.T) { injectedRun(t, clean, remote) }) {
				return
			}
			t.Logf("a run has %d calls", clean.calls)
			run := func(name string, in *injector) {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					injectedRun(t, in, remote)
					t.Logf("%s: %s", in.fault, in.hit)
				})
			}
			for _, f := range typical {
				at := slices.IndexFunc(clean.names, func(name string) bool { return strings.HasPrefix(name, f.call) })
				if at >= 0 && f.remote == remote && search.Round(t) == 0 {
					run(f.fault+" "+f.call, &injector{at: at + 1, fault: f.fault})
				}
			}
			// The long form has each command of git and each call of the server fail, where it comes first and last.
			if search.Round(t) == 0 && !testing.Short() {
				first, last := map[string]int{}, map[string]int{}
				for i, name := range clean.names {
					f := strings.Fields(name)
					kind := strings.Join(f[:min(2, len(f))], " ")
					if _, ok := first[kind]; !ok {
						first[kind] = i + 1
					}
					last[kind] = i + 1
				}
				for _, kind := range slices.Sorted(maps.Keys(first)) {
					run("first "+kind, &injector{at: first[kind], fault: fails, code: codes[0]})
					if last[kind] != first[kind] {
						run("last "+kind, &injector{at: last[kind], fault: fails, code: codes[0]})
					}
				}
			}
			from, to := search.SeedsOfNight(t, 0, 0, 12, 240)
			for seed := from; seed < to; seed++ {
				run(fmt.Sprintf("seed=%d", seed), &injector{
					at: 1 + int(seed/6*stride)%clean.calls, fault: faults[seed%6],
					answers: int(seed / 6 % 9), code: codes[seed/6%3],
				})
			}
		})
	}
}

// endSession ends the session of a process that was killed, as its ttl would some time later.
func (r *rig) endSession(id string) {
	r.t.Helper()
	w := httptest.NewRecorder()
	r.server.HTTPServer().Handler.ServeHTTP(w, httptest.NewRequest("DELETE", "http://localhost/v1/sessions/"+id, nil))
	if w.Code/100 != 2 {
		r.t.Fatalf("the session %s does not end: %d %s", id, w.Code, w.Body)
	}
}
