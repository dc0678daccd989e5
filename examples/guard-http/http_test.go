package guardhttp

import (
	"os/exec"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

const want = `straight to the API: who are you?
reading through the guard: 100
charging without a lease: lease_required
charging with one: 65, charged by billing-7 under fence 1
the late one: released
its successor: 30, charged by support-2 under fence 2
a path that no route allows: invalid_request
recorded:
   GET /accounts/12345 "status":200
   POST /accounts/12345/fees "status":428
  billing-7 POST /accounts/12345/fees "status":200
   POST /accounts/12345/fees "status":410
  support-2 POST /accounts/12345/fees "status":200
   POST /accounts/12345/../67890/fees "status":400
`

func TestExample(t *testing.T) {
	tools.Need(t, "bash", "curl", "python3")
	server := launchtest.Start(t, launch.Config{DataDir: t.TempDir()})
	cmd := exec.CommandContext(t.Context(), "./http.sh")
	cmd.Env = append(cmd.Environ(),
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
