package firestoretest

import (
	"testing"

	"github.com/interlockdev/interlock/internal/test/remotetest"
)

func TestFailOver(t *testing.T)            { remotetest.FailOver(t, begin(t)) }
func TestHandOver(t *testing.T)            { remotetest.HandOver(t, begin(t)) }
func TestPausedOwnerIsSilent(t *testing.T) { remotetest.PausedOwnerIsSilent(t, begin(t)) }
func TestHistoryOfFailOvers(t *testing.T)  { remotetest.HistoryOfFailOvers(t, begin(t)) }
func TestHistoryOfLibraries(t *testing.T)  { remotetest.HistoryOfLibraries(t, begin(t)) }
func TestMigrate(t *testing.T)             { remotetest.Migrate(t, begin(t)) }
func TestBackup(t *testing.T)              { remotetest.Backup(t, begin(t)) }
func TestLatencyOfAcquire(t *testing.T)    { remotetest.LatencyOfAcquire(t, begin(t)) }

// These wait for most of their time.

func TestCutOff(t *testing.T) {
	t.Parallel()
	remotetest.CutOff(t, begin(t))
}

func TestCommandsOutliveTheirServer(t *testing.T) {
	t.Parallel()
	remotetest.CommandsOutliveTheirServer(t, begin(t))
}
