package remotetest

import (
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/scenariotest"
)

// ScenariosOfFailOver lets two servers over one journal lose the active one while clients of every library hold leases,
// wait and write.
func ScenariosOfFailOver(t *testing.T, e Engine) {
	scenariotest.Run(t, "clients/scenarios/failover", func(t *testing.T) scenariotest.Servers {
		return servePair(t, e, strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()))
	})
}

// HistoryOfLibraries lets clients of every library compete while all faults come to one server after the other.
func HistoryOfLibraries(t *testing.T, e Engine) {
	p := servePair(t, e, "libraries")
	p.hosts[0].Grant("aside")
	var list []scenariotest.Fault
	for i := range faults {
		f := &faults[i]
		if f.name == "kill9" {
			continue // which the history has by itself
		}
		list = append(list, scenariotest.Fault{Name: f.name, Do: func(work func()) { f.comeTo(t, p.hosts, work) }})
	}
	scenariotest.History(t, p, list...)
}

func servePair(t *testing.T, e Engine, journal string) *pair {
	return &pair{t: t, hosts: serveHosts(t, e, journal)}
}

// pair is two servers over one journal.
type pair struct {
	t      *testing.T
	hosts  [2]*host
	killed *host
}

func (p *pair) Addrs() (list []scenariotest.Addr) {
	for _, h := range p.hosts {
		list = append(list, scenariotest.Addr{HTTP: h.http, GRPC: h.grpc})
	}
	return list
}

func (p *pair) Active() int {
	owner, _ := ownerOf(p.t, p.hosts)
	return p.index(owner)
}

func (p *pair) Kill() int {
	p.killed, _ = ownerOf(p.t, p.hosts)
	p.killed.Kill()
	return p.index(p.killed)
}

func (p *pair) Start() {
	p.killed.Start()
	p.killed.Becomes("standby")
}

func (p *pair) index(h *host) int {
	if h == p.hosts[0] {
		return 0
	}
	return 1
}
