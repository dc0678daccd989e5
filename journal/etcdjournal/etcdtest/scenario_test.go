package etcdtest

import (
	"strings"
	"sync"
	"testing"

	"github.com/interlockdev/interlock/internal/test/scenariotest"
)

// Two servers over one journal lose the active one while clients of every library hold leases, wait and write.
func TestScenariosOfFailOver(t *testing.T) {
	c := startCluster(t)
	scenariotest.Run(t, "clients/scenarios/failover", func(t *testing.T) scenariotest.Servers {
		return servePair(t, c.url(strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())))
	})
}

// Clients of every library compete while one server after the other takes over.
func TestHistoryOfLibraries(t *testing.T) {
	c := startCluster(t)
	scenariotest.History(t, servePair(t, c.url("libraries")))
}

func servePair(t *testing.T, at string) *pair {
	active, standby := serveTwo(t, at, at)
	return &pair{servers: [2]*instance{active, standby}}
}

// pair is two servers over one journal.
type pair struct {
	servers [2]*instance

	mu     sync.Mutex
	active int
	moving bool // the other one was killed just now
}

func (p *pair) Addrs() (list []scenariotest.Addr) {
	for _, s := range p.servers {
		list = append(list, scenariotest.Addr{HTTP: s.http, GRPC: s.grpc})
	}
	return list
}

func (p *pair) Active() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.moving {
		p.servers[p.active].becomes("ready")
		p.moving = false
	}
	return p.active
}

func (p *pair) Kill() int {
	killed := p.Active()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.servers[killed].kill()
	p.active, p.moving = 1-killed, true
	return killed
}

func (p *pair) Start() {
	stopped := p.servers[1-p.Active()]
	stopped.start()
	stopped.becomes("standby")
}
