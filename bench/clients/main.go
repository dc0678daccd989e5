package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/interlockdev/interlock/internal/launch"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "clients:", err)
		stop()
		os.Exit(1)
	}
}

// options are the values of the command line.
type options struct {
	root     string // of the repository
	callers  []int
	leases   int
	rounds   int
	warm     time.Duration
	duration time.Duration
	hold     time.Duration
	only     string
	json     bool
}

func parse(args []string, errs io.Writer) (o options, err error) {
	o.callers = []int{1, 16, 64}
	f := flag.NewFlagSet("clients", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&o.root, "root", ".", "the `folder` of the repository, with bin/interlock and the tools in dist")
	f.Func("callers", "how `many` callers, between commas (default 1,16,64)", func(text string) error {
		o.callers = nil
		for part := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(part)
			if err != nil || n < 1 {
				return fmt.Errorf("%q is no number of callers", part)
			}
			o.callers = append(o.callers, n)
		}
		return nil
	})
	f.IntVar(&o.leases, "leases", 1000, "how `many` leases a process holds; 0 leaves this measurement out")
	f.IntVar(&o.rounds, "rounds", 5, "how many `runs` each client has under each load; with leases half of them")
	f.DurationVar(&o.warm, "warm", time.Second, "the `time` before each measurement in which clients get warm")
	f.DurationVar(&o.duration, "duration", 2*time.Second, "the `time` of each measurement of cycles")
	f.DurationVar(&o.hold, "hold", 30*time.Second, "the `time` of each measurement of held leases")
	f.StringVar(&o.only, "only", "", "only clients with one of these in their `names`, between commas")
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.rounds < 1 || o.leases < 0 || o.duration <= 0 || o.hold <= 0 || f.NArg() > 0 {
		return o, errors.New("want at least one round, durations above zero, and no arguments but flags")
	}
	return o, nil
}

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	s, err := open(ctx, &o)
	if err != nil {
		return err
	}
	defer s.close()
	r, err := s.measure(ctx, &o, func(text string) { fmt.Fprintln(errs, text) })
	if err != nil {
		return err
	}
	r.Command = append([]string{"clients"}, args...)
	if o.json {
		return json.NewEncoder(out).Encode(r)
	}
	return r.write(out)
}

// services are what the clients load, and the programs that they need.
type services struct {
	dir       string
	interlock *launch.Server
	redis     *exec.Cmd
	redisAddr string
	python    string
	env       []string // of workers
	workers   string   // the folder of worker.py and worker.mjs
}

// open builds the client for TypeScript, and starts the services.
func open(ctx context.Context, o *options) (s *services, err error) {
	root, err := filepath.Abs(o.root)
	if err != nil {
		return nil, err
	}
	s = &services{
		python: filepath.Join(root, "dist/redis/venv/bin/python"), workers: filepath.Join(root, "bench/clients"),
	}
	compiler := filepath.Join(root, "dist/typescript/node_modules")
	for _, file := range []string{s.python, filepath.Join(compiler, ".bin/tsc"), filepath.Join(root, "bin/interlock")} {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("%w: make clients installs and builds what is missing", err)
		}
	}
	if s.dir, err = os.MkdirTemp("", "interlock-clients-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	built := filepath.Join(s.dir, "typescript")
	tsc := exec.CommandContext(
		ctx, filepath.Join(compiler, ".bin/tsc"), "-p", filepath.Join(root, "clients/typescript/tsconfig.json"),
		"--typeRoots", filepath.Join(compiler, "@types"), "--outDir", built,
	)
	if text, err := tsc.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the client for TypeScript: %w\n%s", err, text)
	}
	s.env = append(
		os.Environ(), "PYTHONPATH="+filepath.Join(root, "clients/python/src"),
		"PYTHONPYCACHEPREFIX="+filepath.Join(s.dir, "python"), "INTERLOCK_CLIENT="+built,
		"REDIS_MODULES="+filepath.Join(root, "dist/redis"),
	)
	s.interlock, err = launch.Start(ctx, launch.Config{
		Binary: filepath.Join(root, "bin/interlock"), DataDir: filepath.Join(s.dir, "interlock"),
		Args: []string{"--resp", "127.0.0.1:0", "--log-level", "warn"},
	})
	if err != nil {
		return nil, err
	}
	return s, s.startRedis(ctx)
}

// startRedis starts a Redis with the durability of Interlock: an answer comes after its sync.
func (s *services) startRedis(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.redisAddr = l.Addr().String()
	_, port, _ := net.SplitHostPort(s.redisAddr)
	_ = l.Close()
	dir := filepath.Join(s.dir, "redis")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	s.redis = exec.Command(
		"redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "yes",
		"--appendfsync", "always",
	)
	s.redis.SysProcAttr = launch.Attributes()
	if err := s.redis.Start(); err != nil {
		s.redis = nil
		return fmt.Errorf("%w: scripts/install-deps.sh peers installs it", err)
	}
	for {
		conn, err := net.Dial("tcp", s.redisAddr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redis-server does not answer: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *services) close() {
	if s.interlock != nil {
		s.interlock.Kill()
	}
	if s.redis != nil {
		_ = s.redis.Process.Kill()
		_ = s.redis.Wait()
	}
	_ = os.RemoveAll(s.dir)
}
