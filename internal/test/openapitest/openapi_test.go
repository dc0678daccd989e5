package openapitest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

// site is a server with its document, and a folder for generated files.
type site struct {
	*testing.T
	url, folder, document string
}

func open(t *testing.T) *site {
	t.Helper()
	server := launchtest.Start(t, launch.Config{
		DataDir: t.TempDir(), Args: []string{"--files", "default=" + t.TempDir()},
	})
	s := &site{T: t, url: "http://" + server.HTTP, folder: t.TempDir()}
	s.document = s.fetch("/openapi.json")
	for _, name := range []string{"node_modules", "package.json"} {
		if err := os.Symlink(filepath.Join(tools.OpenAPIFolder(), name), filepath.Join(s.folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"life.py", "life.ts", "validate.mjs"} {
		text, err := os.ReadFile("testdata/" + name)
		if err == nil {
			err = os.WriteFile(filepath.Join(s.folder, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// fetch keeps an answer in a file, and returns its name.
func (s *site) fetch(path string) string {
	s.Helper()
	r, err := http.Get(s.url + path)
	if err != nil {
		s.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		s.Fatalf("%s is answered with %s (%v)", path, r.Status, err)
	}
	name := filepath.Join(s.folder, strings.NewReplacer("/", "", "?", "-", "=", "-").Replace(path))
	if !strings.HasSuffix(name, ".json") {
		name += ".json"
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		s.Fatal(err)
	}
	return name
}

// run runs a program in the folder of the site, and returns what it printed.
func (s *site) run(name string, args ...string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), busy.Patience())
	defer cancel()
	path := tools.OpenAPIPath() + string(filepath.ListSeparator) + os.Getenv("PATH")
	for _, folder := range filepath.SplitList(path) {
		if full, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			name = full
			break
		}
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = s.folder
	cmd.Env = append(os.Environ(), "PATH="+path, "HOME="+s.folder, "NO_COLOR=1", "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%s: %v\n%s", filepath.Base(name), err, out)
	}
	return string(out)
}

// warned fails the test if a generator's output has more than its lines of success.
func (s *site) warned(out string) {
	s.Helper()
	if strings.Contains(strings.ToLower(out), "warning") || strings.Contains(strings.ToLower(out), "skipping") {
		s.Errorf("the generator warns:\n%s", out)
	}
}

// TestValid validates the document, and each part of it by tag, with two programs.
func TestValid(t *testing.T) {
	tools.Need(t, "openapi-spec-validator", "node", "tsc")
	s := open(t)
	text, err := os.ReadFile(s.document)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Tags []struct{ Name string } }
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	files := []string{s.document}
	for _, tag := range doc.Tags {
		files = append(files, s.fetch("/openapi.json?tag="+strings.ToLower(tag.Name)))
	}
	for _, out := range []string{
		s.run("openapi-spec-validator", files...), s.run("node", append([]string{"validate.mjs"}, files...)...),
	} {
		if strings.Count(out, ": OK\n") != len(files) || len(files) < 10 {
			t.Errorf("%d documents should be valid:\n%s", len(files), out)
		}
	}
}

// TestPython leads a lease through its life with the client that is generated for Python.
func TestPython(t *testing.T) {
	tools.Need(t, "openapi-python-client")
	s := open(t)
	s.warned(s.run(
		"openapi-python-client", "generate", "--path", s.document, "--meta", "none", "--output-path", "generated",
	))
	if out := s.run("python3", "life.py", s.url); out != "python: ok\n" {
		t.Errorf("life.py prints %q", out)
	}
}

// TestTypeScript does the same with the types for TypeScript.
func TestTypeScript(t *testing.T) {
	tools.Need(t, "openapi-typescript", "tsc", "node")
	s := open(t)
	s.warned(s.run("openapi-typescript", s.document, "-o", "generated.ts"))
	s.run("tsc", "--strict", "--target", "es2022", "--module", "nodenext", "life.ts")
	if out := s.run("node", "life.js", s.url); out != "typescript: ok\n" {
		t.Errorf("life.js prints %q", out)
	}
}

// passed is in the summary of schemathesis.
var passed = regexp.MustCompile(`([1-9]\d*) generated, (\d+) passed`)

// TestSchemathesis makes up requests to every operation that ends, good and bad ones, and compares the
// answers with the document.
func TestSchemathesis(t *testing.T) {
	tools.Need(t, "schemathesis")
	s := open(t)
	config, err := filepath.Abs("testdata/schemathesis.toml")
	if err != nil {
		t.Fatal(err)
	}
	out := s.run(
		"schemathesis", "--config-file", config, "run", s.document, "--url", s.url, "--phases", "coverage,fuzzing",
		"--max-examples", "3", "--seed", "1", "--request-timeout", "60", "--generation-database", "none", "--no-color",
	)
	m := passed.FindStringSubmatch(out)
	if m == nil || m[1] != m[2] {
		t.Errorf("schemathesis has findings, or no cases:\n%s", out)
	}
}
