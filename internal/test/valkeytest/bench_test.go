package valkeytest

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// The command bench measures a journal beside a directory.
func TestBench(t *testing.T) {
	t.Parallel()
	g := pair(t)
	cmd := exec.Command(
		launchtest.Binary(t), "bench", "cycle", "--journal", g.URL("bench"), "--agents", "2", "--repeat", "2", "--duration",
		"50ms", "-o", "json",
	)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var report struct {
		Figures []struct {
			Target, Name string
			Each         []float64
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	ratios := 0
	for _, f := range report.Figures {
		if f.Target == "interlock stream over redis" && f.Name == "ratio" && len(f.Each) == 2 && f.Each[0] > 0 {
			ratios++
		}
	}
	if ratios != 1 {
		t.Errorf("the report is %s", out)
	}
}
