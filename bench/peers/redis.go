package main

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/interlockdev/interlock/internal/bench"
	"github.com/interlockdev/interlock/internal/launch"
)

// redisServer is Debian's Redis.
type redisServer struct {
	sync bool // each answer after its sync to the disk; otherwise nothing is ever written
}

func (s redisServer) name() string {
	if s.sync {
		return "redis always"
	}
	return "redis memory"
}

func (s redisServer) durable() string {
	if s.sync {
		return "yes: appendfsync always, synced before the answer"
	}
	return "no: nothing is written, a restart forgets all locks"
}

func (redisServer) missing() string {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return "redis-server"
	}
	return ""
}

func (s redisServer) start(ctx context.Context, dir string) (*instance, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	args := []string{"--port", ports[0], "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--daemonize", "no"}
	if s.sync {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	} else {
		args = append(args, "--appendonly", "no")
	}
	cmd := exec.Command("redis-server", args...)
	cmd.Dir, cmd.SysProcAttr = dir, launch.Attributes()
	p, err := start(ctx, cmd, "Ready to accept connections")
	if err != nil {
		return nil, err
	}
	addr := "127.0.0.1:" + ports[0]
	tell := func(ctx context.Context, u *bench.Usage, _ bool) error { return redisTells(ctx, addr, u) }
	return &instance{process: p, addr: addr, quit: syscall.SIGKILL, tell: tell}, nil // nothing of it is to be kept
}

// redisTells asks for memory in use, which has no garbage in it, and for the length of the
// append-only file.
func redisTells(ctx context.Context, addr string, u *bench.Usage) error {
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = c.Close() }()
	text, err := c.Info(ctx, "memory", "persistence").Result()
	if err != nil {
		return fmt.Errorf("ask Redis what it uses: %w", err)
	}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		switch name {
		case "used_memory":
			u.Live, err = strconv.ParseInt(value, 10, 64)
		case "aof_current_size":
			u.Written, err = strconv.ParseInt(value, 10, 64)
		}
		if err != nil {
			return fmt.Errorf("what Redis says of %s: %w", name, err)
		}
	}
	return nil
}

// most is how many connections a client has at most; Redis has room for 10,000.
const most = 1100

// goRedis is the client that several peers have in common: one for all agents, with a
// connection for each, so that no agent waits for one.
func goRedis(addr string, agents int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: min(agents, most)})
}
