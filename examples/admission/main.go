package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	b := burst{client: http.DefaultClient}
	addr := flag.String("http", "127.0.0.1:7420", "address of the server's HTTP API")
	plot := flag.String("plot", "admission.svg", "where to draw the plot; empty for none")
	flag.IntVar(&b.starts, "starts", 100, "how many start at once")
	flag.IntVar(&b.limit, "cap", 2, "how many may run at once")
	flag.DurationVar(&b.work, "work", 50*time.Millisecond, "how long a run takes")
	flag.DurationVar(&b.budget, "budget", 2*time.Second, "how long a client tries")
	flag.Parse()
	b.url = "http://" + *addr
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = b.starts
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := b.run(ctx, os.Stdout, *plot); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// burst is the requests to the server.
type burst struct {
	client *http.Client
	url    string
	starts int
	limit  int
	work   time.Duration
	budget time.Duration
}

// strategy is how a client goes about its start until its budget is used up: how long
// it lets the server keep it in line, and how long it pauses after its nth refusal.
type strategy struct {
	name  string
	wait  func(budget time.Duration) time.Duration
	pause func(n int, random *rand.Rand) time.Duration
}

var strategies = []strategy{
	{"fixed 10 ms", never, func(int, *rand.Rand) time.Duration { return 10 * time.Millisecond }},
	{"jittered", never, jittered},
	{"in line", func(budget time.Duration) time.Duration { return budget }, jittered},
}

func never(time.Duration) time.Duration { return 0 }

// jittered is an exponential backoff with full jitter.
func jittered(n int, random *rand.Rand) time.Duration {
	return time.Duration(random.Int64N(int64(min(10*time.Millisecond<<min(n, 10), 500*time.Millisecond))))
}

// run measures each strategy against an organisation of its own.
func (b *burst) run(ctx context.Context, out io.Writer, plot string) error {
	if err := b.setCap(ctx); err != nil {
		return err
	}
	var all []*result
	for _, s := range strategies {
		r, err := b.measure(ctx, s)
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	fmt.Fprintf(out, "%d starts at once, cap %d, each runs %v, budget %v\n\n", b.starts, b.limit, b.work, b.budget)
	fmt.Fprintln(
		out, "CLIENTS      STARTED  GAVE UP  REQUESTS   200    429    503  429 RATIO  P50 WAIT  P95 WAIT  LARGEST BURST",
	)
	for _, r := range all {
		fmt.Fprintf(out, "%-12s %7d  %7d  %8d  %4d  %5d  %5d  %8.1f%%  %8s  %8s  %4d in %v\n",
			r.name, len(r.waits), r.gaveUp, len(r.sent), r.statuses[200], r.statuses[429], r.statuses[503],
			100*float64(r.statuses[429])/float64(len(r.sent)), r.percentile(50), r.percentile(95), slices.Max(r.bins(b.budget)),
			bin)
	}
	if plot == "" {
		return nil
	}
	return os.WriteFile(plot, draw(all, b.budget), 0o644)
}

// setCap returns how many runs an organisation may have.
func (b *burst) setCap(ctx context.Context) error {
	status, _, err := b.call(
		ctx, http.MethodPut, "/v1/patterns/runs", "", fmt.Sprintf(`{"pattern":"org:{org}/runs","capacity":%d}`, b.limit),
	)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the cap was not set: status %d", status)
	}
	return err
}

// measure lets all clients start at one moment.
func (b *burst) measure(ctx context.Context, s strategy) (*result, error) {
	org := strings.ReplaceAll(s.name, " ", "-")
	began := make(chan time.Time)
	reports := make(chan report)
	for i := range b.starts {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		go func() {
			start := <-began
			reports <- b.try(ctx, s, org, i, start, random)
		}()
	}
	start := time.Now()
	for range b.starts {
		began <- start
	}
	r := &result{name: s.name, statuses: map[int]int{}}
	var failed error
	for range b.starts {
		one := <-reports
		failed = errors.Join(failed, one.err)
		r.add(&one)
	}
	return r, failed
}

// report is the results of one client.
type report struct {
	sent     []time.Duration // when its requests went out
	statuses []int
	started  bool
	waited   time.Duration // until it ran
	err      error
}

// try tries until it runs, or has no time left; it works and ends its run.
func (b *burst) try(ctx context.Context, s strategy, org string, i int, start time.Time, random *rand.Rand) (r report) {
	key := fmt.Sprintf("%s-%d-%d", org, i, start.UnixNano())
	for n := 0; ; n++ {
		left := b.budget - time.Since(start)
		if left <= 0 {
			return r
		}
		r.sent = append(r.sent, time.Since(start))
		body := fmt.Sprintf(`{"org":%q,"agent":"client-%d","wait_ms":%d}`, org, i, s.wait(left).Milliseconds())
		status, id, err := b.call(ctx, http.MethodPost, "/v1/runs", key, body)
		if err != nil {
			r.err = err
			return r
		}
		r.statuses = append(r.statuses, status)
		if status == http.StatusOK {
			r.started, r.waited = true, time.Since(start)
			if r.err = pause(ctx, b.work); r.err == nil {
				_, _, r.err = b.call(ctx, http.MethodPost, "/v1/runs/"+id+"/end", "", "{}")
			}
			return r
		}
		if r.err = pause(ctx, s.pause(n, random)); r.err != nil {
			return r
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
