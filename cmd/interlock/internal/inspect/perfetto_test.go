package inspect

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
)

// slice is an event of the format, decoded strictly: no other fields, numbers where the format wants numbers.
type slice struct {
	Phase    string         `json:"ph"`
	Name     *string        `json:"name"`
	Category string         `json:"cat"`
	Time     *int64         `json:"ts"`
	Length   *int64         `json:"dur"`
	Process  *int           `json:"pid"`
	Thread   *int           `json:"tid"`
	ID       int            `json:"id"`
	Bind     string         `json:"bp"`
	Scope    string         `json:"s"`
	Args     map[string]any `json:"args"`
}

// checkPerfetto decodes a file, and checks what the format demands: times, threads with names, slices that lie within
// each other, and flows with both ends inside of slices.
func checkPerfetto(file []byte) ([]slice, error) {
	var f struct {
		Events []slice `json:"traceEvents"`
		Unit   string  `json:"displayTimeUnit"`
	}
	d := json.NewDecoder(strings.NewReader(string(file)))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, err
	}
	if f.Unit != "ms" && f.Unit != "ns" {
		return nil, fmt.Errorf("the unit is %q", f.Unit)
	}
	named, threads, flows := map[int]bool{}, map[int][]slice{}, map[int]*slice{}
	for i := range f.Events {
		e := &f.Events[i]
		if e.Name == nil || *e.Name == "" || e.Time == nil || e.Process == nil || e.Thread == nil || *e.Process != 1 {
			return nil, fmt.Errorf("event %d has no name, time, process or thread: %+v", i, e)
		}
		switch e.Phase {
		case "M":
			if text, ok := e.Args["name"].(string); !ok || text == "" {
				return nil, fmt.Errorf("event %d names nothing", i)
			}
			named[*e.Thread] = true
		case "X":
			if e.Length == nil || *e.Length < 0 || !named[*e.Thread] {
				return nil, fmt.Errorf("slice %d has no length, or its thread no name", i)
			}
			for _, o := range threads[*e.Thread] {
				a, b, c, d := *o.Time, *o.Time+*o.Length, *e.Time, *e.Time+*e.Length
				if c < a || c < b && d > b {
					return nil, fmt.Errorf("slice %d, %d to %d, overlaps another, %d to %d", i, c, d, a, b)
				}
			}
			threads[*e.Thread] = append(threads[*e.Thread], *e)
		case "s", "f":
			inside := false
			for _, o := range threads[*e.Thread] {
				inside = inside || *o.Time <= *e.Time && *e.Time <= *o.Time+*o.Length
			}
			if e.ID == 0 || !inside || (e.Phase == "f") != (e.Bind == "e") {
				return nil, fmt.Errorf("the end of a flow %+v is at no slice", e)
			}
			switch start := flows[e.ID]; {
			case e.Phase == "s" && start == nil:
				flows[e.ID] = e
			case e.Phase == "f" && start != nil && *start.Time <= *e.Time:
				delete(flows, e.ID)
			default:
				return nil, fmt.Errorf("flow %d has one end, or ends before it begins", e.ID)
			}
		case "i":
			if !strings.Contains("gpt", e.Scope) || e.Scope == "" {
				return nil, fmt.Errorf("event %d has the scope %q", i, e.Scope)
			}
		case "C":
			if n, ok := e.Args["waiters"].(float64); !ok || n < 0 {
				return nil, fmt.Errorf("event %d counts %v", i, e.Args)
			}
		default:
			return nil, fmt.Errorf("event %d is of phase %q", i, e.Phase)
		}
	}
	if len(flows) > 0 {
		return nil, fmt.Errorf("%d flows have no end", len(flows))
	}
	return f.Events, nil
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(ms int) time.Time   { return noon.Add(time.Duration(ms) * time.Millisecond) }
func end(ms int) *time.Time { t := at(ms); return &t }

func TestPerfetto(t *testing.T) {
	claims := []api.Claim{{Key: "account:\"1\"", Mode: "exclusive"}}
	file, err := perfetto("default", &api.Timeline{
		Since: at(0), Until: at(9000),
		Bars: []api.TimelineBar{
			{
				Kind: "hold", Agent: "billing-7", Flow: "main", Claims: claims, From: at(0), To: end(4000), Outcome: "released",
				Fence: 7,
			},
			{Kind: "wait", Agent: "support-2", Claims: claims, From: at(1000), To: end(4000), Outcome: "granted"},
			{Kind: "hold", Agent: "support-2", Claims: claims, From: at(4000)},
		},
		Marks: []api.TimelineMark{
			{Kind: "yield_asked", Agent: "billing-7", Time: at(1000), Text: "</script>"},
			{Kind: "owner", Time: at(0), Text: "x"},
		},
		Links: []api.TimelineLink{{Kind: "blocked_by", From: 1, To: 0}, {Kind: "handed_on", From: 0, To: 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	events, err := checkPerfetto(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	var got []string
	for _, e := range events {
		line := fmt.Sprintf("%s %s %d %d", e.Phase, *e.Name, *e.Thread, max(0, *e.Time-noon.UnixMicro()))
		if e.Length != nil {
			line += fmt.Sprint("+", *e.Length)
		}
		if text, ok := e.Args["name"]; ok {
			line += fmt.Sprint(" ", text)
		}
		if n, ok := e.Args["waiters"]; ok {
			line += fmt.Sprint(" ", n)
		}
		got = append(got, line)
	}
	want := `M process_name 0 0 namespace default
M thread_name 1 0 billing-7 main
X hold account:"1" 1 0+4000000
M thread_name 2 0 support-2
X wait account:"1" 2 1000000+3000000
X hold account:"1" 2 4000000+5000000
s handed on 1 3999999
f handed on 2 4000000
i yield_asked 1 1000000
i owner 0 0
C waiters 0 1000000 1
C waiters 0 4000000 0`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// Whatever overlaps, the slices of a thread lie within each other or apart.
func TestPerfettoThreads(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		tl := &api.Timeline{Until: at(500)}
		for i := range 60 {
			b := api.TimelineBar{
				Kind: "hold", Agent: fmt.Sprint("agent-", rng.IntN(3)), From: at(i * 3), Fence: interlock.Fence(i + 1),
			}
			if rng.IntN(5) > 0 {
				b.To = end(i*3 + rng.IntN(40))
			}
			tl.Bars = append(tl.Bars, b)
			for k := range tl.Bars[:i] {
				if to := tl.Bars[k].To; to != nil && !to.After(b.From) && rng.IntN(20) == 0 {
					tl.Links = append(tl.Links, api.TimelineLink{Kind: "handed_on", From: k, To: i})
				}
			}
		}
		file, err := perfetto("default", tl)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := checkPerfetto(file); err != nil {
			t.Fatal(err)
		}
	}
}
