package guardgit

import (
	"os/exec"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

const git = `ann: pushed
ben: pushed
ben: refused
  the push is refused: 1 of 1 changed paths may not change now
    src/auth.ts: held by ann (exclusive, for TIME), who holds src: "rename the session type"
  Do not bypass them: acquire them (interlock lock KEY --wait 10m), then fetch,
  look at the changes, and push with that lease: git push -o interlock-lease=l_...
ann: pushed
ann: refused
  the lease of this push is not valid: the lease on repo:web/src was released by its holder.
  Do not push work done under it: acquire again, fetch, and decide again.
`

const lfs = `interlock says: ann holds it
ben is told: art/logo.png is held by ann since TIME
theirs: "path":"art/icon.png"
theirs: "path":"art/logo.png"
ben may not unlock it: art/logo.png is locked by ann: ask for it, or unlock with --force
ann may: art/logo.png
and it is free at once
`

func TestExamples(t *testing.T) {
	for _, tt := range []struct{ script, want string }{
		{"./git.sh", git},
		{"./lfs.sh", lfs},
	} {
		t.Run(tt.script, func(t *testing.T) {
			tools.Need(t, "bash", "curl", "git", "git-lfs")
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
