//go:build unix

package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// An operator's ttl reaches each command that asks for none, whether it is shorter or longer than the usual one. One
// that is asked for counts before it.
func TestTTLOfAnOperator(t *testing.T) {
	r := newRig(t)
	for name, ttl := range map[string]string{"short": "2s", "long": "2m"} {
		r.must("pattern", "set", name, name+":{id}", "--ttl", ttl)
		r.must("queue", "set", name, "--ttl", ttl)
	}
	r.must("queue", "set", "plain")
	look := []string{"--", "sh", "-c", launchtest.Binary(t) + " lease get -o json >&2"}
	for _, tt := range []struct {
		args  string
		queue string
		key   string
		want  int
	}{
		{args: "run short:1", want: 2_000},
		{args: "run long:1", want: 120_000},
		{args: "run plain", want: 30_000},
		{args: "run long:1 short:1", want: 2_000},
		{args: "run --ttl 10s long:1", want: 10_000},
		{args: "run --ttl 10s short:1", want: 10_000},
		{args: "task work short --idle 0", queue: "short", key: "k", want: 2_000},
		{args: "task work long --idle 0", queue: "long", key: "k", want: 120_000},
		{args: "task work long --idle 0", queue: "long", key: "short:1", want: 120_000},
		{args: "task work plain --idle 0", queue: "plain", key: "long:1", want: 120_000},
		{args: "task work plain --idle 0", queue: "plain", key: "k", want: 30_000},
		{args: "task work long --idle 0 --ttl 10s", queue: "long", key: "k", want: 10_000},
	} {
		if tt.queue != "" {
			r.must("task", "create", tt.queue, "{}", "--key", tt.key)
		}
		out := r.must(append(strings.Fields(tt.args), look...)...)
		if want := `"ttl_ms":` + strconv.Itoa(tt.want) + ","; !strings.Contains(out, want) {
			t.Errorf("%s, key %s: want %s in\n%s", tt.args, tt.key, want, out)
		}
	}
}
