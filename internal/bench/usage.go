package bench

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Metrics of the server that are used here.
const (
	cpuSeconds  = "process_cpu_seconds_total"
	resident    = "process_resident_memory_bytes"
	liveHeap    = "go_gc_heap_live_bytes"
	collections = "go_gc_duration_seconds_count"
	pauses      = "go_sched_pauses_total_gc_seconds_count" // two a collection: when it begins and when it ends
	written     = "interlock_journal_batch_bytes_sum"
)

// metrics are those of a server by their names, summed up over their labels.
type metrics map[string]float64

func (m metrics) usage() Usage {
	return Usage{
		CPU:      time.Duration(m[cpuSeconds] * float64(time.Second)),
		Resident: int64(m[resident]),
		Live:     int64(m[liveHeap]),
		Written:  int64(m[written]),
	}
}

// Usage implements Site.
func (s *interlockSite) Usage(ctx context.Context) (Usage, error) {
	m, err := s.metrics(ctx)
	return m.usage(), err
}

// metrics asks the server for them.
func (s *interlockSite) metrics(ctx context.Context) (metrics, error) {
	scheme := "http://"
	if s.at.TLS != nil {
		scheme = "https://"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+s.at.HTTP+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	if s.at.Credential != "" {
		req.Header.Set("Authorization", "Bearer "+s.at.Credential)
	}
	res, err := s.scrapes.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("ask the server for its metrics: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask the server for its metrics: %s", res.Status)
	}
	m := metrics{}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		name, _, _ := strings.Cut(line[:at], "{")
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("the metric %s: %w", name, err)
		}
		m[name] += v
	}
	for _, name := range []string{cpuSeconds, resident, liveHeap, collections, pauses} { // written is of a shard's owner
		if _, ok := m[name]; !ok && lines.Err() == nil {
			return nil, fmt.Errorf("the server has no metric %s", name)
		}
	}
	return m, lines.Err()
}
