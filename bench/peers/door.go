package main

import (
	"context"
	"os/exec"
	"syscall"

	"github.com/interlockdev/interlock/internal/launch"
)

// respDoor is Interlock's door for clients of Redis: the same client as at Redis, at another address.
type respDoor struct{ binary string }

func (respDoor) missing() string { return "" }

func (s respDoor) start(ctx context.Context, dir string) (*instance, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	addr := "127.0.0.1:" + ports[0]
	cmd := exec.Command(
		s.binary, "serve", "--data-dir", dir, "--log-level", "warn", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
		"--resp", addr,
	)
	cmd.SysProcAttr = launch.Attributes()
	p, err := start(ctx, cmd, "ready http=")
	if err != nil {
		return nil, err
	}
	return &instance{process: p, addr: addr, quit: syscall.SIGKILL}, nil // nothing of it is to be kept
}
