package scenariotest

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/interlockdev/interlock/internal/launch"
)

// process is a runner that carries out the steps that it is sent.
type process struct {
	cmd *exec.Cmd

	mu      sync.Mutex
	in      io.WriteCloser
	waiting map[string]chan<- reply // by the id of the step; nil once it has ended
}

// reply is the end of a step.
type reply struct {
	ID            string
	Result, Error map[string]any
}

// launch starts the runner of a library, with its clients.
func (s *stage) launch(ctx context.Context, l *Library, clients map[string]settings) (*process, error) {
	p := &process{cmd: s.command(ctx, l, first{}, "-"), waiting: map[string]chan<- reply{}}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stderr, p.in = os.Stderr, in
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.read(out)
	return p, json.NewEncoder(in).Encode(map[string]any{"clients": clients})
}

// read passes the replies on until the process ends.
func (p *process) read(out io.Reader) {
	for lines := json.NewDecoder(out); ; {
		var r reply
		err := lines.Decode(&r)
		p.mu.Lock()
		if err != nil {
			for _, to := range p.waiting {
				close(to)
			}
			p.waiting = nil
			p.mu.Unlock()
			return
		}
		if to := p.waiting[r.ID]; to != nil {
			to <- r
			delete(p.waiting, r.ID)
		}
		p.mu.Unlock()
	}
}

// do carries out a step. It reports whether there was a reply.
func (p *process) do(id string, step map[string]any) (reply, bool) {
	step["id"] = id
	answer := make(chan reply, 1)
	p.mu.Lock()
	if p.waiting == nil {
		p.mu.Unlock()
		return reply{}, false
	}
	p.waiting[id] = answer
	p.mu.Unlock()
	p.send(step)
	r, ok := <-answer
	return r, ok
}

// send sends a line. If that fails, the process ends, and no reply comes.
func (p *process) send(line map[string]any) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err) // it is made of texts and numbers
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.in.Write(append(text, '\n'))
}

// sleep stops the process for some time.
func (p *process) sleep(ctx context.Context, d time.Duration) error {
	if err := p.cmd.Process.Signal(launch.Stop); err != nil {
		return err
	}
	pause(ctx, d)
	return p.cmd.Process.Signal(launch.Continue)
}

// kill ends the process at once.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// end lets the process close its clients, and waits for its end.
func (p *process) end() error {
	_ = p.in.Close()
	return p.cmd.Wait()
}
