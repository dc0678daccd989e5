package pgtest

import (
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/postgrestest"
	"github.com/interlockdev/interlock/internal/test/remotetest"
	"github.com/interlockdev/interlock/internal/test/scenariotest"
)

func TestMain(m *testing.M) { scenariotest.Main(m) }

// database is a database of a server. It syncs its files.
type database struct {
	server *postgrestest.Server
	url    string
}

func start(t testing.TB) *database {
	t.Helper()
	server := postgrestest.Start(t, "-c", "fsync=on")
	return &database{server, server.URL(t)}
}

// Kind implements remotetest.Engine.
func (d *database) Kind() string { return "postgres" }

// URL implements remotetest.Engine.
func (d *database) URL(name string) string { return d.url + "&journal=" + name }

// Cable implements remotetest.Engine.
func (d *database) Cable(t testing.TB, name string) (url string, cable remotetest.Cable) {
	p := remotetest.NewProxy(t, "127.0.0.1", d.server.Socket())
	return d.by(p, name), remotetest.Cable{p}
}

// by returns the URL of a journal by way of a proxy.
func (d *database) by(p *remotetest.Proxy, name string) string {
	host, port, _ := strings.Cut(p.Addr, ":")
	base, _, _ := strings.Cut(d.url, "?")
	return base + "?host=" + host + "&port=" + port + "&sslmode=disable&journal=" + name
}

func TestThreeZones(t *testing.T) {
	d := start(t)
	remotetest.ThreeZones(t, func(name string, roundTrip time.Duration) string {
		return d.by(remotetest.NewLine(t, "127.0.0.1", d.server.Socket(), roundTrip), name)
	})
}

func TestFailOver(t *testing.T)                   { remotetest.FailOver(t, start(t)) }
func TestHandOver(t *testing.T)                   { remotetest.HandOver(t, start(t)) }
func TestCutOff(t *testing.T)                     { remotetest.CutOff(t, start(t)) }
func TestPausedOwnerIsSilent(t *testing.T)        { remotetest.PausedOwnerIsSilent(t, start(t)) }
func TestCommandsOutliveTheirServer(t *testing.T) { remotetest.CommandsOutliveTheirServer(t, start(t)) }
func TestHistoryOfFailOvers(t *testing.T)         { remotetest.HistoryOfFailOvers(t, start(t)) }
func TestHistoryOfShares(t *testing.T)            { remotetest.HistoryOfShares(t, start(t)) }
func TestRollingUpgrade(t *testing.T)             { remotetest.RollingUpgrade(t, start(t)) }
func TestScenariosOfFailOver(t *testing.T)        { remotetest.ScenariosOfFailOver(t, start(t)) }
func TestHistoryOfLibraries(t *testing.T)         { remotetest.HistoryOfLibraries(t, start(t)) }
func TestMigrate(t *testing.T)                    { remotetest.Migrate(t, start(t)) }
func TestBackup(t *testing.T)                     { remotetest.Backup(t, start(t)) }
func TestBackupOfShards(t *testing.T)             { remotetest.BackupOfShards(t, start(t)) }
func TestLatencyOfAcquire(t *testing.T)           { remotetest.LatencyOfAcquire(t, start(t)) }
