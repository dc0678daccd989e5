package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	defaultViewers = 50
	viewerPairs    = 5                      // of measurements of processor time without and with viewers
	cyclePairs     = 20                     // of those of cycles, which other load of the machine changes more
	changeEvery    = 250 * time.Millisecond // so often that each picture differs from the one before
)

var viewersScenario = Scenario{
	Name:  "viewers",
	Short: "what browsers that watch the dashboard cost",
	About: "Leases are held in one namespace, and a hundredth as many agents wait, in lines of 1,000. Then " +
		"viewers follow GET /v1/overview as the pages of the dashboard do, each on a connection of its " +
		"own. All is measured without and with viewers by turns, and the median taken: the server's " +
		"processor time at rest and while one agent acquires and releases a key four times a second, so " +
		"that pictures come at their fastest, as what viewers add to one core, 5 times each; then cycles " +
		"of agents with a key of their own as in cycle, as the ratio of those with viewers to those " +
		"without, 20 times each.",
	Transports: []Transport{Stream},
	Tall:       true,
	cases: func(cfg Config, targets []Target) (cases []Case, err error) {
		viewers, agents := defaultViewers, 64
		if cfg.Viewers > 0 {
			viewers = cfg.Viewers
		}
		if len(cfg.Agents) > 1 {
			return nil, errors.New("viewers runs with one number of agents")
		}
		agents = cfg.agents(agents)[0]
		for _, n := range cfg.leases(1_000, 1_000_000) {
			w := viewerLoad{viewers, 0, n / 100, agents, cfg.duration(30 * time.Second)}
			if w.leases = n - w.waiters - agents - 1; w.leases < 1 {
				return nil, fmt.Errorf("%d leases beside %s: want more", n, headcount(agents))
			}
			for _, t := range targets {
				load := fmt.Sprintf("%s leases, %d viewers", Number(float64(n)), viewers)
				cases = append(cases, on(t, load, 1, w.run))
			}
		}
		return cases, nil
	},
}

// viewerLoad is a namespace with viewers. Its leases, waiters and agents are together what a namespace can have.
type viewerLoad struct {
	viewers, leases, waiters, agents int
	duration                         time.Duration
}

// A Stage is a Site with an overview that viewers can follow.
type Stage interface {
	// Audience lets n viewers follow the overview, and returns when each has seen a picture.
	Audience(ctx context.Context, n int) (*Audience, error)
}

// An Audience is viewers that read pictures as fast as they come.
type Audience struct {
	// Leave ends them, and returns what all of them have read.
	Leave func() (pictures, bytes int, err error)
}

func (w viewerLoad) run(ctx context.Context, site Site) (values []Value, err error) {
	stage, ok := site.(Stage)
	if !ok {
		return nil, errors.New("nothing to look at: it has no overview")
	}
	holders := min(w.leases, holdWidth)
	crew, err := site.Crew(ctx, 1+w.agents+holders+w.waiters)
	if err != nil {
		return nil, err
	}
	defer crew.Close()
	one, agents, rest := crew.Agents[0], crew.Agents[1:1+w.agents], crew.Agents[1+w.agents:]
	held, err := hold(ctx, rest[:holders], keyed("bench:held:", w.leases))
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(held)
	lines := max(1, min((w.waiters+perLine-1)/perLine, w.leases))
	measured := func() error {
		values, err = w.measure(ctx, site, stage, one, agents)
		return err
	}
	if w.waiters == 0 {
		err = measured()
	} else {
		err = held.crowd(ctx, rest[holders:], lines, measured)
	}
	return values, err
}

func (w viewerLoad) measure(
	ctx context.Context, site Site, stage Stage, one Agent, agents []Agent,
) (values []Value, err error) {
	for _, what := range []string{"at rest", "with changes"} {
		var alone, more, pictures []float64
		for pair := range viewerPairs {
			var costs [2]float64
			for i := range 2 {
				on := (pair + i) % 2
				disturbed, stop := context.WithCancel(ctx)
				ended := make(chan error, 1)
				if what == "at rest" {
					ended <- nil
				} else {
					go func() { ended <- disturb(disturbed, ctx, one) }()
				}
				var seen float64
				costs[on], seen, err = w.cost(ctx, site, stage, on*w.viewers)
				stop()
				if err = errors.Join(err, <-ended); err != nil {
					return nil, err
				}
				if on == 1 {
					pictures = append(pictures, seen)
				}
			}
			alone, more = append(alone, 100*costs[0]), append(more, 100*(costs[1]-costs[0]))
		}
		values = append(
			values, centre("viewers' CPU "+what, Percent, more), centre("server CPU "+what, Percent, alone),
			centre("pictures "+what, PerSecond, pictures),
		)
	}
	return w.compare(ctx, stage, agents, values)
}

// disturb has an agent acquire and release a key of its own until ctx ends.
func disturb(ctx, alone context.Context, a Agent) error {
	for {
		if pause(ctx, changeEvery) != nil {
			return nil
		}
		if err := cycle(alone, a, "bench:changes"); err != nil {
			return err
		}
	}
}

// cost is the server's processor time as a share of one core, and the pictures a second of each viewer.
func (w viewerLoad) cost(
	ctx context.Context, site Site, stage Stage, viewers int,
) (cpu, pictures float64, err error) {
	if _, err = calm(ctx, site); err != nil {
		return 0, 0, err
	}
	a, err := stage.Audience(ctx, viewers)
	if err != nil {
		return 0, 0, err
	}
	before, err := site.Usage(ctx)
	began := time.Now()
	if err == nil {
		err = pause(ctx, w.duration/viewerPairs)
	}
	after := Usage{}
	if err == nil {
		after, err = site.Usage(ctx)
	}
	elapsed := time.Since(began).Seconds()
	n, _, gone := a.Leave()
	return (after.CPU - before.CPU).Seconds() / elapsed, float64(n) / float64(max(viewers, 1)) / elapsed,
		errors.Join(err, gone)
}

// centre is the median of measurements, which it sorts.
func centre(name string, unit Unit, list []float64) Value {
	slices.Sort(list)
	return Value{name, unit, median(list)}
}

// compare measures cycles without and with viewers by turns, each pair beginning with the other one.
func (w viewerLoad) compare(ctx context.Context, stage Stage, agents []Agent, values []Value) ([]Value, error) {
	keys := keyed("bench:cycle:", len(agents))
	var with, without, ratios []float64
	pictures, sent := 0, 0
	for pair := range cyclePairs {
		var rates [2]float64
		for i := range 2 {
			viewers := (pair + i) % 2
			a, err := stage.Audience(ctx, viewers*w.viewers)
			if err != nil {
				return nil, err
			}
			took, elapsed, err := drive(
				ctx, len(agents), w.duration/cyclePairs,
				func(ctx context.Context, i int) error { return cycle(ctx, agents[i], keys[i]) },
			)
			p, b, gone := a.Leave()
			if err = errors.Join(err, gone); err != nil {
				return nil, err
			}
			pictures, sent = pictures+p, sent+b
			rates[viewers] = float64(took.Count()) / elapsed.Seconds()
		}
		with, without = append(with, rates[1]), append(without, rates[0])
		ratios = append(ratios, rates[1]/rates[0])
	}
	return append(
		values, centre("cycles without", PerSecond, without), centre("cycles with", PerSecond, with),
		centre("ratio", Plain, ratios), Value{"least ratio", Plain, ratios[0]},
		Value{"largest ratio", Plain, ratios[len(ratios)-1]},
		Value{"picture", Bytes, float64(sent) / float64(max(pictures, 1))},
	), nil
}

// Audience implements Stage.
func (s *interlockSite) Audience(ctx context.Context, n int) (*Audience, error) {
	ctx, cancel := context.WithCancel(ctx)
	var (
		pictures, read atomic.Int64
		readers        sync.WaitGroup
		here           = make(chan struct{}, n)
		failed         = make(chan error, n)
		transport      = &http.Transport{TLSClientConfig: s.at.TLS, DisableCompression: true}
	)
	scheme := "http://"
	if s.at.TLS != nil {
		scheme = "https://"
	}
	for range n {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+s.at.HTTP+"/v1/overview", nil)
		if err != nil {
			cancel()
			return nil, err
		}
		req.Header.Set("Accept", "text/event-stream")
		if s.at.Credential != "" {
			req.Header.Set("Authorization", "Bearer "+s.at.Credential)
		}
		if s.at.Namespace != "" {
			req.Header.Set("Interlock-Namespace", string(s.at.Namespace))
		}
		readers.Go(func() {
			arrive := sync.OnceFunc(func() { here <- struct{}{} })
			err := follow(transport, req, func(picture bool, n int) {
				if read.Add(int64(n)); picture {
					pictures.Add(1)
					arrive()
				}
			})
			if ctx.Err() == nil {
				failed <- fmt.Errorf("a viewer of the overview: %w", err)
			}
		})
	}
	a := &Audience{Leave: func() (int, int, error) {
		cancel()
		readers.Wait()
		transport.CloseIdleConnections()
		select {
		case err := <-failed:
			return 0, 0, err
		default:
			return int(pictures.Load()), int(read.Load()), nil
		}
	}}
	for range n {
		select {
		case <-here:
		case <-ctx.Done():
		case err := <-failed:
			_, _, _ = a.Leave()
			return nil, err
		}
	}
	return a, context.Cause(ctx)
}

// follow reads a stream of pictures until it ends, and calls saw for each line: whether it begins a picture, and
// its bytes.
func follow(transport *http.Transport, req *http.Request, saw func(picture bool, n int)) error {
	res, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	r := bufio.NewReaderSize(res.Body, 32<<10)
	for {
		part, err := r.ReadSlice('\n')
		saw(bytes.HasPrefix(part, []byte("event: picture")), len(part))
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}
