package main

import (
	"context"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	// The second run continues where the first ended, with the same journal.
	for _, want := range []string{
		"4 workers counted 25 times each; the counter says 100\n",
		"4 workers counted 25 times each; the counter says 200\n",
	} {
		var out strings.Builder
		if err := run(context.Background(), dir, &out); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("got %q, wanted %q", out.String(), want)
		}
	}
}
