package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// Door is the way by which the agents come in.
type Door string

const (
	Stream Door = "stream" // all agents share one gRPC session stream
	HTTP   Door = "http"   // each agent keeps one connection and sends JSON
)

// Config says what to run against which server.
type Config struct {
	Door     Door
	GRPC     string // address, for Stream
	URL      string // for HTTP, such as http://127.0.0.1:7420
	Agents   int
	Duration time.Duration
}

// Result is what one run gave. Each agent's first cycle is not counted: it makes
// the connection.
type Result struct {
	Door      Door          `json:"door"`
	Agents    int           `json:"agents"`
	Cycles    int64         `json:"cycles"`
	Elapsed   time.Duration `json:"-"`
	PerSecond float64       `json:"cycles_per_second"`
	P50       time.Duration `json:"-"`
	P99       time.Duration `json:"-"`
	P50us     int64         `json:"p50_us"`
	P99us     int64         `json:"p99_us"`
}

// cycle acquires one key and releases it again.
type cycle func(ctx context.Context, key string) error

// Cycles lets every agent acquire and release a key of its own, over and over.
func Cycles(ctx context.Context, cfg Config) (Result, error) {
	once, done, err := cfg.open(ctx)
	if err != nil {
		return Result{}, err
	}
	defer done()

	var (
		running  sync.WaitGroup
		total    atomic.Int64
		times    = make([][]time.Duration, cfg.Agents)
		failures = make([]error, cfg.Agents)
		start    = make(chan struct{})
		ready    sync.WaitGroup
		end      time.Time
	)
	ready.Add(cfg.Agents)
	for i := range cfg.Agents {
		running.Go(func() {
			key := "bench:" + strconv.Itoa(i)
			err := once(ctx, key)
			ready.Done()
			<-start
			for err == nil && ctx.Err() == nil {
				began := time.Now()
				if !began.Before(end) {
					return
				}
				if err = once(ctx, key); err == nil {
					times[i] = append(times[i], time.Since(began))
					total.Add(1)
				}
			}
			failures[i] = err
		})
	}
	ready.Wait()
	began := time.Now()
	end = began.Add(cfg.Duration)
	close(start)
	running.Wait()

	r := Result{Door: cfg.Door, Agents: cfg.Agents, Cycles: total.Load(), Elapsed: time.Since(began)}
	if err := errors.Join(failures...); err != nil {
		return r, err
	}
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	all := slices.Concat(times...)
	slices.Sort(all)
	r.PerSecond = float64(r.Cycles) / r.Elapsed.Seconds()
	if len(all) > 0 {
		r.P50, r.P99 = all[len(all)/2], all[len(all)*99/100]
		r.P50us, r.P99us = r.P50.Microseconds(), r.P99.Microseconds()
	}
	return r, nil
}

func (cfg Config) open(ctx context.Context) (cycle, func(), error) {
	if cfg.Agents < 1 || cfg.Duration <= 0 {
		return nil, nil, fmt.Errorf("%d agents for %v: want at least one, and a duration above zero", cfg.Agents, cfg.Duration)
	}
	switch cfg.Door {
	case Stream:
		return openStream(ctx, cfg)
	case HTTP:
		return openHTTP(cfg)
	}
	return nil, nil, fmt.Errorf("no door is called %q: want %s or %s", cfg.Door, Stream, HTTP)
}

func openStream(ctx context.Context, cfg Config) (cycle, func(), error) {
	c, err := client.Dial(ctx, client.Config{Addrs: []string{cfg.GRPC}, Agent: "bench"})
	if err != nil {
		return nil, nil, err
	}
	once := func(ctx context.Context, key string) error {
		lease, err := c.Acquire(ctx, client.Request{Keys: []interlock.Key{interlock.Key(key)}, Flow: key})
		if err != nil {
			return err
		}
		return lease.Release(ctx, client.Outcome{})
	}
	return once, func() { _ = c.Close(context.WithoutCancel(ctx)) }, nil
}

func openHTTP(cfg Config) (cycle, func(), error) {
	transport := &http.Transport{MaxIdleConns: cfg.Agents, MaxIdleConnsPerHost: cfg.Agents}
	hc := &http.Client{Transport: transport}
	post := func(ctx context.Context, path, body string, answer any) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, cfg.URL+path, bytes.NewReader([]byte(body)))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := hc.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s: %s", path, resp.Status, b)
		}
		return json.Unmarshal(b, answer)
	}
	once := func(ctx context.Context, key string) error {
		var granted struct{ Lease struct{ ID string } }
		if err := post(ctx, "/v1/leases", `{"agent":"bench","claims":[{"key":"`+key+`"}]}`, &granted); err != nil {
			return err
		}
		return post(ctx, "/v1/leases/"+granted.Lease.ID+"/release", "{}", &struct{}{})
	}
	return once, transport.CloseIdleConnections, nil
}
