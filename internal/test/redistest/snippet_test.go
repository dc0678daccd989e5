//go:build unix

package redistest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSnippets: the code that articles about locks for agents print does what it promises, also behind a pool of
// connections, and the one that deletes a constant value no longer deletes the next holder's lock.
func TestSnippets(t *testing.T) {
	program := python(t)
	for file, want := range map[string]string{
		"constant_value.py": "held None key agent_lock:user_7 is held True\n" +
			"refused Entity 7 is currently locked by another Agent. Aborting run.\nfree 0\nthe next holder's LOCKED 1\n",
		"pool.py":          "100 100 True\nTrue\nTrue\nit is not clear whose key agent_lock:late is\nNone\n",
		"compare_value.py": "True False\n0 1\nTrue 1\n",
	} {
		t.Run(file, func(t *testing.T) {
			server := snippetDoor(t)
			cmd := exec.CommandContext(t.Context(), program, filepath.Join("testdata", file))
			cmd.Env = append(os.Environ(), "REDIS_URL=redis://"+server+"/0")
			out, err := cmd.CombinedOutput()
			if err != nil || string(out) != want {
				t.Errorf("%v\n%s\nwant\n%s", err, out, want)
			}
		})
	}
}
