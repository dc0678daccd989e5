package etcdtest

import (
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/remotetest"
	"github.com/interlockdev/interlock/journal/remote"
)

// What all engines have in common.
func TestFailOver(t *testing.T)            { remotetest.FailOver(t, startCluster(t)) }
func TestHandOver(t *testing.T)            { remotetest.HandOver(t, startCluster(t)) }
func TestCutFromEtcd(t *testing.T)         { remotetest.CutOff(t, startCluster(t)) }
func TestPausedOwnerIsSilent(t *testing.T) { remotetest.PausedOwnerIsSilent(t, startCluster(t)) }

func TestCommandsOutliveTheirServer(t *testing.T) {
	remotetest.CommandsOutliveTheirServer(t, startCluster(t))
}
func TestHistoryOfFailOvers(t *testing.T)  { remotetest.HistoryOfFailOvers(t, startCluster(t)) }
func TestScenariosOfFailOver(t *testing.T) { remotetest.ScenariosOfFailOver(t, startCluster(t)) }
func TestHistoryOfLibraries(t *testing.T)  { remotetest.HistoryOfLibraries(t, startCluster(t)) }
func TestMigrate(t *testing.T)             { remotetest.Migrate(t, startCluster(t)) }
func TestBackup(t *testing.T)              { remotetest.Backup(t, startCluster(t)) }
func TestLatencyOfAcquire(t *testing.T)    { remotetest.LatencyOfAcquire(t, startCluster(t)) }

// Several that open an empty store at once have epochs of their own.
func TestOpenTogether(t *testing.T) {
	c := startCluster(t)
	at := c.place()
	remotetest.OpenTogether(t, func() *remote.Store { return c.store(at) })
}

func TestShare(t *testing.T) {
	c := startCluster(t)
	at := c.place()
	remotetest.Share(t, func() *remote.Store { return c.store(at) })
}

func TestSeed(t *testing.T) {
	c := startCluster(t)
	remotetest.Seed(t, c.store(c.place()))
}

// Kind implements remotetest.Engine.
func (c *cluster) Kind() string { return "etcd" }

// URL implements remotetest.Engine.
func (c *cluster) URL(name string) string { return c.url(name) }

// Cable implements remotetest.Engine.
func (c *cluster) Cable(t testing.TB, name string) (url string, cable remotetest.Cable) {
	var through []string
	for _, m := range c.members {
		p := remotetest.NewProxy(t, "127.0.0.1", m.client)
		cable = append(cable, p)
		through = append(through, p.Addr)
	}
	return c.url(name, through...), cable
}

// url is the journal's at a place, by way of these endpoints or, with none, the
// members themselves.
func (c *cluster) url(name string, endpoints ...string) string {
	if len(endpoints) == 0 {
		endpoints = c.endpoints()
	}
	return "etcd://" + strings.Join(endpoints, ",") + "/" + name
}
