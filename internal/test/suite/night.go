package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/interlockdev/interlock/internal/test/search"
)

// searches are the suites that could go on for ever. A round of a night runs each, with seeds of its own and larger
// shares.
var searches = []string{"crash", "postgres", "simulation", "fuzz"}

// larger holds the settings of a round, unless the caller has set them.
var larger = map[string]string{
	"CRASH_TIME": "60s", "CRASH_LIMIT": "30m", "SHARES_TIME": "15m", "HISTORY_TIME": "5m",
	"FUZZ_TIME": "50000x", "SIMULATION_LIMIT": "90m",
}

// night runs rounds of suites until the hours have passed. It calls note with the records of each round, which adds it
// to reliability.json, and ends with the first round that fails.
func (n *runner) night(
	ctx context.Context, out io.Writer, hours string, suites []*suite, note func(records []string) error,
) (ok bool, err error) {
	h, err := strconv.ParseFloat(hours, 64)
	if err != nil || h <= 0 {
		return false, fmt.Errorf("HOURS is %q: want a number of hours, as in make night HOURS=8", hours)
	}
	for name, value := range larger {
		if err := os.Setenv(name, setting(name, value)); err != nil {
			return false, err
		}
	}
	n.record = filepath.Join(n.root, "dist/night")
	for end := time.Now().Add(time.Duration(h * float64(time.Hour))); time.Now().Before(end) && ctx.Err() == nil; {
		round, err := n.rounds()
		if err != nil {
			return false, err
		}
		round++
		if err := os.Setenv(search.Variable, strconv.Itoa(round)); err != nil {
			return false, err
		}
		began := time.Now()
		fmt.Fprintf(out, "round %d\n", round)
		results := n.runAll(ctx, suites, out)
		if !conclude(out, len(suites), results, time.Since(began)) {
			fmt.Fprintf(out, "round %d failed: repeat a test with %s=%d\n", round, search.Variable, round)
			return false, nil
		}
		var records []string
		for _, s := range suites {
			records = append(records, filepath.Join(n.record, s.name+".json"))
		}
		if err := note(records); err != nil {
			return false, fmt.Errorf("recording round %d: %w", round, err)
		}
	}
	return ctx.Err() == nil, nil
}

// noteRound adds the records of a round to reliability.json.
func (n *runner) noteRound(ctx context.Context, out io.Writer, records []string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"run", "./internal/test/reliability", "-night"}, records...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = n.root, out, out
	return cmd.Run()
}

// rounds returns how many rounds reliability.json has.
func (n *runner) rounds() (int, error) {
	b, err := os.ReadFile(filepath.Join(n.root, "reliability.json"))
	if err != nil {
		return 0, err
	}
	var r struct{ Night struct{ Rounds int } }
	err = json.Unmarshal(b, &r)
	return r.Night.Rounds, err
}
