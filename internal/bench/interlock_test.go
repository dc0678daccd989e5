package bench

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/postgrestest"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

// tiny is as little load as shows that a scenario works.
var tiny = Config{
	Agents: []int{8}, Leases: []int{250}, Duration: 20 * time.Millisecond, Repeat: 1,
	Replay: Replay{Speed: 100, Entities: 5}, Merge: Merge{Files: 20, Submissions: 4},
}

// targetsOf are Interlock through transports, and the yardstick.
func targetsOf(t *testing.T, s Scenario, transports []Transport) []Target {
	binary := launchtest.Binary(t)
	var targets []Target
	for _, transport := range transports {
		targets = append(targets, Interlock{Transport: transport, Binary: binary})
	}
	if s.Yardstick {
		targets = append(targets, Echo{Command: []string{binary, "bench", "echo"}})
	}
	return targets
}

// ordered checks that a case's quantiles of one thing do not fall.
func ordered(t *testing.T, figures []Figure, names ...string) {
	t.Helper()
	for i := range names[1:] {
		if low, high := find(t, figures, names[i]), find(t, figures, names[i+1]); low.Median > high.Median || low.Median < 0 {
			t.Errorf("%s: %s is %v, and %s is %v", low.Target, low.Name, low.Median, high.Name, high.Median)
		}
	}
}

// kept checks that no lease was lost, and that holding them is not written.
func kept(t *testing.T, figures []Figure) {
	t.Helper()
	for _, name := range []string{"leases lost", "bundled appended", "single appended"} {
		if f := find(t, figures, name); f.Max != 0 {
			t.Errorf("%s: %s is %v", f.Target, name, f.Max)
		}
	}
	if f := find(t, figures, "appended per lease"); f.Min <= 0 {
		t.Errorf("%s: a lease takes %v bytes of the journal", f.Target, f.Min)
	}
}

// Every scenario runs against real servers, through every transport that it knows, and its results
// can be true.
func TestScenarios(t *testing.T) {
	both := []Transport{Stream, Connections}
	tests := []struct {
		scenario   Scenario
		transports []Transport
		cases      int
		positive   []string
		check      func(t *testing.T, figures []Figure)
	}{
		{floorScenario, nil, 4, []string{"p50"}, nil},
		{cycleScenario, Transports, 5, []string{"cycles", "p50"}, nil},
		{handoffScenario, Transports, 4, []string{"owner changes", "p50"}, func(t *testing.T, figures []Figure) {
			ordered(t, figures, "p50", "p99", "max")
			if f := find(t, figures, "overtaking"); f.Max != 0 {
				t.Errorf("%s: %v %% of the grants overtook somebody", f.Target, f.Max)
			}
			if f := find(t, figures, "Jain"); f.Median < .99 || f.Max > 1 {
				t.Errorf("%s: Jain's index is %v, in the worst run %v", f.Target, f.Median, f.Min)
			}
		}},
		{commitScenario, both, 2, []string{"commits", "p50"}, nil},
		{taskScenario, []Transport{Stream}, 1, []string{"tasks", "p50"}, nil},
		{askScenario, []Transport{Stream}, 1, []string{"replies", "p50"}, nil},
		{keepaliveScenario, both, 2, []string{"sessions"}, func(t *testing.T, figures []Figure) {
			if f := find(t, figures, "journal growth"); f.Max != 0 {
				t.Errorf("%s: the journal grew by %v bytes", f.Target, f.Max)
			}
		}},
		{memoryScenario, []Transport{Stream}, 1, []string{"key"}, nil},
		{growthScenario, []Transport{Stream}, 2, []string{"cycles", "time ÷ least", "engine", "engine ÷ least"}, nil},
		{viewersScenario, []Transport{Stream}, 1, []string{"ratio", "picture", "pictures with changes"}, nil},
		{restartScenario, []Transport{Stream, HTTP}, 4, []string{"first answer", "resident"}, nil},
		{scaleScenario, []Transport{Stream}, 1, []string{"namespaces moved", "fail-over p50"}, kept},
		{replayScenario, []Transport{Stream}, 4, []string{"hold p50", "tries each"}, func(t *testing.T, figures []Figure) {
			ordered(t, figures, "wait p50", "wait p99", "wait max")
			ordered(t, figures, "hold p50", "hold p99")
			if f := find(t, figures, "tries each"); f.Min < 1 {
				t.Errorf("%s: %v tries each", f.Target, f.Min)
			}
		}},
		{mergeScenario, []Transport{Stream}, 5, []string{"landings", "took"}, nil},
	}
	if len(tests) != len(Scenarios) {
		t.Errorf("%d scenarios are tested, there are %d", len(tests), len(Scenarios))
	}
	for _, tt := range tests {
		t.Run(tt.scenario.Name, func(t *testing.T) {
			cfg := tiny
			switch tt.scenario.Name {
			case handoffScenario.Name:
				cfg.Agents = []int{64} // an agent is hardly ever away for so long that a round goes by,
				cfg.Repeat = 3         // and not in two runs of three,
				// which have several rounds: in one of 64, two agents that change places make .97.
				cfg.Duration = 300 * time.Millisecond
			case growthScenario.Name:
				cfg.Leases = []int{100, 1000}
			case viewersScenario.Name:
				cfg.Leases, cfg.Viewers = []int{300}, 3
			case replayScenario.Name:
				cfg.Duration = 100 * time.Millisecond
			}
			all, err := tt.scenario.Run(t.Context(), cfg, targetsOf(t, tt.scenario, tt.transports))
			if err != nil {
				t.Fatal(err)
			}
			cases := 0
			for len(all) > 0 {
				n := 1
				for n < len(all) && all[n].Load == all[0].Load && all[n].Target == all[0].Target {
					n++
				}
				for _, name := range tt.positive {
					if f := find(t, all[:n], name); f.Min <= 0 || f.Runs != cfg.Repeat {
						t.Errorf("%s, %s: %s is %v in %d runs", f.Load, f.Target, name, f.Min, f.Runs)
					}
				}
				if tt.check != nil {
					tt.check(t, all[:n])
				}
				cases, all = cases+1, all[n:]
			}
			if cases != tt.cases {
				t.Errorf("%d cases, want %d", cases, tt.cases)
			}
		})
	}
}

// The servers over one engine die in turn. Their sessions go on at the others, and lose nothing.
func TestScaleOverServers(t *testing.T) {
	journal := postgrestest.Start(t, "-c", "fsync=on").URL(t)
	cfg := Config{Sessions: 200, Leases: []int{1000}, Servers: 2, Shards: 2, Duration: 20 * time.Millisecond}
	target := Interlock{Transport: Stream, Binary: launchtest.Binary(t), Journal: journal}
	figures, err := scaleScenario.Run(t.Context(), cfg, []Target{target})
	if err != nil {
		t.Fatal(err)
	}
	kept(t, figures)
	if f := find(t, figures, "namespaces moved"); f.Median < leastTrunks/2 || f.Median > 2*leastTrunks {
		t.Errorf("%v namespaces moved", f.Median)
	}
}

// Sessions and leases are shared out to the last one, and no stream has too many.
func TestSwarm(t *testing.T) {
	for _, tt := range []struct{ sessions, leases, trunks int }{
		{1, 1, 1}, {7, 20, 7}, {100_000, 1_000_000, 100}, {100_050, 999_999, 101}, {250_000, 10, 250},
	} {
		w := newSwarm(nil, tt.sessions, tt.leases)
		sessions, leases := 0, 0
		for _, s := range w.trunks {
			if len(s.members) > perTrunk {
				t.Errorf("%+v: a stream has %d sessions", tt, len(s.members))
			}
			sessions += len(s.members)
			for _, m := range s.members {
				if m.first != leases {
					t.Errorf("%+v: the first lease is %d, want %d", tt, m.first, leases)
				}
				leases += m.want
			}
		}
		if sessions != tt.sessions || leases != tt.leases || len(w.trunks) != tt.trunks {
			t.Errorf("%+v: %d sessions, %d leases, %d namespaces", tt, sessions, leases, len(w.trunks))
		}
	}
}

// A server that runs already is used as it is, and left running.
func TestRunningServer(t *testing.T) {
	s := launchtest.Start(t, launch.Config{DataDir: t.TempDir()})
	at := &Address{HTTP: s.HTTP, GRPC: s.GRPC, Namespace: "bench"}
	var targets []Target
	for _, transport := range Transports {
		targets = append(targets, Interlock{Transport: transport, Running: at})
	}
	if _, err := cycleScenario.Run(t.Context(), tiny, targets); err != nil {
		t.Fatal(err)
	}
	site, err := targets[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := site.(Restarter).End(t.Context(), true); err == nil {
		t.Error("a server that is not ours was ended")
	}
	if u, err := site.Usage(t.Context()); err != nil || u.Written == 0 || u.Resident == 0 {
		t.Errorf("it has used %+v, error %v", u, err)
	}
}

// Nothing is left of a server of our own.
func TestOwnServerGoes(t *testing.T) {
	binary := launchtest.Binary(t)
	t.Setenv("TMPDIR", t.TempDir())
	site, err := Interlock{Transport: Stream, Binary: binary}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server := site.(*interlockSite).server
	if err := site.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-server.Ended():
	default:
		t.Error("the server runs on")
	}
	if left, err := filepath.Glob(os.Getenv("TMPDIR") + "/*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestTryIsRefused(t *testing.T) {
	for _, transport := range Transports {
		site, err := Interlock{Transport: transport, Binary: launchtest.Binary(t)}.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = site.Close() }()
		crew, err := site.Crew(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		defer crew.Close()
		lock, err := crew.Agents[0].Try(t.Context(), "k")
		if err != nil {
			t.Fatalf("%s: %v", transport, err)
		}
		if _, err := crew.Agents[1].Try(t.Context(), "k"); !errors.Is(err, ErrHeld) {
			t.Errorf("%s: error %v", transport, err)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Errorf("%s: %v", transport, err)
		}
	}
}
