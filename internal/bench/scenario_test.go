package bench

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/trace"
)

// find returns a figure by its name.
func find(t *testing.T, figures []Figure, name string) Figure {
	t.Helper()
	i := slices.IndexFunc(figures, func(f Figure) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("no figure %q in %+v", name, figures)
	}
	return figures[i]
}

// A target that hands keys to the last that came is seen to do so, and one that keeps a line,
// too.
func TestHandoffTellsFairFromUnfair(t *testing.T) {
	for _, lastIn := range []bool{false, true} {
		t.Run(fmt.Sprintf("lastIn=%t", lastIn), func(t *testing.T) {
			figures, err := handoffScenario.Run(
				t.Context(), Config{Agents: []int{8}, Duration: 10 * time.Millisecond, Repeat: 1},
				[]Target{fakeTarget{"fake", lastIn}},
			)
			if err != nil {
				t.Fatal(err)
			}
			overtaking, fair := find(t, figures, "overtaking").Median, find(t, figures, "Jain").Median
			if !lastIn && overtaking != 0 {
				t.Errorf("a line: %v %% overtake", overtaking)
			}
			if lastIn && (overtaking < 50 || fair > .9) {
				t.Errorf("no line: %v %% overtake, Jain's index is %v", overtaking, fair)
			}
			if changes := find(t, figures, "owner changes").Median; changes <= 0 {
				t.Errorf("%v owner changes a second", changes)
			}
		})
	}
}

// An agent that takes a key again that it has just released has handed it to no other.
func TestHandoffIsToSomebodyElse(t *testing.T) {
	r := newRelay(2, time.Hour)
	now := time.Now()
	r.began, r.released = now, now
	for asked, agent := range []int{0, 0, 1, 1, 0} {
		r.granted(agent, uint64(asked), now, now.Add(time.Millisecond))
	}
	if r.took.Count() != 2 || r.counted != 5 {
		t.Errorf("%d hand-offs in %d grants, want 2 in 5", r.took.Count(), r.counted)
	}
}

// A relay ends with a whole round, unless that takes too long: then it calls off the rest.
func TestHandoffEnds(t *testing.T) {
	for _, late := range []bool{false, true} {
		var cut error
		r := newRelay(3, time.Second)
		r.cut = func(err error) { cut = err }
		r.began = time.Now()
		times := []time.Duration{1, 2, 3}
		if late {
			times = []time.Duration{1, 11}
		}
		for i, at := range times {
			if r.over {
				t.Errorf("late=%t: it was over after %d grants", late, i)
			}
			r.granted(i, uint64(i), r.began, r.began.Add(at*time.Second))
		}
		if !r.over || (cut != nil) != late {
			t.Errorf("late=%t: over is %t, and the others were called off: %v", late, r.over, cut)
		}
	}
}

func TestJain(t *testing.T) {
	tests := []struct {
		shares []int
		want   float64
	}{
		{[]int{5, 5, 5, 5}, 1},
		{[]int{8, 0, 0, 0}, .25},
		{[]int{2, 1}, .9},
		{[]int{0, 0}, 0},
	}
	for _, tt := range tests {
		if got := jain(tt.shares); got < tt.want-1e-9 || got > tt.want+1e-9 {
			t.Errorf("Jain's index of %v is %v, want %v", tt.shares, got, tt.want)
		}
	}
}

func TestRunsAlternate(t *testing.T) {
	var order []string
	values := map[string][]float64{"a": {3, 1, 2}, "b": {4, 8, 4}, "c": {1, 1, 1}}
	step := func(load, target string) Case {
		return Case{Load: load, Target: target, Repeat: 3, run: func(context.Context) ([]Value, error) {
			order = append(order, target)
			v := values[target][0]
			values[target] = values[target][1:]
			return []Value{{"speed", PerSecond, v}}, nil
		}}
	}
	s := Scenario{Name: "s", cases: func(Config, []Target) ([]Case, error) {
		return []Case{step("1", "a"), step("1", "b"), step("2", "c")}, nil
	}}
	var said []string
	figures, err := s.Run(t.Context(), Config{Progress: func(text string) { said = append(said, text) }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, ""); got != "abababccc" {
		t.Errorf("the runs came as %s", got)
	}
	if len(said) != 9 || said[3] != "s: 1, b, run 2 of 3" {
		t.Errorf("said %q", said)
	}
	want := []Figure{
		{"s", "1", "a", "speed", PerSecond, 2, 1, 3, 3, []float64{3, 1, 2}},
		{"s", "1", "b", "speed", PerSecond, 4, 4, 8, 3, []float64{4, 8, 4}},
		{"s", "2", "c", "speed", PerSecond, 1, 1, 1, 3, []float64{1, 1, 1}},
	}
	if !reflect.DeepEqual(figures, want) {
		t.Errorf("figures %+v, want %+v", figures, want)
	}
}

func TestRunKeepsWhatWasComplete(t *testing.T) {
	broken := errors.New("broken")
	step := func(load string, err error) Case {
		return Case{
			Load: load, Repeat: 1, run: func(context.Context) ([]Value, error) { return []Value{{"n", Plain, 1}}, err },
		}
	}
	s := Scenario{
		Name: "s", cases: func(Config, []Target) ([]Case, error) { return []Case{step("1", nil), step("2", broken)}, nil },
	}
	figures, err := s.Run(t.Context(), Config{}, nil)
	if !errors.Is(err, broken) || len(figures) != 1 {
		t.Errorf("%d figures and error %v", len(figures), err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, cfg := range []Config{
		{Agents: []int{1, 0}}, {Leases: []int{-1}}, {Duration: -1}, {Repeat: -1}, {Replay: Replay{Skew: -1}},
	} {
		if _, err := cycleScenario.Run(t.Context(), cfg, []Target{fakeTarget{}}); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

func TestNamed(t *testing.T) {
	list, err := Named([]string{"handoff", "cycle", "handoff"})
	if err != nil || len(list) != 2 || list[0].Name != "cycle" || list[1].Name != "handoff" {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := Named([]string{"nonsense"}); err == nil || !strings.Contains(err.Error(), "floor, cycle") {
		t.Errorf("error %v", err)
	}
	if _, err := Named(Short); err != nil {
		t.Error(err)
	}
	for _, s := range Scenarios {
		if s.Name == "" || s.Short == "" || s.About == "" || s.cases == nil {
			t.Errorf("scenario %q lacks something", s.Name)
		}
	}
}

// The first error of an agent ends the others, and is the one that is reported.
func TestDriveTellsWhatWentWrong(t *testing.T) {
	broken := errors.New("broken")
	_, _, err := drive(t.Context(), 4, time.Hour, func(ctx context.Context, i int) error {
		if i == 2 {
			return broken
		}
		return ctx.Err()
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if err := each(t.Context(), 100, 4, func(_ context.Context, i int) error {
		if i == 50 {
			return broken
		}
		return nil
	}); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestPolling(t *testing.T) {
	site, _ := fakeTarget{}.Open(t.Context())
	crew, _ := site.Crew(t.Context(), 2)
	first, err := crew.Agents[0].Acquire(t.Context(), "k", nil)
	if err != nil {
		t.Fatal(err)
	}
	tries, queued := 0, 0
	p := PollingAgent{Agent: crew.Agents[1], Tried: func() { tries++ }, Pause: func() time.Duration {
		if tries == 3 {
			if err := first.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		return 0
	}}
	lock, err := p.Acquire(t.Context(), "k", func() { queued++ })
	if err != nil || tries != 4 || queued != 1 {
		t.Fatalf("%d tries, %d times queued, error %v", tries, queued, err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestChoice(t *testing.T) {
	r := Replay{Speed: 2, Entities: 4, Skew: 1}
	n := make([]int, 4)
	for _, v := range r.visits(make([]trace.Request, 25_000), 0) {
		n[v.entity]++
	}
	for k, got := range n { // 1, 1/2, 1/3 and 1/4 of 25/12
		if want := 12_000 / (k + 1); got < want-400 || got > want+400 {
			t.Errorf("entity %d was chosen %d times, want about %d", k, got, want)
		}
	}
}

func TestVisits(t *testing.T) {
	requests := []trace.Request{{At: 0, Context: 5000, Generated: 50}, {At: 4 * time.Second}, {At: 10 * time.Second}}
	visits := Replay{Speed: 2, Entities: 1}.visits(requests, 3*time.Second)
	want := []visit{{0, 1250 * time.Millisecond, 0}, {2 * time.Second, 250 * time.Millisecond, 0}}
	if !slices.Equal(visits, want) {
		t.Errorf("visits %v, want %v", visits, want)
	}
}
