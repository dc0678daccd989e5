package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// outcome is a test that notes how it ended.
type outcome struct {
	testing.TB
	skipped, failed string
}

func (o *outcome) Helper() {}

func (o *outcome) Skipf(format string, args ...any) {
	o.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (o *outcome) Fatalf(format string, args ...any) {
	o.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// A missing program skips a test, and fails it when the tools were asked for. Programs
// that are present are used only then, but for those that developers have.
func TestNeed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"bash", "sqlite3"} {
		if err := os.WriteFile(dir+"/"+name, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	tests := []struct {
		asked           string
		names           []string
		skipped, failed string
	}{
		{"", []string{"bash"}, "", ""},
		{"", []string{"git"}, "needs git: make test and make prove run it", ""},
		{"", []string{"sqlite3"}, "needs sqlite3: make test", ""},
		{"", []string{"bash", "strace"}, "needs bash, strace: make test", ""},
		{"1", []string{"bash", "sqlite3"}, "", ""},
		{"1", []string{"bash", "strace"}, "", "make deps-all installs the package strace"},
		{"1", []string{"git"}, "", "make deps-all installs the package git"},
		{"", []string{"perl"}, "", "does not list perl"},
	}
	for _, tt := range tests {
		t.Setenv(Variable, tt.asked)
		o, ended := &outcome{}, make(chan struct{})
		go func() {
			defer close(ended)
			Need(o, tt.names...)
		}()
		<-ended
		if !matches(o.skipped, tt.skipped) || !matches(o.failed, tt.failed) {
			t.Errorf("%v with %q: skipped %q, failed %q", tt.names, tt.asked, o.skipped, o.failed)
		}
	}
}

// The root is found from any folder in it, also from those of the modules below it, and from nowhere else.
func TestRoot(t *testing.T) {
	want, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{
		".": want, "../../..": want, "../../../bench/peers": want, "../../../docs/img": want, t.TempDir(): "",
	} {
		if got := rootAbove(folder); got != want {
			t.Errorf("above %s the root is %q, not %q", folder, got, want)
		}
	}
	t.Chdir(t.TempDir())
	if Root() != want {
		t.Errorf("in another folder the root is %q, not %q", Root(), want)
	}
}

func matches(got, want string) bool {
	return (got == "") == (want == "") && strings.Contains(got, want)
}
