//go:build unix

package launch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// These scripts stand for the binary: the test covers how its ways to begin and to end are
// distinguished.
func TestStart(t *testing.T) {
	tests := []struct {
		name, script string
		code         int
		err          string
	}{
		{
			"ready and stopped",
			`trap 'exit 0' TERM; echo "ready http=127.0.0.1:1 grpc=127.0.0.1:2"; while :; do read -t 1 x <> "$0.fifo"; done`, 0,
			"",
		},
		{
			"stopped with an error",
			`trap 'exit 9' TERM; echo "ready http=127.0.0.1:1 grpc=127.0.0.1:2"; while :; do read -t 1 x <> "$0.fifo"; done`, 9,
			"",
		},
		{"refused", `echo "journal is locked" >&2; exit 4`, 4, "exit code 4 before it was ready:\njournal is locked"},
		{"other first line", `echo "hello"; exec cat "$0.fifo"`, 0, `first line is "hello"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			script := plant(t, tt.script)
			s, err := launch.Start(t.Context(), launch.Config{Binary: script, DataDir: t.TempDir()})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %s", err, tt.err)
				}
				var exit *launch.ExitError
				if errors.As(err, &exit) && exit.Code != tt.code {
					t.Errorf("exit code %d, want %d", exit.Code, tt.code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s.HTTP != "127.0.0.1:1" || s.GRPC != "127.0.0.1:2" {
				t.Errorf("addresses %s and %s", s.HTTP, s.GRPC)
			}
			err = s.Stop(t.Context())
			if (err == nil) != (tt.code == 0) || s.ExitCode() != tt.code {
				t.Errorf("exit code %d, want %d; Stop: %v", s.ExitCode(), tt.code, err)
			}
		})
	}
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	log := signal{strings: make(chan string, 16)}
	go func() {
		<-log.strings // the process runs
		cancel(cause)
	}()
	_, err := launch.Start(
		ctx, launch.Config{Binary: plant(t, `echo up >&2; exec cat "$0.fifo"`), DataDir: t.TempDir(), Log: log},
	)
	if !errors.Is(err, cause) {
		t.Errorf("error %v, want %v", err, cause)
	}
}

type signal struct{ strings chan string }

func (s signal) Write(p []byte) (int, error) {
	s.strings <- string(p)
	return len(p), nil
}

// plant writes a shell script, and beside it a pipe on which it can wait.
func plant(t *testing.T, body string) string {
	t.Helper()
	tools.Need(t, "bash")
	name := filepath.Join(t.TempDir(), "interlock")
	if err := os.WriteFile(name, []byte("#!/usr/bin/env bash\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := mkfifo(name + ".fifo"); err != nil {
		t.Fatal(err)
	}
	return name
}

func mkfifo(name string) error { return syscall.Mkfifo(name, 0o600) }
