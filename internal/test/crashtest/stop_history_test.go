package crashtest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/history"
	"github.com/interlockdev/interlock/internal/test/history/traffic"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// asZombie makes the test's own binary a client: its value is the server's address and when
// the history began.
const asZombie = "INTERLOCK_TEST_ZOMBIE"

// zombie is the main function of that client.
func zombie() {
	address, text, _ := strings.Cut(os.Getenv(asZombie), " ")
	began, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		err = traffic.Zombie(context.Background(), address, time.Unix(0, began), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A server that stands still for longer than its leases live comes back to clients that
// have waited, and ends nothing too early. A client that stands still while it holds a
// lease comes back to find all its writes refused.
func TestHistoryOfStops(t *testing.T) {
	t.Parallel()
	server := launchtest.Start(t, launch.Config{DataDir: t.TempDir()})
	site := &traffic.Site{}
	site.Move(server.HTTP)
	p := begin(t, site, 3)
	z := p.wake(server.HTTP)
	heir := traffic.NewClient("heir", site, p.record, 3)
	servers := 0
	for p.ctx.Err() == nil {
		z.stopAndGoOn(heir)
		if !p.during(100 * time.Millisecond) {
			break
		}
		p.signal(server.Signal(launch.Stop))
		p.during(interlock.MinTTL + interlock.MinTTL/2)
		p.signal(server.Signal(launch.Continue))
		servers++
		p.during(100 * time.Millisecond)
	}
	z.end()
	p.end()
	p.fault("sigstop", servers+z.stops)
	if z.stops == 0 || int(z.refused.Load()) < z.stops {
		t.Errorf("the client was stopped %d times, and refused afterwards %d times", z.stops, z.refused.Load())
	}
	t.Logf(
		"the server was stopped %d times, a client %d times, which was refused %d times", servers, z.stops, z.refused.Load(),
	)
}

func (p *play) signal(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// sleeper is a client process that is stopped now and then.
type sleeper struct {
	*play
	cmd     *exec.Cmd
	done    chan error
	stops   int
	refused atomic.Int64
	wrote   chan struct{} // tells of each write that was carried out
	denied  chan struct{} // and of each one that was refused
}

// wake starts the client process.
func (p *play) wake(address string) *sleeper {
	p.Helper()
	self, err := os.Executable()
	if err != nil {
		p.Fatal(err)
	}
	z := &sleeper{
		play: p, cmd: exec.Command(self), done: make(chan error, 1), wrote: make(chan struct{}, 1),
		denied: make(chan struct{}, 1),
	}
	z.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", asZombie, address, p.record.Began().UnixNano()))
	z.cmd.Stderr = os.Stderr
	z.cmd.SysProcAttr = launch.Attributes()
	out, err := z.cmd.StdoutPipe()
	if err != nil {
		p.Fatal(err)
	}
	if err := z.cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = z.cmd.Process.Kill() })
	go func() { z.done <- p.record.Follow(bufio.NewReader(out), z.see) }()
	return z
}

// see is shown each of its operations.
func (z *sleeper) see(op *history.Op) {
	tell := func(to chan struct{}) {
		select {
		case to <- struct{}{}:
		default:
		}
	}
	switch {
	case op.Open():
	case op.Kind == history.Commit && op.OK():
		tell(z.wrote)
	case traffic.Refused(op):
		z.refused.Add(1)
		tell(z.denied)
	}
}

// stopAndGoOn stops the client while it holds its lease and writes, until another client has
// got the key and written to it, and waits for the stopped one to be refused.
func (z *sleeper) stopAndGoOn(heir *traffic.Client) {
	z.Helper()
	drain(z.wrote)
	if !z.await(z.wrote, "the client to write") {
		return
	}
	z.signal(z.cmd.Process.Signal(launch.Stop))
	for ok := false; !ok; {
		var err error
		if ok, err = traffic.Succeed(z.Context(), heir); err != nil {
			z.Fatal(err)
		}
	}
	drain(z.denied)
	z.signal(z.cmd.Process.Signal(launch.Continue))
	z.await(z.denied, "the client to be refused")
	z.stops++
}

func (z *sleeper) await(event <-chan struct{}, what string) bool {
	z.Helper()
	select {
	case <-event:
		return true
	case err := <-z.done:
		z.Fatalf("the client process has ended: %v", err)
	case <-time.After(busy.Patience()):
		z.Fatalf("waited in vain for %s", what)
	}
	return false
}

func drain(events chan struct{}) {
	select {
	case <-events:
	default:
	}
}

// end ends the client process and takes over the rest of its history.
func (z *sleeper) end() {
	z.Helper()
	_ = z.cmd.Process.Kill()
	if err := <-z.done; err != nil {
		z.Error(err)
	}
	_ = z.cmd.Wait()
}
