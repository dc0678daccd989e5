package crashtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
)

// crew is all workers of a test and what they know.
type crew struct {
	t       *testing.T
	site    *site
	ledger  *ledger
	workers []*worker
	line    *liner
}

// cyclers is how many workers compete for the shared keys.
const cyclers = 12

func newCrew(t *testing.T, seed uint64, keep int) *crew {
	c := &crew{t: t, site: &site{t: t}, ledger: newLedger(), line: &liner{key: "line/front"}}
	add := func(name string, r role) {
		c.workers = append(c.workers, &worker{
			name: name, site: c.site, ledger: c.ledger, role: r,
			random: rand.New(rand.NewPCG(seed, uint64(len(c.workers)))),
		})
	}
	keys := []string{"shared/a", "shared/b", "shared/c", "shared/d", "shared/e"}
	for i := range cyclers {
		add(fmt.Sprintf("cycler-%d", i), &cycler{keys: keys})
	}
	add("keeper-alone", &keeper{most: keep})
	add("keeper-session", &keeper{most: keep, withSession: true})
	add("liner", c.line)
	return c
}

// settle resolves everything that was open when the last server died, and checks
// that the new one knows all that the old ones acknowledged.
func (c *crew) settle(ctx context.Context, server *launch.Server) {
	c.t.Helper()
	c.site.connect(server.HTTP)
	c.each(func(w *worker) error { return w.settle(ctx) })
	c.ledger.check(ctx, c.t, c.site)
	if err := c.line.check(ctx, c.site); err != nil {
		c.t.Error(err)
	}
	if c.t.Failed() {
		c.t.Fatalf("the server's log ends with:\n%s", server.Log())
	}
}

// work keeps all members busy until the server is gone, and calls then after n
// acknowledgements.
func (c *crew) work(ctx context.Context, server *launch.Server, n int, then func()) {
	c.t.Helper()
	enough := c.site.after(n)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.each(func(w *worker) error { return w.run(ctx) })
	}()
	select {
	case <-enough:
		then()
	case <-server.Ended():
	}
	<-done
	if c.t.Failed() {
		c.t.FailNow()
	}
}

// each runs do for all workers at once.
func (c *crew) each(do func(*worker) error) {
	var all sync.WaitGroup
	for _, w := range c.workers {
		all.Go(func() {
			if err := do(w); err != nil {
				c.t.Error(err)
			}
		})
	}
	all.Wait()
}
