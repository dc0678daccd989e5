//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/certtest"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// The bodies that harnesses send go through the real interlock-hook to a real server. Of two sessions
// that edit the same files, the second one gets the refusal in the words of its harness.
func TestHookBodies(t *testing.T) {
	bodies, err := filepath.Glob("../../hook/testdata/*/*.json")
	if err != nil || len(bodies) < 30 {
		t.Fatalf("there are %d bodies (%v)", len(bodies), err)
	}
	r := newRig(t)
	r.env = append(r.env, "XDG_CACHE_HOME="+t.TempDir())
	env := r.env
	for i, body := range bodies {
		r.env = append(slices.Clone(env), fmt.Sprintf("INTERLOCK_NAMESPACE=body-%d", i)) // they share files
		event, err := os.ReadFile(body)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(strings.TrimSuffix(body, ".json") + ".want")
		if err != nil {
			t.Fatal(err)
		}
		harness := filepath.Base(filepath.Dir(body))
		// The rival has the files that the event writes.
		if out, code := r.hook(otherSession(t, event, "rival"), harness); out != "" || code != 0 {
			t.Errorf("%s: the first session got %q, and exit code %d", body, out, code)
		}
		out, code := r.hook(otherSession(t, event, "late"), harness)
		if code != 0 {
			t.Errorf("%s: exit code %d", body, code)
		}
		pattern := "^$"
		if refusal, ok := refusalOf(string(want)); ok {
			pattern = "^" + strings.ReplaceAll(regexp.QuoteMeta(refusal), `"held"`, `".* is held by .*"`) + "$"
		}
		if !regexp.MustCompile(pattern).MatchString(out) {
			t.Errorf("%s: the second session got\n%s\nwant\n%s", body, out, pattern)
		}
	}
}

// hook runs interlock-hook with an event.
func (r *rig) hook(event []byte, args ...string) (out string, code int) {
	r.t.Helper()
	program := filepath.Join(filepath.Dir(launchtest.Binary(r.t)), "interlock-hook")
	cmd := exec.Command(program, append(args, "--wait", "0s")...)
	cmd.Env, cmd.Stdin = r.env, strings.NewReader(string(event))
	all, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		r.t.Fatal(err)
	}
	return string(all), cmd.ProcessState.ExitCode()
}

// otherSession is an event of another session.
func otherSession(t *testing.T, event []byte, name string) []byte {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(event, &fields); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"session_id", "sessionId", "conversation_id", "sessionID", "rootID", "parentID"} {
		if id, ok := fields[field].(string); ok {
			fields[field] = name + id
		}
	}
	changed, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// refusalOf is the answer of a harness to an event before files are written, if it is one.
func refusalOf(want string) (answer string, ok bool) {
	if !strings.HasPrefix(want, "before-tool ") || !strings.Contains(want, "\nwrites: ") {
		return "", false
	}
	_, rest, _ := strings.Cut(want, "\nheld -> ")
	answer, _, ok = strings.Cut(rest, "\n")
	return answer, ok
}

// A server with TLS and credentials is reached by interlock-hook, through the full binary. The secret
// stays in its file.
func TestHooksOverTLS(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "credentials")
	out, code := startProc(t, cleanEnvironment(), "credential", "create", "ada", "--file", file).end()
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	secret, _, _ := strings.Cut(out, "\n")
	cert, key := certtest.SelfSigned(t, dir, 1)
	server := launchtest.Start(t, launch.Config{
		DataDir: t.TempDir(), Args: []string{"--credentials", file, "--tls-cert", cert, "--tls-key", key},
	})
	mine := filepath.Join(dir, "mine")
	if err := os.WriteFile(mine, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newShell(t, append(cleanEnvironment(), "HOME="+dir, "INTERLOCK_CONFIG="+filepath.Join(dir, "config.json")))
	for _, harness := range []string{"claude-code", "gemini"} {
		out, code := s.run(
			"interlock hooks install " + harness + " --url https://" + server.HTTP + " --credential-file " + mine +
				" --tls-ca " + cert,
		)
		if code != 0 {
			t.Fatalf("exit code %d\n%s", code, out)
		}
		out, code = s.run("interlock hooks doctor " + harness)
		if code != 0 || !regexp.MustCompile(`deny +ok +\S+ is held by`).MatchString(out) {
			t.Errorf("%s: exit code %d\n%s", harness, code, out)
		}
		out, code = s.run("INTERLOCK_CREDENTIAL=another interlock hooks doctor " + harness)
		if code != cli.ExitFailure || !strings.Contains(out, "unauthenticated") {
			t.Errorf("%s with another credential: exit code %d\n%s", harness, code, out)
		}
	}
	out, code = s.run(
		"interlock hooks skip --once a --url https://" + server.HTTP + " --credential-file " + mine + " --tls-ca " + cert,
	)
	if code != cli.ExitForbidden || !strings.Contains(out, "needs the role operator") {
		t.Errorf("skip with the role agent: exit code %d\n%s", code, out)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "hook.env")); err != nil || strings.Contains(string(text), secret) ||
		!strings.Contains(string(text), mine) {
		t.Errorf("hook.env has the secret, or not its file (%v):\n%s", err, text)
	}
}
