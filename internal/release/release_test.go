package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/interlockdev/interlock/internal/test/tools"
)

// folder is where the release is that the tests look at, once one of them has asked for it.
var folder string

// built is a release for this machine's platform, built once for all tests.
var built = sync.OnceValues(func() (*release, error) {
	var err error
	if folder, err = os.MkdirTemp("", "interlock-release-test-"); err != nil {
		return nil, err
	}
	return buildInto(folder)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if folder != "" {
		os.RemoveAll(folder)
	}
	os.Exit(code)
}

func buildInto(out string) (*release, error) {
	r, err := describe(".", "")
	if err != nil {
		return nil, err
	}
	r.version, r.out = "v1.2.3", out
	return r, r.build([]target{{"linux", runtime.GOARCH}})
}

// finished returns the release. It needs the module of nfpm, which "go run" fetches.
func finished(t *testing.T) *release {
	t.Helper()
	tools.Need(t, "git", "dpkg-deb", "node", tools.TypeScriptCompiler, tools.PythonVenv)
	r, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The release has the same bytes whenever and wherever it is built from a commit.
func TestReproducible(t *testing.T) {
	r := finished(t)
	again, err := buildInto(filepath.Join(t.TempDir(), "elsewhere"))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(r.out)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.ReplaceAll(e.Name(), runtime.GOARCH, "ARCH"))
		first, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		second, errAgain := os.ReadFile(filepath.Join(again.out, e.Name()))
		if err := errors.Join(err, errAgain); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, second) {
			t.Errorf("%s has other bytes when it is built again", e.Name())
		}
	}
	want := []string{
		"SHA256SUMS", "interlock.rb", "interlock_1.2.3_ARCH.deb", "interlock_1.2.3_ARCH.rpm",
		"interlock_1.2.3_linux_ARCH.cdx.json", "interlock_1.2.3_linux_ARCH.tar.gz",
		"interlock_client-1.2.3-py3-none-any.whl", "interlock_client-1.2.3.tar.gz",
		"interlockdev-client-1.2.3.tgz",
	}
	if !slices.Equal(names, want) {
		t.Errorf("the release has %q, want %q", names, want)
	}
}

func TestSumsAndFormula(t *testing.T) {
	r := finished(t)
	sums, err := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]string{}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		of[name] = sum
		if found, err := sha256Of(filepath.Join(r.out, name)); err != nil || found != sum {
			t.Errorf("%s has the sum %s, and SHA256SUMS has %s (%v)", name, found, sum, err)
		}
	}
	if len(of) != 8 {
		t.Errorf("SHA256SUMS has %d files, want 8:\n%s", len(of), sums)
	}
	formula, err := os.ReadFile(filepath.Join(r.out, "interlock.rb"))
	if err != nil {
		t.Fatal(err)
	}
	name := "interlock_1.2.3_linux_" + runtime.GOARCH + ".tar.gz"
	entry := `url "https://github.com/interlockdev/interlock/releases/download/v1.2.3/` + name + `"` + "\n" +
		`      sha256 "` + of[name] + `"`
	if !strings.Contains(string(formula), entry) || strings.Contains(string(formula), "{{") {
		t.Errorf("the formula lacks\n%s\nit is:\n%s", entry, formula)
	}
	if opened := regexp.MustCompile(`(?m)^ *(class|on_\w+ do|def|service do|test do)`).FindAll(formula, -1); len(
		opened,
	) != len(regexp.MustCompile(`(?m)^ *end$`).FindAll(formula, -1)) {
		t.Errorf("the formula's blocks are not closed:\n%s", formula)
	}
}

// The archive's binaries run anywhere and know their version.
func TestArchive(t *testing.T) {
	r := finished(t)
	file, err := os.Open(filepath.Join(r.out, "interlock_1.2.3_linux_"+runtime.GOARCH+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	var names []string
	for archive := tar.NewReader(packed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		top, name, _ := strings.Cut(header.Name, "/")
		if top != "interlock_1.2.3_linux_"+runtime.GOARCH || header.Size == 0 {
			t.Errorf("%s has %d bytes", header.Name, header.Size)
		}
		names = append(names, name)
		if name == "interlock" || name == "interlock-hook" {
			body, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(programs, name), body, header.FileInfo().Mode()); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{
		"CHANGELOG.md", "LICENSE", "README.md", "THIRD_PARTY_LICENSES", "completions/interlock.bash",
		"completions/interlock.fish", "completions/interlock.zsh", "interlock", "interlock-hook",
	}
	if !slices.Equal(names, want) {
		t.Errorf("the archive has %q, want %q", names, want)
	}
	for _, tt := range []struct{ program, arg string }{{"interlock", "version"}, {"interlock-hook", "--version"}} {
		out, err := exec.Command(filepath.Join(programs, tt.program), tt.arg).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), tt.program+" v1.2.3\n") {
			t.Errorf("%s %s: %v\n%s", tt.program, tt.arg, err, out)
		}
	}
}

func TestSBOM(t *testing.T) {
	r := finished(t)
	compiler := jsonschema.NewCompiler()
	for _, name := range []string{"bom-1.6.schema.json", "spdx.schema.json", "jsf-0.82.schema.json"} {
		if err := compiler.AddResource("http://cyclonedx.org/schema/"+name, document(t, "testdata/cyclonedx/"+name)); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	bill := document(t, filepath.Join(r.out, "interlock_1.2.3_linux_"+runtime.GOARCH+".cdx.json")).(map[string]any)
	if err := schema.Validate(bill); err != nil {
		t.Error(err)
	}
	var names []string
	for _, c := range bill["components"].([]any) {
		names = append(names, c.(map[string]any)["name"].(string))
	}
	for _, name := range []string{"std", "github.com/spf13/cobra", "google.golang.org/grpc"} {
		if !slices.Contains(names, name) {
			t.Errorf("the bill of materials lacks %s: it has %q", name, names)
		}
	}
	bill["specVersion"] = 7
	if schema.Validate(bill) == nil {
		t.Error("the schema accepts any bill of materials")
	}
}

func document(t *testing.T, name string) any {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	doc, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
