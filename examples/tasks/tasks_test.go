package tasks

import (
	"os/exec"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

const fee = `set: queue billing: max-attempts 3
billing-7 has left a task and goes on
released
attempt 1: the card network is down
charged 3500 in attempt 2
`

const tenants = `set: queue mail: group acme=2
4 acme
2 bell
2 cord
`

const account = `set: queue accounts: backoff 10ms, grace 100ms
set: queue accounts is the single writer of pattern account
around the writer: refused with 77
teller-1: died with 137
balance 9700, handled by teller-2: 20
1 attempt 2
`

const refund = `set: queue refunds
refunded 300
  | refund 1200 to customer 12?
  asker     refunds-1, at a task of support-2
  for       ticket 77, balance:12
fees-2: fee of 700
approved by ada: the task waits for a worker
interlock: this approval is a courtesy, not a control: the server asks for no credentials, so anyone on this machine, agents included, can answer under any name; start it with --credentials to make approvals hold
refunded 1200
`

func TestExamples(t *testing.T) {
	for _, tt := range []struct{ script, want string }{
		{"./fee.sh", fee},
		{"./tenants.sh", tenants},
		{"./account.sh", account},
		{"./refund.sh", refund},
	} {
		t.Run(tt.script, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, "bash")
			server := launchtest.Start(t, launch.Config{DataDir: t.TempDir()})
			cmd := exec.CommandContext(t.Context(), tt.script)
			cmd.Env = append(cmd.Environ(),
				"INTERLOCK="+launchtest.Binary(t),
				"INTERLOCK_URL=http://"+server.HTTP, "INTERLOCK_GRPC="+server.GRPC)
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
