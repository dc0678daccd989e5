package securitytest

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

var fileAttacks = []attack{
	{
		34, "Paths out of the shared directory",
		"reads, writes and deletes by ../, absolute paths, backslashes, NUL, encoded slashes, .git and Interlock's own " +
			"directory, over HTTP",
		"400 invalid_path, and nothing outside is touched", pathsOverHTTP,
		[]string{"file.TestPathsThatAreRefused", "file.TestWhatIsNoFile"},
	},
	{
		35, "The same by the command", "does it with interlock file", "a refusal, and nothing outside is touched",
		pathsByCommand, nil,
	},
	{
		36, "Planted links", "plants symbolic links that lead out of the directory, or to git's",
		"reading and writing are refused, and what they lead to stays as it is", plantedLinks,
		[]string{"file.TestSymbolicLinks", "file.TestPlantedLinks"},
	},
	{
		37, "Branches and paths in a push",
		"pushes branches and paths that look like options, traversal or ANSI past the pre-receive hook",
		"they are names: the hook judges each, shows none raw, and runs nothing", hostilePush,
		[]string{"git.TestOddPaths", "git.TestReadUpdates"},
	},
}

// wayOut are paths that name no file of the directory.
var wayOut = []string{
	"..", "../outside", "a/../../outside", "/etc/passwd", "a/..", "./a", "a//b", "a/", `..\outside`, `a\b`, "a\x00b",
	"a\nb", "a\x1b[2Jb", "a\u202eb", "\xff",
	".git/config", ".GIT/hooks/pre-commit", "sub/.git/config", ".interlock/lock", ".Interlock/x", ".interlock.tmp",
	strings.Repeat("a", 300),
}

// outside puts a file beside a directory, and checks at the end that it stayed so.
func outside(t *testing.T, dir string) {
	t.Helper()
	file := filepath.Join(filepath.Dir(dir), "outside")
	if err := os.WriteFile(file, []byte("as it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if b, err := os.ReadFile(file); err != nil || string(b) != "as it was" {
			t.Errorf("a file outside is %q, %v", b, err)
		}
	})
}

func pathsOverHTTP(t *testing.T, s *site) {
	outside(t, s.files[rival])
	for _, path := range wayOut {
		for _, escaped := range []string{url.PathEscape(path), (&url.URL{Path: path}).EscapedPath()} {
			if escaped == "." || escaped == ".." {
				continue
			}
			for _, a := range []ask{
				{method: "GET"},
				{method: "PUT", body: "x", header: []string{"If-None-Match", "*"}},
				{method: "DELETE", header: []string{"If-Match", `"000000000000"`}},
			} {
				a.path, a.as = "/v1/files/"+escaped, s.secrets[rival]
				if got := s.send(t, a); !got.is(400, "invalid_path") {
					t.Errorf("%s %q: %d %s", a.method, path, got.status, got.raw)
				} else {
					unharmful(t, path, got.raw)
				}
			}
		}
	}
	// Names that only look odd are names.
	for _, path := range []string{"--upload-pack=x", "-rf", "a..b", "...", "$(touch x)", "a;b", "日本"} {
		s.agent(t, rival, "PUT", "/v1/files/"+url.PathEscape(path), "x", "If-None-Match", "*").want(200)
	}
}

func pathsByCommand(t *testing.T, s *site) {
	root := filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	outside(t, root)
	for _, path := range wayOut {
		if strings.ContainsRune(path, 0) {
			continue // no command can be given one
		}
		for _, args := range [][]string{{"file", "read"}, {"file", "version"}, {"file", "write", "--base", "none"}} {
			out, code := s.command(t, "", append(args, "--root", root, "--", path)...)
			if code == 0 || !strings.Contains(out, "path") && !strings.Contains(out, "leads into") {
				t.Errorf("%v %q: exit code %d, %s", args, path, code, out)
			}
			harmless(t, path, out)
		}
	}
	for _, path := range []string{"--upload-pack=x", "-rf", "--help"} {
		if out, code := s.command(t, "", "file", "write", "--base", "none", "--root", root, "--", path); code != 0 {
			t.Errorf("write -- %s: exit code %d, %s", path, code, out)
		}
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Error(err)
		}
	}
}

func plantedLinks(t *testing.T, s *site) {
	root := s.files[rival]
	outside(t, root)
	if err := os.MkdirAll(filepath.Join(root, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		"planted": "../outside", "etc": "/etc", "hooks": ".git", "up": "..", "self": "self",
	} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		"planted", "etc/passwd", "hooks/config", "up/outside", "up/acme/" + mark + ".txt", "self", "self/x",
	} {
		for _, a := range []ask{{method: "GET"}, {method: "PUT", body: "x", header: []string{"If-None-Match", "*"}}} {
			a.path, a.as = "/v1/files/"+path, s.secrets[rival]
			if got := s.send(t, a); got.status != 400 {
				t.Errorf("%s %s: %d %s", a.method, path, got.status, got.raw)
			}
		}
	}
}

func hostilePush(t *testing.T, s *site) {
	tools.Need(t, "git")
	dir := t.TempDir()
	bare, work, trap := filepath.Join(dir, "web.git"), filepath.Join(dir, "work"), filepath.Join(dir, "trap")
	secretFile := filepath.Join(dir, "credential")
	s.write(t, secretFile, s.secrets[rival])
	git := func(in string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = in
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, "GIT_") && !strings.HasPrefix(v, "INTERLOCK_") {
				cmd.Env = append(cmd.Env, v)
			}
		}
		cmd.Env = append(
			cmd.Env, "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must := func(in string, args ...string) string {
		t.Helper()
		out, err := git(in, args...)
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return out
	}
	must(dir, "init", "-q", "--bare", "-b", "main", bare)
	must(dir, "init", "-q", "-b", "main", work)
	hook := "#!/bin/sh\nexec '" + launchtest.Binary(t) +
		"' guard git pre-receive --repo web --require none --url https://" + s.server.HTTP + " --tls-ca '" + s.certificate +
		"' --credential-file '" + secretFile + "'\n"
	if err := os.WriteFile(filepath.Join(bare, "hooks", "pre-receive"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	commit := func(path string) {
		t.Helper()
		file := filepath.Join(work, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(path), 0o600); err != nil {
			t.Fatal(err)
		}
		must(work, "add", "-A")
		must(work, "commit", "-q", "-m", "x")
	}
	s.agent(
		t, rival, "POST", "/v1/leases", `{"agent":"alice","claims":[{"key":"repo:web/--upload-pack=touch"}]}`,
	).want(200)
	commit("plain")
	for _, ref := range []string{
		"refs/heads/--upload-pack=touch " + "x", "refs/heads/../../hooks/x", "refs/heads/a\x01b", "refs/heads/a..b",
	} {
		if out, err := git(work, "push", bare, "main:"+ref); err == nil {
			t.Errorf("a branch %q was made: %s", ref, out)
		}
	}
	must(
		work, "push", "-q", bare, "main:refs/heads/main", "main:refs/heads/--upload-pack=touch${IFS}"+filepath.Base(trap),
		"main:refs/heads/-rf",
	)
	// The names of the branches above are looked at with this one, to find what is new.
	commit("--upload-pack=touch")
	out, err := git(work, "push", bare, "main:refs/heads/main")
	if err == nil || !strings.Contains(out, "--upload-pack=touch: held by alice") {
		t.Errorf("a path that another one holds was pushed: %s", out)
	}
	must(work, "reset", "-q", "--hard", "HEAD~1")
	for _, path := range []string{"a\x1b[2Jb", "a\nb", "a\u202eb"} {
		commit(path)
		out, err := git(work, "push", bare, "main:refs/heads/main")
		if err == nil {
			t.Errorf("%q was pushed", path)
		}
		// git itself pads its lines with ANSI on terminals only.
		harmless(t, path, strings.ReplaceAll(out, "\x1b[K", ""))
		must(work, "reset", "-q", "--hard", "HEAD~1")
	}
	commit("--output=" + filepath.Base(trap))
	must(work, "push", "-q", bare, "main:refs/heads/main")
	for _, file := range []string{
		trap, filepath.Join(bare, filepath.Base(trap)), filepath.Join(work, filepath.Base(trap)),
		filepath.Join(bare, "hooks", "x"),
	} {
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s is there", file)
		}
	}
}
