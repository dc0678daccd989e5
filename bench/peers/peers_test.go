package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/etcdmain"

	"github.com/interlockdev/interlock/internal/bench"
	"github.com/interlockdev/interlock/internal/test/tools"
)

var binary = flag.String("binary", "../../bin/interlock", "the interlock program: make build makes it")

func TestMain(m *testing.M) {
	if os.Getenv(asMember) != "" {
		etcdmain.Main(os.Args)
		return
	}
	os.Exit(m.Run())
}

// Every installed peer can be measured in all its scenarios. Those with a line are seen to keep
// it, which proves that the bench learns when an agent stands in it.
func TestPeersAreMeasured(t *testing.T) {
	cfg := bench.Config{Agents: []int{3}, Leases: []int{200}, Duration: 5 * time.Millisecond, Repeat: 1}
	for _, p := range peers(*binary) {
		t.Run(p.Peer, func(t *testing.T) {
			installed(t, p)
			scenarios, err := bench.Named(p.scenarios)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range scenarios {
				figures, err := s.Run(t.Context(), cfg, []bench.Target{p})
				if err != nil {
					t.Fatal(err)
				}
				if len(figures) == 0 {
					t.Errorf("%s has no figures", s.Name)
				}
				for _, f := range figures {
					if f.Name == "overtaking" && p.Peer == "etcd" && f.Max != 0 {
						t.Errorf("%v %% overtake", f.Max)
					}
					if f.Name == "cycles" && f.Min <= 0 {
						t.Errorf("%v cycles a second", f.Min)
					}
				}
			}
		})
	}
}

// The agents of every peer exclude one another, and an agent that has to wait is reported as
// queued before it holds.
func TestAgentsExcludeOneAnother(t *testing.T) {
	const agents, turns = 4, 3
	for _, p := range peers(*binary) {
		t.Run(p.Peer, func(t *testing.T) {
			installed(t, p)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			site, err := p.Open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := site.Close(); err != nil {
					t.Error(err)
				}
			}()
			crew, err := site.Crew(ctx, agents)
			if err != nil {
				t.Fatal(err)
			}
			defer crew.Close()

			lock, err := crew.Agents[0].Try(ctx, "key")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := crew.Agents[1].Try(ctx, "key"); !errors.Is(err, bench.ErrHeld) {
				t.Fatalf("the key was held, and the second agent got %v", err)
			}
			var (
				inside  atomic.Int32
				running sync.WaitGroup
				inLine  = make(chan struct{}, agents*turns)
			)
			for _, a := range crew.Agents[1:] {
				running.Go(func() {
					for range turns {
						lock, err := a.Acquire(ctx, "key", func() { inLine <- struct{}{} })
						if err != nil {
							t.Error(err)
							return
						}
						if n := inside.Add(1); n != 1 {
							t.Errorf("%d hold the key", n)
						}
						inside.Add(-1)
						if err := lock.Release(ctx); err != nil {
							t.Error(err)
						}
					}
				})
			}
			for range agents - 1 { // while the first one holds
				select {
				case <-inLine:
				case <-ctx.Done():
					t.Fatal("nobody says that it stands in line")
				}
			}
			if err := lock.Release(ctx); err != nil {
				t.Error(err)
			}
			running.Wait()
		})
	}
}

func installed(t *testing.T, p *peer) {
	t.Helper()
	switch name := p.service.missing(); name {
	case "":
	case "postgresql":
		tools.Need(t, "postgres")
	default:
		tools.Need(t, name)
	}
}

// A run of the program reports what it compared, and leaves no files or processes behind.
func TestRun(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	args := []string{
		"-binary", *binary, "-only", "etcd", "-agents", "2", "-duration", "5ms", "-repeat", "2", "-o", "json", "cycle",
		"handoff",
	}
	if err := run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Peers) != 2 || r.Peers[0].Peer != "etcd" || !strings.HasPrefix(r.Peers[0].Durable, "yes") ||
		len(r.Missing) != 0 {
		t.Errorf("peers %+v, missing %v", r.Peers, r.Missing)
	}
	if len(r.Figures) == 0 || len(r.Ratios) == 0 || r.Ratios[0].Target != "interlock stream ÷ etcd" ||
		r.Ratios[0].Runs != 2 || r.Ratios[0].Min <= 0 {
		t.Errorf("ratios %+v", r.Ratios)
	}
	file := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for form, want := range map[string][]string{
		"table":    {"cycle: ours ÷ the peer's", "handoff\n", "durable yes: synced"},
		"markdown": {"| etcd | yes | ", "2 agents, cycles/s", "2 agents, overtaking % / Jain"},
	} {
		out.Reset()
		if err := run(t.Context(), []string{"-from", file, "-o", form}, &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%s has no %q:\n%s", form, part, out.String())
			}
		}
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A missing peer is reported by the name of its package.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", "")
	err := run(t.Context(), []string{"-binary", *binary, "-only", "redis"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "redis-server") {
		t.Errorf("error %v", err)
	}
}

// Ratios are of runs that stood side by side, and of nothing that has none.
func TestRatios(t *testing.T) {
	figure := func(load, target, name string, unit bench.Unit, each ...float64) bench.Figure {
		return bench.NewFigure("s", load, target, name, unit, each)
	}
	got := ratios([]bench.Figure{
		figure("1", "ours", "speed", bench.PerSecond, 10, 40, 90),
		figure("1", "ours", "Jain", bench.Index, 1, 1, 1),
		figure("1", "ours", "overtaking", bench.Percent, 0, 0, 0),
		figure("1", "peer", "speed", bench.PerSecond, 10, 20, 30),
		figure("1", "peer", "Jain", bench.Index, 1, 1, 1),
		figure("1", "peer", "overtaking", bench.Percent, 5, 0, 5),
		figure("2", "peer", "speed", bench.PerSecond, 1, 1, 1),
	}, func(target string) bool { return target == "ours" })
	if len(got) != 1 {
		t.Fatalf("%d ratios: %+v", len(got), got)
	}
	if r := got[0]; r.Target != "ours ÷ peer" || r.Load != "1" || r.Median != 2 || r.Min != 1 || r.Max != 3 {
		t.Errorf("%+v", r)
	}
}

// A plan's loads are its own or the command line's, one at a time, and a peer that does not fit
// one is left out of that one only.
func TestLoads(t *testing.T) {
	tests := []struct {
		scenario string
		cfg      bench.Config
		agents   []int
		leases   []int
	}{
		{"handoff", bench.Config{}, []int{2, 10, 100, 1000}, nil},
		{"handoff", bench.Config{Agents: []int{7}, Leases: []int{9}}, []int{7}, nil},
		{"keepalive", bench.Config{}, nil, []int{10_000, 100_000}},
		{"keepalive", bench.Config{Agents: []int{7}, Leases: []int{9}}, nil, []int{9}},
	}
	for _, tt := range tests {
		var agents, leases []int
		for _, l := range named([]string{tt.scenario})[0].loads(tt.cfg) {
			if l.agents != 0 {
				agents = append(agents, l.cfg.Agents...)
			} else {
				leases = append(leases, l.cfg.Leases...)
			}
		}
		if !reflect.DeepEqual(agents, tt.agents) || !reflect.DeepEqual(leases, tt.leases) {
			t.Errorf("%s with %+v: agents %v, leases %v", tt.scenario, tt.cfg, agents, leases)
		}
	}
	p := &peer{scenarios: []string{"handoff"}, most: 100}
	if !p.takesPart("handoff", 100) || p.takesPart("handoff", 101) || p.takesPart("cycle", 1) {
		t.Error("who takes part is not who has a place")
	}
}

// A cell has the medians and the ratio; a load without measurements has none, and common
// figures are those of the largest load that all have.
func TestMarkdown(t *testing.T) {
	figure := func(load, target, name string, each ...float64) bench.Figure {
		return bench.NewFigure("handoff", load, target, name, bench.Microseconds, each)
	}
	r := report{Peers: []promise{{Peer: "peer", Durable: "no: nothing"}}}
	r.Figures = []bench.Figure{
		figure("2 agents", "interlock stream", "p50", 10, 20, 30), figure("2 agents", "interlock stream", "p99", 40),
		figure("2 agents", "peer", "p50", 20, 20, 20), figure("2 agents", "peer", "p99", 80),
		figure("10 agents", "interlock stream", "p50", 5), figure("10 agents", "interlock stream", "p99", 6),
	}
	r.Ratios = ratios(r.Figures[:4], ours)
	var out strings.Builder
	if err := r.writeMarkdown(&out); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"| interlock stream | yes | 20 / 40 | 5 / 6 | – | – | – |\n",
		"| peer | no | 20 / 80 (1: 0.500–1.50) | – | – | – | – |\n",
		"| 10 agents, p50 / p99 µs | 2 agents, owner changes/s |",
	} {
		if !strings.Contains(out.String(), row) {
			t.Errorf("no %q in\n%s", row, out.String())
		}
	}
}
