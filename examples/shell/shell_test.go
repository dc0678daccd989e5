package shell

import (
	"os/exec"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
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

const counter = `ten shells, and the counter says 10
fence 1 is stale, the counter has seen fence 10
a late shell is refused with exit code 65
`

const permits = `set: pattern runs: org:{org}/runs, capacity 2
admitted: 2, refused with 75: 8
released
released
both permits are free again
`

const items = `set: pattern item: item:{n:int}, member item:{1..40}
items taken: 40, taken twice: 0
`

const approval = `refunds-1 reads 1200
parked for at most 8h00m, its keys are free meanwhile: refund 1200?
  | refund 1200?
approved by ada; the lease is resumed by a waiting or a later resume
read them again before you act
refunds-1 reads 1165
released
`

const phases = `3 first
3 second
`

const files = `ann: written
eve: "outcome":"merged"
bob: refused with 65
| -retries = 3
| +retries = 5
| -level = info
| +level = debug
retries = 5
per_minute = 30
level = debug
`

func TestExamples(t *testing.T) {
	for _, tt := range []struct{ script, want string }{
		{"./lease.sh", lease},
		{"./counter.sh", counter},
		{"./permits.sh", permits},
		{"./items.sh", items},
		{"./approval.sh", approval},
		{"./phases.sh", phases},
		{"./files.sh", files},
	} {
		t.Run(tt.script, func(t *testing.T) {
			tools.Need(t, "bash", "curl")
			shared := t.TempDir()
			server := launchtest.Start(t, launch.Config{
				DataDir: t.TempDir(), Args: []string{"--files", "example-shell-files=" + shared},
			})
			cmd := exec.CommandContext(t.Context(), tt.script)
			cmd.Env = append(cmd.Environ(),
				"INTERLOCK="+launchtest.Binary(t),
				"INTERLOCK_URL=http://"+server.HTTP, "INTERLOCK_GRPC="+server.GRPC, "SHARED="+shared)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if string(out) != tt.want {
				t.Errorf("it printed\n%s\nwant\n%s", out, tt.want)
			}
		})
	}
}
