package guardpostgres

import (
	"os/exec"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/postgrestest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

const want = `installed
attached: a row of example_zombies.account needs a fence of account:{id}
billing-1: reads 1000 under fence 1
billing-2: reads 1000 under fence 2
billing-3: reads 1000 under fence 3
billing-3: charges 35
billing-1 is refused: interlock: fence 1 of account:12345 is stale, 3 was seen at account:12345: do not write; acquire the key anew and read again
billing-2 is refused: interlock: fence 2 of account:12345 is stale, 3 was seen at account:12345: do not write; acquire the key anew and read again
somebody is refused: interlock: no fence was entered for account:12345 in this transaction: do not write; acquire the key, then begin with SELECT interlock.enter('example-guard-postgres-zombies', 'account:12345', FENCE), and read again
balance: 965
`

func TestExample(t *testing.T) {
	tools.Need(t, "bash", "psql")
	server := launchtest.Start(t, launch.Config{DataDir: t.TempDir()})
	database := postgrestest.Start(t)
	cmd := exec.CommandContext(t.Context(), "./zombies.sh")
	cmd.Env = append(append(cmd.Environ(), database.Environment(t)...),
		"INTERLOCK="+launchtest.Binary(t),
		"INTERLOCK_URL=http://"+server.HTTP, "INTERLOCK_GRPC="+server.GRPC)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if string(out) != want {
		t.Errorf("it printed\n%s\nwant\n%s", out, want)
	}
}
