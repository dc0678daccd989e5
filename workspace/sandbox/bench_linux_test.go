package sandbox_test

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/interlockdev/interlock/workspace/sandbox"
)

// BenchmarkStart is the time of a command that does nothing, in a sandbox and without one.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	env := []string{"PATH=/usr/bin:/bin"}
	b.Run("none", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, mechanism := range []sandbox.Mechanism{sandbox.Bubblewrap, sandbox.Namespaces} {
		b.Run(string(mechanism), func(b *testing.B) {
			for b.Loop() {
				s, err := sandbox.New(sandbox.Config{
					Argv: []string{"true"}, Dir: dir, Write: []string{dir}, Env: env, Mechanism: mechanism, Net: sandbox.NetOff,
				})
				if err != nil {
					b.Fatal(err)
				}
				if code, err := s.Run(context.Background(), os.Stdin, os.Stdout, os.Stderr); code != 0 || err != nil {
					b.Fatal(code, err)
				}
			}
		})
	}
}
