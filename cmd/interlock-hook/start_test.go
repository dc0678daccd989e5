package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// build builds the binary as a release has it.
func build(t testing.TB) string { return buildFrom(t, ".") }

func buildFrom(t testing.TB, source string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "interlock-hook")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// The binary stays small, and has none of the packages that are slow to start.
func TestBinary(t *testing.T) {
	info, err := os.Stat(build(t))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 5<<20 {
		t.Errorf("the binary has %d bytes, of at most 5 MiB", info.Size())
	}
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		if name == "net/http" || name == "crypto/tls" || strings.Contains(name, "spf13") {
			t.Errorf("the binary has package %s", name)
		}
	}
}

// With a server that speaks TLS the full binary takes over, with the same input and settings.
func TestRelay(t *testing.T) {
	alone(t)
	own := build(t)
	script := "#!/bin/sh\necho \"$@\" \"$INTERLOCK_URL\" \"$INTERLOCK_CREDENTIAL\"\ncat\n"
	if err := os.WriteFile(filepath.Join(filepath.Dir(own), "interlock"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("INTERLOCK_URL", "https://example.com")
	t.Setenv("INTERLOCK_CREDENTIAL", "s3cret")
	cmd := exec.Command(own, "codex", "--mode", "strict")
	cmd.Stdin = strings.NewReader("{}")
	out, err := cmd.CombinedOutput()
	if want := "hooks relay codex --mode strict https://example.com s3cret\n{}"; err != nil || string(out) != want {
		t.Errorf("it wrote %q (%v), want %q", out, err, want)
	}
}

func TestRelayWithoutBinary(t *testing.T) {
	alone(t)
	t.Setenv("PATH", t.TempDir())
	t.Setenv("INTERLOCK_URL", "https://example.com")
	out, report, code := try("{}", "codex")
	if out != "" || !strings.Contains(report, "needs the binary interlock") || code != 0 {
		t.Errorf("it wrote %q and %q, and exited with %d", out, report, code)
	}
}

// FuzzAnswer feeds answers of hostile servers to the reader.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{}", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		status, body, err := readAnswer(bufio.NewReader(io.LimitReader(strings.NewReader(text), maxAnswer)))
		if err == nil && (status < 200 || status > 999 || len(body) > len(text)) {
			t.Errorf("status %d with %d bytes, of an answer of %d bytes", status, len(body), len(text))
		}
	})
}
