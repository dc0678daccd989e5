package remotetest

import (
	"strings"
	"sync"
	"testing"

	"github.com/interlockdev/interlock/internal/test/scenariotest"
)

// ScenariosOfFailOver lets two servers over one journal lose the active one while clients of every library hold leases,
// wait and write.
func ScenariosOfFailOver(t *testing.T, e Engine) {
	scenariotest.Run(t, "clients/scenarios/failover", func(t *testing.T) scenariotest.Servers {
		return servePair(t, e.URL(strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())))
	})
}

// HistoryOfLibraries lets clients of every library compete while one server after the other takes over.
func HistoryOfLibraries(t *testing.T, e Engine) {
	scenariotest.History(t, servePair(t, e.URL("libraries")))
}

func servePair(t *testing.T, at string) *pair {
	active, standby := serveTwo(t, at, at)
	return &pair{servers: [2]*Instance{active, standby}}
}

// pair is two servers over one journal.
type pair struct {
	servers [2]*Instance

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
		p.servers[p.active].Becomes("ready")
		p.moving = false
	}
	return p.active
}

func (p *pair) Kill() int {
	killed := p.Active()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.servers[killed].Kill()
	p.active, p.moving = 1-killed, true
	return killed
}

func (p *pair) Start() {
	stopped := p.servers[1-p.Active()]
	stopped.Start()
	stopped.Becomes("standby")
}
