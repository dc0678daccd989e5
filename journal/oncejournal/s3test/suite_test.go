package s3test

import (
	"testing"

	"github.com/interlockdev/interlock/internal/test/remotetest"
)

func TestFailOver(t *testing.T)            { remotetest.FailOver(t, onDisk(t)) }
func TestHandOver(t *testing.T)            { remotetest.HandOver(t, onDisk(t)) }
func TestPausedOwnerIsSilent(t *testing.T) { remotetest.PausedOwnerIsSilent(t, onDisk(t)) }
func TestHistoryOfFailOvers(t *testing.T)  { remotetest.HistoryOfFailOvers(t, onDisk(t)) }
func TestHistoryOfLibraries(t *testing.T)  { remotetest.HistoryOfLibraries(t, onDisk(t)) }
func TestMigrate(t *testing.T)             { remotetest.Migrate(t, onDisk(t)) }
func TestBackup(t *testing.T)              { remotetest.Backup(t, onDisk(t)) }
func TestLatencyOfAcquire(t *testing.T)    { remotetest.LatencyOfAcquire(t, onDisk(t)) }

// These wait for most of their time.

func TestCutOff(t *testing.T) {
	t.Parallel()
	remotetest.CutOff(t, onDisk(t))
}

func TestCommandsOutliveTheirServer(t *testing.T) {
	t.Parallel()
	remotetest.CommandsOutliveTheirServer(t, onDisk(t))
}

// flaky is a gateway by way of a proxy that lets requests fail.
type flaky struct {
	*gateway
	proxy *remotetest.HTTPProxy
}

// URL implements remotetest.Engine.
func (p *flaky) URL(name string) string { return p.at(name, p.proxy.Addr) }

// Requests fail in all ways, and the service is killed and started again, under agents at work.
func TestHistoryOfFaults(t *testing.T) {
	g := newGateway(t)
	p := &flaky{g, remotetest.NewHTTPProxy(t, g.addr)}
	faults := p.proxy.Faults()
	faults["kill9"] = func() { g.restart(t) }
	remotetest.HistoryOfFaults(t, p, faults)
}
