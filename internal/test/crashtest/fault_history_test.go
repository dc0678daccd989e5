package crashtest

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/history"
	"github.com/interlockdev/interlock/internal/test/history/traffic"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

var historyTime = flag.Duration("history", 20*time.Second, "how long the agents of each history work")

// play is agents at work while something is done to the server, and their history.
type play struct {
	*testing.T
	site   *traffic.Site
	record *history.Recorder
	crowd  *traffic.Crowd
	random *rand.Rand
	ctx    context.Context // ends when the agents have worked for long enough
}

// begin sets agents to work at a site where a server is.
func begin(t *testing.T, site *traffic.Site, seed uint64) *play {
	t.Helper()
	p := &play{T: t, site: site, record: history.NewRecorder(), random: rand.New(rand.NewPCG(seed, 3))}
	crowd, err := traffic.Start(t.Context(), site, p.record, seed, traffic.Full)
	if err != nil {
		t.Fatal(err)
	}
	p.crowd = crowd
	ctx, cancel := context.WithTimeout(t.Context(), *historyTime)
	t.Cleanup(cancel)
	p.ctx = ctx
	return p
}

// end lets the agents come to an end, with a server that is well, and checks their history.
func (p *play) end() {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	if err := p.crowd.Stop(ctx); err != nil {
		p.Error(err)
	}
	p.record.Verify(p)
}

// during lets the agents work for a while. It reports whether the play continues.
func (p *play) during(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ctx.Done():
		return false
	}
}

// worked lets the agents begin so many operations more. It reports whether the play continues.
func (p *play) worked(n int) bool {
	enough := p.record.After(n)
	select {
	case <-enough:
		return true
	case <-p.ctx.Done():
		return false
	}
}

// fault counts n faults of a kind.
func (p *play) fault(kind string, n int) {
	p.Helper()
	p.Attr("count.faults."+kind, fmt.Sprint(n))
	if n == 0 {
		p.Errorf("nothing was done: %s", kind)
	}
}

// The server is killed in the middle of everything, again and again, with small files and
// with usual ones.
func TestHistoryOfKills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := launchtest.Start(t, launch.Config{DataDir: dir})
	site := &traffic.Site{}
	site.Move(server.HTTP)
	p := begin(t, site, 1)
	kills := 0
	for p.worked(1+p.random.IntN(200)) || kills < cycles {
		server.Kill()
		kills++
		cfg := launch.Config{DataDir: dir}
		if kills%4 != 0 {
			cfg.Args = tiny
		}
		server = launchtest.Start(t, cfg)
		site.Move(server.HTTP)
	}
	p.end()
	p.fault("kill9", kills)
	t.Attr("count.crash_recoveries", fmt.Sprint(kills))
}

// Connections are cut at any byte, and requests arrive twice.
func TestHistoryOfBrokenConnections(t *testing.T) {
	t.Parallel()
	server := launchtest.Start(t, launch.Config{DataDir: t.TempDir()})
	proxy, err := traffic.NewProxy(server.HTTP, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	site := &traffic.Site{Doubled: true}
	site.Move(proxy.Address())
	p := begin(t, site, 2)
	<-p.ctx.Done()
	proxy.Calm()
	p.end()
	p.fault("proxy_cut", int(proxy.Cuts.Load()))
	p.fault("proxy_duplicate", int(proxy.Doubles.Load()))
}
