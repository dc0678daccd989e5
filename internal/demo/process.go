package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/interlockdev/interlock/internal/launch"
)

// process is an agent in a process of its own. It ends with its context.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	steps chan step // closed when the process has ended
}

// startProcess starts an agent of a role, which is a hidden command of the demo, and sends it
// its order.
func startProcess(ctx context.Context, binary, role string, order any) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, binary, "demo", role), steps: make(chan step, 16)}
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = launch.Attributes()
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start an agent: %w", err)
	}
	go func() {
		defer close(p.steps)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var s step
			if json.Unmarshal(lines.Bytes(), &s) == nil {
				p.steps <- s
			}
		}
		// How it ended shows in what it said before.
		_ = p.cmd.Wait()
	}()
	return p, json.NewEncoder(p.in).Encode(order)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// answer is the model's answer, which the agent reads when it runs.
func (p *process) answer() error {
	_, err := io.WriteString(p.in, "answer\n")
	return err
}

func (p *process) kill() error { return p.cmd.Process.Kill() }

// next waits for an event of the agent, and passes over others.
func (p *process) next(ctx context.Context, event string) (step, error) {
	for {
		select {
		case s, more := <-p.steps:
			if !more {
				return s, fmt.Errorf("the agent of process %d ended before it was %s", p.pid(), event)
			}
			if s.Event == event {
				return s, nil
			}
		case <-ctx.Done():
			return step{}, context.Cause(ctx)
		}
	}
}

// gone waits until the process has ended.
func (p *process) gone(ctx context.Context) error {
	for {
		select {
		case _, more := <-p.steps:
			if !more {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
