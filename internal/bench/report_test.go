package bench

import (
	"bytes"
	"testing"
)

var fixed = Report{
	Machine: Machine{Processor: "Abacus 9", Cores: 2, System: "linux/amd64 6.1", Go: "go1.26", Commit: "0123456789ab"},
	Command: []string{"interlock", "bench", "cycle"},
	Server:  "a server of our own for each run, every answer synced to its disk",
	Figures: []Figure{
		{"cycle", "1 agent", "interlock stream", "cycles", PerSecond, 1400, 1388, 1412.4, 3, []float64{1400, 1412.4, 1388}},
		{"cycle", "1 agent", "interlock stream", "p50", Microseconds, 670.12, 650, 700.6, 3, nil},
		{"cycle", "1,000 agents", "net/http echo", "cycles", PerSecond, 1234567, 99.96, 1234568, 3, nil},
		{"cycle", "1,000 agents", "net/http echo", "Jain", Index, .98765, .98765, .98765, 1, nil},
		{"cycle", "1,000 agents", "net/http echo", "growth", Bytes, -12345.6, -12345.6, -12345.6, 1, nil},
	},
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	if err := fixed.WriteHead(&b); err != nil {
		t.Fatal(err)
	}
	s := Scenario{
		Name:  "cycle",
		About: "Agents acquire and release a key of their own, over and over: what a lease costs when nobody is in the way.",
	}
	if err := WriteTable(&b, s, fixed.Figures); err != nil {
		t.Fatal(err)
	}
	const want = `Abacus 9, 2 cores, linux/amd64 6.1, go1.26, commit 0123456789ab
interlock bench cycle
a server of our own for each run, every answer synced to its disk

cycle
  Agents acquire and release a key of their own, over and over: what a lease costs when nobody is in
  the way.

  LOAD          TARGET                            CYCLES /s         P50 us   JAIN  GROWTH B
  1 agent       interlock stream        1,400 (1,388–1,412)  670 (650–701)
  1,000 agents  net/http echo     1,234,567 (100–1,234,568)                 0.988   -12,346
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

// A row without a value leaves its cell empty, also when the heading is that of a later
// row.
func TestTableWithGaps(t *testing.T) {
	var b bytes.Buffer
	err := WriteTable(&b, Scenario{Name: "s", About: "a"}, []Figure{
		NewFigure("s", "1", "x", "late", Plain, []float64{1}),
		NewFigure("s", "1", "y", "early", Plain, []float64{2}),
		NewFigure("s", "1", "y", "late", Plain, []float64{3}),
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `
s
  a

  LOAD  TARGET  LATE  EARLY
  1     x          1
  1     y          3      2
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	r := fixed
	r.Figures = r.Figures[:1]
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	const want = `{"machine":{"processor":"Abacus 9","cores":2,"system":"linux/amd64 6.1","go":"go1.26","commit":"0123456789ab"},` +
		`"command":["interlock","bench","cycle"],"server":"a server of our own for each run, every answer synced to its disk",` +
		`"figures":[{"scenario":"cycle","load":"1 agent","target":"interlock stream","name":"cycles","unit":"/s",` +
		`"median":1400,"min":1388,"max":1412.4,"runs":3,"each":[1400,1412.4,1388]}]}` + "\n"
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}
