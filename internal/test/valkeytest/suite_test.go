package valkeytest

import (
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/internal/test/redisserver"
	"github.com/interlockdev/interlock/internal/test/remotetest"
	"github.com/interlockdev/interlock/internal/test/scenariotest"
)

func TestMain(m *testing.M) { scenariotest.Main(m) }

// group is a primary and its replicas.
type group struct {
	primary  *redisserver.Server
	replicas []*redisserver.Server
}

// begin starts a primary and some replicas, which have what it has.
func begin(t testing.TB, k redisserver.Kind, replicas int) *group {
	t.Helper()
	g := &group{primary: redisserver.Start(t, k, redisserver.Durable...)}
	for range replicas {
		r := g.primary.Replica(t, redisserver.Durable...)
		r.Caught(t, g.primary)
		g.replicas = append(g.replicas, r)
	}
	return g
}

// pair is what most tests run over: each write is synced by two servers.
func pair(t testing.TB) *group { return begin(t, redisserver.Valkey, 1) }

// Kind implements remotetest.Engine.
func (g *group) Kind() string { return "redis" }

// URL implements remotetest.Engine.
func (g *group) URL(name string) string { return g.primary.URL(name, g.replicas...) }

// Cable implements remotetest.Engine.
func (g *group) Cable(t testing.TB, name string) (url string, cable remotetest.Cable) {
	var hosts []string
	for _, s := range append([]*redisserver.Server{g.primary}, g.replicas...) {
		p := remotetest.NewProxy(t, "127.0.0.1", s.Addr)
		cable = append(cable, p)
		hosts = append(hosts, p.Addr)
	}
	return "redis://" + strings.Join(hosts, ",") + "/0?journal=" + name, cable
}

// failOver kills the primary, promotes a replica, and lets the primary follow it.
func (g *group) failOver(t testing.TB) {
	old, next := g.primary, g.replicas[0]
	old.Stop(t, syscall.SIGKILL)
	next.Promote(t)
	old.Restart(t, next.ReplicaOf()...)
	old.Caught(t, next)
	g.primary, g.replicas[0] = next, old
}

// Most tests wait for most of their time, so some run at once.
func at(t *testing.T, g *group, test func(*testing.T, remotetest.Engine)) {
	t.Parallel()
	test(t, g)
}

func TestFailOver(t *testing.T)            { at(t, pair(t), remotetest.FailOver) }
func TestHandOver(t *testing.T)            { at(t, begin(t, redisserver.Redis, 0), remotetest.HandOver) }
func TestCutOff(t *testing.T)              { at(t, pair(t), remotetest.CutOff) }
func TestPausedOwnerIsSilent(t *testing.T) { at(t, pair(t), remotetest.PausedOwnerIsSilent) }
func TestCommandsOutliveTheirServer(t *testing.T) {
	at(t, pair(t), remotetest.CommandsOutliveTheirServer)
}
func TestHistoryOfFailOvers(t *testing.T) { at(t, pair(t), remotetest.HistoryOfFailOvers) }
func TestScenariosOfFailOver(t *testing.T) {
	at(t, pair(t), remotetest.ScenariosOfFailOver)
}
func TestHistoryOfLibraries(t *testing.T) { at(t, pair(t), remotetest.HistoryOfLibraries) }
func TestMigrate(t *testing.T)            { at(t, pair(t), remotetest.Migrate) }
func TestBackup(t *testing.T)             { at(t, pair(t), remotetest.Backup) }

// With and without a replica.
func TestLatencyOfAcquire(t *testing.T) {
	t.Run("Alone", func(t *testing.T) { remotetest.LatencyOfAcquire(t, begin(t, redisserver.Valkey, 0)) })
	t.Run("Replica", func(t *testing.T) { remotetest.LatencyOfAcquire(t, pair(t)) })
}
