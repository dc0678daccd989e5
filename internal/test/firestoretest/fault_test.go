package firestoretest

import (
	"testing"

	"github.com/interlockdev/interlock/internal/test/remotetest"
	"github.com/interlockdev/interlock/journal/remote"
)

// flaky is the emulator by way of a proxy that lets requests fail.
type flaky struct {
	*suite
	proxy *remotetest.HTTPProxy
}

func beginFlaky(t testing.TB) *flaky {
	t.Helper()
	s := begin(t)
	return &flaky{s, remotetest.NewHTTPProxy(t, s.addr)}
}

// URL implements remotetest.Engine.
func (p *flaky) URL(name string) string { return p.at(name, p.proxy.Addr) }

func TestJournalOfFaults(t *testing.T) {
	t.Parallel()
	s := begin(t)
	remotetest.JournalOfFaults(t, s.addr, func(name, proxy string) *remote.Store { return connect(t, s.at(name, proxy)) })
}

func TestHistoryOfFaults(t *testing.T) {
	p := beginFlaky(t)
	remotetest.HistoryOfFaults(t, p, p.proxy.Faults())
}
