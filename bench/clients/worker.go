package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// client is a client at a service.
type client struct {
	name   string
	group  string // of clients that are compared: ratios are those of Interlock's client to the others of it
	worker string // worker.py or worker.mjs
	kind   string // interlock or redis
	shape  string // threads or asyncio, in Python
	at     string // interlock, resp or redis: the service
}

// clients are all of them, in the order of the runs.
func clients() (list []client) {
	for _, g := range []struct{ name, worker, shape, ours, theirs string }{
		{"Python threads", "worker.py", "threads", "interlock-client", "redis-py Lock"},
		{"Python asyncio", "worker.py", "asyncio", "interlock-client", "redis-py Lock"},
		{"Node.js", "worker.mjs", "-", "@interlockdev/client", "redis SET NX"},
	} {
		list = append(
			list,
			client{g.ours + " at Interlock", g.name, g.worker, "interlock", g.shape, "interlock"},
			client{g.theirs + " at Redis", g.name, g.worker, "redis", g.shape, "redis"},
			client{g.theirs + " at Interlock", g.name, g.worker, "redis", g.shape, "resp"},
		)
	}
	return list
}

// ours reports whether it is a client of Interlock.
func (c *client) ours() bool { return c.kind == "interlock" }

// takesPart reports whether a part of its names is in a list between commas.
func (c *client) takesPart(only string) bool {
	for part := range strings.SplitSeq(only, ",") {
		if strings.Contains(strings.ToLower(c.group+" "+c.name), strings.ToLower(strings.TrimSpace(part))) {
			return true
		}
	}
	return false
}

// url returns the address of the service of a client.
func (s *services) url(c *client) string {
	switch c.at {
	case "redis":
		return "redis://" + s.redisAddr
	case "resp":
		return "redis://" + s.interlock.RESP
	}
	return "http://" + s.interlock.HTTP
}

// work runs a worker once, and returns what it has measured.
func (s *services) work(
	ctx context.Context, c *client, kind string, load int, warm, length time.Duration,
) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, length+time.Minute)
	defer cancel()
	program := s.python
	if strings.HasSuffix(c.worker, ".mjs") {
		program = "node"
	}
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
	cmd := exec.CommandContext(
		ctx, program, filepath.Join(s.workers, c.worker), kind, c.shape, s.url(c), strconv.Itoa(load), seconds(warm),
		seconds(length),
	)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s, %s: %w\n%s", c.group, c.name, err, errs.String())
	}
	var values map[string]float64
	if err := json.Unmarshal(out.Bytes(), &values); err != nil {
		return nil, fmt.Errorf("%s, %s: %w in %q", c.group, c.name, err, out.String())
	}
	return values, nil
}
