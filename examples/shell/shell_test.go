package shell

import (
	"os/exec"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/launch/launchtest"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

const lease = `billing-7: granted, fence 1
support-2: held, wait
support-2: queued
billing-7: renewed, held
guard: fence 1 is valid
billing-7: released
support-2: granted, fence 2, note: fee of 35.00 applied
guard: fenced
billing-7: released
support-2: released
`

func TestLease(t *testing.T) {
	server := launchtest.Start(t, launch.Config{DataDir: t.TempDir()})
	cmd := exec.CommandContext(t.Context(), "./lease.sh")
	cmd.Env = append(cmd.Environ(), "INTERLOCK_URL=http://"+server.HTTP)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if string(out) != lease {
		t.Errorf("it printed\n%s\nwant\n%s", out, lease)
	}
}
