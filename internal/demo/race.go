package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/interlockdev/interlock"
)

// Config is how the race is run. The zero value works.
type Config struct {
	// Out gets the story, or with JSON the result. nil means standard output.
	Out io.Writer

	// Progress gets a line that is rewritten during a run; it must be a terminal. nil means
	// none.
	Progress io.Writer

	// JSON asks for one JSON document instead of the story.
	JSON bool

	// Dir is where the accounts are kept. It must be empty or not exist. "" means a new
	// directory for temporary files. It stays there for inspection.
	Dir string

	// Server is the address of a running server's session streams; Namespace and
	// Credential are what it asks for. "" starts a server for the time of the race.
	Server     string
	Namespace  string
	Credential string

	// Binary is the interlock binary, which is also the server and the two agents
	// that fail. "" means the program that runs.
	Binary string

	// Ready learns where the scene's own server answers HTTP, with a credential where it asks for one. Linger returns
	// when the server may end after the scene. nil: there is no viewer.
	Ready  func(url, secret string)
	Linger func()

	Agents   int    // 0 means 50; from 8 to 500
	Accounts int    // 0 means 6; from 2 to Agents/4
	Speed    int    // 0 means 6: every time of the trace is divided by it
	Seed     uint64 // 0 means 1; other seeds replay other minutes of the trace
}

func (cfg Config) complete() (Config, error) {
	if cfg.Out == nil {
		cfg.Out = os.Stdout
	}
	if cfg.Binary == "" {
		binary, err := os.Executable()
		if err != nil {
			return cfg, fmt.Errorf("find the interlock binary: %w", err)
		}
		cfg.Binary = binary
	}
	cfg.Agents = orDefault(cfg.Agents, 50)
	cfg.Accounts = orDefault(cfg.Accounts, 6)
	cfg.Speed = orDefault(cfg.Speed, 6)
	cfg.Seed = orDefault(cfg.Seed, 1)
	switch {
	case cfg.Agents < 8 || cfg.Agents > 500:
		return cfg, invalid("%d agents: the race is run by 8 to 500", cfg.Agents)
	case cfg.Accounts < 2 || cfg.Accounts > cfg.Agents/4:
		return cfg, invalid("%d accounts: with %d agents there can be 2 to %d", cfg.Accounts, cfg.Agents, cfg.Agents/4)
	case cfg.Speed < 1 || cfg.Speed > 1000:
		return cfg, invalid("speed %d: time can be divided by 1 to 1000", cfg.Speed)
	}
	return cfg, nil
}

func orDefault[T comparable](value, normal T) T {
	var zero T
	if value == zero {
		return normal
	}
	return value
}

func invalid(format string, args ...any) error {
	return &interlock.Error{Code: interlock.CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}
}

// ErrClaim reports that the race did not show what it claims: under leases a balance was wrong,
// or a failure went unnoticed, or without them nothing was lost.
var ErrClaim = errors.New("the claim does not hold")

// Race runs the scene twice, uncoordinated and under leases, and prints both side
// by side. It returns an error that is ErrClaim when the outcome is not the
// promised one.
func Race(ctx context.Context, cfg Config) (err error) {
	cfg, err = cfg.complete()
	if err != nil {
		return err
	}
	p, err := newPlan(cfg)
	if err != nil {
		return err
	}
	dir, err := makeDir(cfg.Dir)
	if err != nil {
		return err
	}
	// No agent waits longer than this for a scene of ten seconds: it is the thinking of all,
	// one after the other, with time for a slow machine.
	limit := time.Minute
	for _, t := range p.tasks {
		limit += t.think
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the race was not over after %s", limit))
	defer cancel()

	s := newStory(cfg, p, dir)
	s.opening()

	s.act("1. Uncoordinated: read the file, think, write the file")
	without, err := uncoordinated(ctx, p, filepath.Join(dir, "uncoordinated"), s)
	if err != nil {
		return err
	}
	s.destroyed(without)

	s.act("2. Under leases: acquire the account, read, think, write with the fence, release")
	if cfg.Server == "" {
		server, err := startServer(ctx, cfg.Binary, dir)
		if err != nil {
			return err
		}
		s.say(
			"a server is ready: gRPC on %s, HTTP on %s, its journal in %s", server.GRPC, server.HTTP,
			filepath.Join(dir, "server"),
		)
		cfg.Server = server.GRPC
		cfg.ready(server, "")
		defer func() { err = cfg.stopServer(ctx, server, err) }()
	}
	with, err := underLeases(ctx, cfg, p, dir, s)
	if err != nil {
		return err
	}

	result := newResult(cfg, p, dir, without, with)
	if err := s.closing(result); err != nil {
		return err
	}
	return result.verdict()
}

// makeDir makes the directory of a race, or checks that it is empty.
func makeDir(dir string) (string, error) {
	if dir == "" {
		dir, err := os.MkdirTemp("", "interlock-demo-")
		if err != nil {
			return "", err
		}
		// All users may read it. Its secrets are the server's, in its own directory.
		return dir, os.Chmod(dir, 0o755)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) > 0 {
		return "", invalid("%s is not empty: name a directory that is empty or does not exist", dir)
	}
	return filepath.Abs(dir)
}
