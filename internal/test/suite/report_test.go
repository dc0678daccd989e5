package main

import (
	"strings"
	"testing"
	"time"
)

// The output of go test, shortened, and the tool's summary of it.
func TestReport(t *testing.T) {
	const p = `"Package":"github.com/interlockdev/interlock/engine"`
	tests := []struct {
		name  string
		in    []string
		want  string
		ok    bool
		short bool
	}{
		{
			name: "passing tests are counted by their leaves",
			in: []string{
				`{"Action":"start",` + p + `}`,
				`{"Action":"run",` + p + `,"Test":"TestA"}`,
				`{"Action":"run",` + p + `,"Test":"TestA/x"}`,
				`{"Action":"run",` + p + `,"Test":"TestA/y"}`,
				`{"Action":"output",` + p + `,"Test":"TestA/y","Output":"noise\n"}`,
				`{"Action":"pass",` + p + `,"Test":"TestA/x"}`,
				`{"Action":"pass",` + p + `,"Test":"TestA/y"}`,
				`{"Action":"pass",` + p + `,"Test":"TestA"}`,
				`{"Action":"pass",` + p + `,"Elapsed":1.5}`,
			},
			want: "ok    engine                                           2 passed     1.5s\nunit: 2 passed, 0 failed\n",
			ok:   true,
		},
		{
			name: "what tests did is counted",
			in: []string{
				`{"Action":"run",` + p + `,"Test":"TestA"}`,
				`{"Action":"attr",` + p + `,"Test":"TestA","Key":"count.seeds","Value":"400"}`,
				`{"Action":"attr",` + p + `,"Test":"TestA","Key":"colour","Value":"red"}`,
				`{"Action":"pass",` + p + `,"Test":"TestA"}`,
				`{"Action":"run",` + p + `,"Test":"TestB"}`,
				`{"Action":"attr",` + p + `,"Test":"TestB","Key":"count.seeds","Value":"8"}`,
				`{"Action":"attr",` + p + `,"Test":"TestB","Key":"count.faults.cut","Value":"3"}`,
				`{"Action":"pass",` + p + `,"Test":"TestB"}`,
				`{"Action":"pass",` + p + `,"Elapsed":1.5}`,
			},
			want: "ok    engine                                           2 passed     1.5s\n" +
				"           3 faults.cut\n         408 seeds\nunit: 2 passed, 0 failed\n",
			ok: true,
		},
		{
			name: "a count that is no number",
			in: []string{
				`{"Action":"run",` + p + `,"Test":"TestA"}`,
				`{"Action":"attr",` + p + `,"Test":"TestA","Key":"count.seeds","Value":"many"}`,
				`{"Action":"pass",` + p + `,"Test":"TestA"}`,
				`{"Action":"pass",` + p + `,"Elapsed":0.1}`,
			},
			want: "ok    engine                                           1 passed     0.1s\n\n--- unexpected output\n" +
				"TestA of github.com/interlockdev/interlock/engine counts \"many\"\n\nunit: 1 passed, 1 failed\n",
		},
		{
			name: "the failing test's output comes last",
			in: []string{
				`{"Action":"run",` + p + `,"Test":"TestA"}`,
				`{"Action":"run",` + p + `,"Test":"TestB"}`,
				`{"Action":"output",` + p + `,"Test":"TestA","Output":"broken\n"}`,
				`{"Action":"fail",` + p + `,"Test":"TestA"}`,
				`{"Action":"pass",` + p + `,"Test":"TestB"}`,
				`{"Action":"fail",` + p + `}`,
			},
			want: atOnce("TestA", "broken\n", "-run '^TestA$' ") +
				"FAIL  engine                                           1 of 2 failed\n\n" +
				"--- github.com/interlockdev/interlock/engine TestA\nbroken\n\nunit: 1 passed, 1 failed\n",
		},
		{
			name: "a package that does not compile",
			in: []string{
				`{"ImportPath":"github.com/interlockdev/interlock/engine [github.com/interlockdev/interlock/engine.test]","Action":"build-output","Output":"undefined: x\n"}`,
				`{"Action":"start",` + p + `}`,
				`{"Action":"output",` + p + `,"Output":"FAIL [build failed]\n"}`,
				`{"Action":"fail",` + p + `,"Elapsed":0}`,
			},
			want: atOnce("", "undefined: x\nFAIL [build failed]\n", "") +
				"FAIL  engine                                           1 of 1 failed\n\n" +
				"--- github.com/interlockdev/interlock/engine\nundefined: x\nFAIL [build failed]\n\nunit: 0 passed, 1 failed\n",
		},
		{
			name: "a test that was running when its package died",
			in: []string{
				`{"Action":"run",` + p + `,"Test":"TestA"}`,
				`{"Action":"output",` + p + `,"Test":"TestA","Output":"panic: oh\n"}`,
				`{"Action":"fail",` + p + `,"Elapsed":2}`,
			},
			want: atOnce("TestA did not end", "panic: oh\n", "-run '^TestA$' ") +
				"FAIL  engine                                           1 of 1 failed\n\n" +
				"--- github.com/interlockdev/interlock/engine TestA did not end\npanic: oh\n\nunit: 0 passed, 1 failed\n",
		},
		{
			name: "a skipped test has shown nothing",
			in: []string{
				`{"Action":"run",` + p + `,"Test":"TestA"}`,
				`{"Action":"output",` + p + `,"Test":"TestA","Output":"no strace\n"}`,
				`{"Action":"skip",` + p + `,"Test":"TestA"}`,
				`{"Action":"pass",` + p + `,"Elapsed":2}`,
			},
			want: atOnce("TestA was skipped", "no strace\n", "-run '^TestA$' ") +
				"FAIL  engine                                           1 of 1 failed\n\n" +
				"--- github.com/interlockdev/interlock/engine TestA was skipped\nno strace\n\nunit: 0 passed, 1 failed\n",
		},
		{
			name: "a test that is left out of a short run",
			in: []string{
				`{"Action":"run",` + p + `,"Test":"TestA"}`,
				`{"Action":"run",` + p + `,"Test":"TestB"}`,
				`{"Action":"skip",` + p + `,"Test":"TestA"}`,
				`{"Action":"pass",` + p + `,"Test":"TestB"}`,
				`{"Action":"pass",` + p + `,"Elapsed":2}`,
			},
			want: "...   engine TestA is left out of a short run\n" +
				"ok    engine                                           1 passed     2.0s\nunit: 1 passed, 0 failed\n",
			ok:    true,
			short: true,
		},
		{
			name: "two runs of one package",
			in: []string{
				`{"Action":"run",` + p + `,"Test":"FuzzA"}`,
				`{"Action":"fail",` + p + `,"Test":"FuzzA"}`,
				`{"Action":"fail",` + p + `,"Elapsed":5}`,
				`{"Action":"start",` + p + `}`,
				`{"Action":"run",` + p + `,"Test":"FuzzB"}`,
				`{"Action":"skip",` + p + `,"Test":"FuzzB/seed"}`,
				`{"Action":"pass",` + p + `,"Test":"FuzzB"}`,
				`{"Action":"pass",` + p + `,"Elapsed":5}`,
			},
			want: atOnce("FuzzA", "", "-run '^FuzzA$' ") +
				"FAIL  engine                                           1 of 1 failed\n" +
				"ok    engine                                           1 passed     5.0s\n\n" +
				"--- github.com/interlockdev/interlock/engine FuzzA\n\nunit: 1 passed, 1 failed\n",
		},
		{
			name: "input that is cut off",
			in: []string{
				`{"Action":"run",` + p + `,"Test":"TestA"}`,
				`{"Action":"pass",` + p + `,"Test":"TestA"}`,
			},
			want: atOnce("", "", "") +
				"FAIL  engine                                           1 of 2 failed\n\n" +
				"--- github.com/interlockdev/interlock/engine\n\n--- unexpected output\n" +
				"the output of github.com/interlockdev/interlock/engine is cut off\n\nunit: 1 passed, 2 failed\n",
		},
		{
			name: "text that is no event",
			in: []string{
				`{"Action":"run",` + p + `,"Test":"TestA"}`,
				`{"Action":"pass",` + p + `,"Test":"TestA"}`,
				`{"Action":"pass",` + p + `,"Elapsed":0.1}`,
				`go: no such package`,
			},
			want: "ok    engine                                           1 passed     0.1s\n\n" +
				"--- unexpected output\ngo: no such package\n\nunit: 1 passed, 1 failed\n",
		},
		{
			name: "what Go downloads first",
			ok:   true,
			in: []string{
				`go: downloading example.com/module v1.2.3`,
				`{"Action":"run",` + p + `,"Test":"TestA"}`,
				`{"Action":"pass",` + p + `,"Test":"TestA"}`,
				`{"Action":"pass",` + p + `,"Elapsed":0.1}`,
			},
			want: "ok    engine                                           1 passed     0.1s\nunit: 1 passed, 0 failed\n",
		},
		{
			name: "nothing at all",
			want: "\n--- no test ran\n\nunit: 0 passed, 1 failed\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			r := newReport(&out)
			r.short = tt.short
			ok := summarise(r, "unit", strings.NewReader(strings.Join(tt.in, "\n")), nil)
			if ok != tt.ok || out.String() != tt.want {
				t.Errorf("ok = %t, output:\n%s\nwant %t:\n%s", ok, out.String(), tt.ok, tt.want)
			}
		})
	}
}

// atOnce returns the lines that the report prints about a failure in package engine while the suite runs.
func atOnce(title, output, run string) string {
	const name = "github.com/interlockdev/interlock/engine"
	return strings.TrimSuffix("\n--- "+name+" "+title, " ") + "\n" + output +
		"--- repeat it: INTERLOCK_TEST_TOOLS=1 go test -count=1 " + run + "./engine\n\n"
}

// The duration stands before the failures: the count of tests stays the last line.
func TestDuration(t *testing.T) {
	const p = `"Package":"github.com/interlockdev/interlock/engine"`
	var out strings.Builder
	r := newReport(&out)
	r.took = time.Second
	summarise(r, "unit", strings.NewReader(`{"Action":"run",`+p+`,"Test":"TestA"}
{"Action":"fail",`+p+`,"Test":"TestA"}
{"Action":"fail",`+p+`}`), nil)
	took, failure := strings.Index(out.String(), "\nunit took "), strings.LastIndex(out.String(), "\n--- ")
	if took < 0 || failure < took || !strings.HasSuffix(out.String(), "\nunit: 0 passed, 1 failed\n") {
		t.Errorf("output:\n%s", out.String())
	}
}
