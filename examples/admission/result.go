package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// result is the results of all clients of a strategy.
type result struct {
	name     string
	sent     []time.Duration // when requests to start went out
	statuses map[int]int
	waits    []time.Duration // until they ran, of those that did
	gaveUp   int
}

func (r *result) add(one *report) {
	r.sent = append(r.sent, one.sent...)
	for _, status := range one.statuses {
		r.statuses[status]++
	}
	if one.started {
		r.waits = append(r.waits, one.waited)
	} else {
		r.gaveUp++
	}
}

// percentile is below how long a wait that many in a hundred stayed.
func (r *result) percentile(p int) time.Duration {
	if len(r.waits) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(r.waits))
	return sorted[(len(sorted)-1)*p/100].Round(time.Millisecond)
}

// bin is how much time one bar of the plot stands for.
const bin = 10 * time.Millisecond

// bins counts the requests of each bin of the budget.
func (r *result) bins(budget time.Duration) []int {
	counts := make([]int, budget/bin+1)
	for _, at := range r.sent {
		counts[min(int(at/bin), len(counts)-1)]++
	}
	return counts
}

// call sends a request, and returns the id of the run that it started.
func (b *burst) call(ctx context.Context, method, path, key, body string) (status int, run string, err error) {
	q, err := http.NewRequestWithContext(ctx, method, b.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Interlock-Namespace", "admission-example")
	if key != "" {
		q.Header.Set("Idempotency-Key", key)
	}
	res, err := b.client.Do(q)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	var answer struct {
		Run struct {
			ID string `json:"id"`
		} `json:"run"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return 0, "", err
	}
	_, err = io.Copy(io.Discard, res.Body) // so that the connection can be used again
	return res.StatusCode, answer.Run.ID, err
}
