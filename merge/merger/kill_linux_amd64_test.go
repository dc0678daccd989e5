package merger

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/server"
)

// victimAddress and victimRepository tell TestVictim its server and its repository.
const (
	victimAddress    = "INTERLOCK_TEST_VICTIM_ADDRESS"
	victimRepository = "INTERLOCK_TEST_VICTIM_REPOSITORY"
)

var kills = flag.Int("kills", 0, "the `number` of calls at which TestKilledMerger kills; -1: at each")

// TestVictim is the process of a merger that others kill.
func TestVictim(t *testing.T) {
	address := os.Getenv(victimAddress)
	if address == "" {
		return // it was not started by victim
	}
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Config{Addrs: []string{address}, Agent: "victim"})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, git: git.Repository{Dir: os.Getenv(victimRepository), Config: []string{"core.fsync=none"}}}
	config := r.configOf(c, "victim")
	config.Poll = time.Hour // calls without an effect
	m, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("session", c.SessionID(), os.Getpid())
	_ = syscall.Kill(os.Getpid(), syscall.SIGUSR1) // a tracer counts from here on
	if err := m.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// listen opens a port for other processes, and returns the environment of a victim.
func (r *rig) listen() []string {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	s := server.NewStreams(r.server, server.StreamConfig{}).Server()
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	r.t.Cleanup(func() {
		s.Stop()
		<-done
	})
	return []string{victimAddress + "=" + l.Addr().String(), victimRepository + "=" + r.git.Dir}
}

// TestKilledMerger kills a merger's process with SIGKILL at system calls that change something, from the seat to the
// end: in turn alone, so that its git goes on beside the next merger; with its git; and not at all, but it is stopped
// until its session has ended, and goes on beside the next merger. The next merger ends what is there. All outcomes are
// those that they would have been, each submission lands once, and each commit is the function of the records that it
// always is.
func TestKilledMerger(t *testing.T) {
	var calls int
	if !t.Run("whole", func(t *testing.T) { calls = killedRun(t, 0, "") }) {
		return
	}
	t.Logf("a run has %d calls", calls)
	if calls < 100 {
		t.Fatalf("only %d calls were seen", calls)
	}
	kills := *kills
	switch {
	case kills < 0:
		kills = calls
	case kills > 0:
	case testing.Short():
		kills = 6
	default:
		kills = 30
	}
	for i := range kills {
		call := 1 + (2*i+1)*calls/(2*kills)
		t.Run(fmt.Sprintf("call=%d", call), func(t *testing.T) {
			t.Parallel()
			killedRun(t, call, []string{killAlone, killAll, stopAll}[i%3])
		})
	}
}

// killedRun has a merger land two submissions and return a third one, kills it at a call, and has the next one go on.
// It returns how many calls the first one made.
func killedRun(t *testing.T, call int, fault string) (calls int) {
	r := newRig(t)
	r.work(good)
	tasks := []interlock.TaskID{
		r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})}),
		r.submit(Submission{ID: "b", Head: r.commit(r.begin, files{"b": "1\n"})}),
		r.submit(Submission{ID: "c", Head: r.commit(r.begin, files{"a": "2\n"})}),
	}
	victim := trace(t, call, fault, r.listen()...)
	var pid int
	var session string
	if _, err := fmt.Sscan(victim.word("session"), &session, &pid); err != nil {
		t.Fatal(err)
	}
	go victim.watch()
	all := make(chan struct{})
	go func() {
		defer close(all)
		for _, task := range tasks {
			_, _ = r.author.Await(t.Context(), task)
		}
	}()
	select {
	case <-victim.at:
	case <-all: // before that call: the number of calls varies
		_ = syscall.Kill(pid, syscall.SIGKILL)
		<-victim.ended
		fault = ""
	case <-time.After(busy.Patience()):
		t.Fatal("no outcomes, and the victim lives")
	}
	var before Target
	if _, err := read(t.Context(), r.author, web.Key(), &before); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: staged %+v", fault, before.Staged)
	r.endSession(session)
	c := r.config("heir")
	c.LockAge = 1
	asked := make(chan struct{}, 3)
	c.Target = &askedRef{c.Target, asked}
	stop := r.start(c)
	if fault == stopAll {
		select {
		case <-all:
		case <-heard(asked, 3): // the stopped git has the refs locked, and nothing may land before it goes on
		}
		victim.goOn()
		r.result(tasks[0])
		r.result(tasks[1])
		r.result(tasks[2])
		_ = syscall.Kill(pid, syscall.SIGKILL)
		<-victim.ended
	}
	outcomes := make([]Outcome, len(tasks))
	for i, task := range tasks {
		outcomes[i] = r.result(task)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	// The heir may have landed the third one before it had the first.
	states := map[State]int{}
	for _, o := range outcomes {
		states[o.Code]++
		if o.Code == Returned && o.Reason != WhyConflict {
			t.Errorf("%s is returned: %+v", o.Submission, o)
		}
	}
	if states[Landed] != 2 || states[Returned] != 1 || outcomes[1].Code != Landed {
		t.Errorf("the outcomes are %v", states)
	}
	var places []uint64
	var landed []string
	for i, id := range []string{"a", "b", "c"} {
		var record Record
		_, err := read(t.Context(), r.author, web.RecordKey(id), &record)
		if err != nil || record.State != outcomes[i].Code {
			t.Errorf("the record of %s is %+v, %v, and its outcome %+v", id, record, err, outcomes[i])
		}
		places = append(places, record.Place)
		if record.State == Landed {
			landed = append(landed, id)
		}
	}
	if !slices.IsSorted(places) {
		t.Errorf("the places of three submissions are %d", places)
	}
	if got := slices.Sorted(slices.Values(r.landings())); !slices.Equal(got, landed) {
		t.Errorf("landed %v, by the records %v", got, landed)
	}
	r.verify(c, before.Staged)
	return victim.calls
}

// heard returns a channel that is closed after n messages.
func heard(messages <-chan struct{}, n int) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		for range n {
			<-messages
		}
		close(done)
	}()
	return done
}
