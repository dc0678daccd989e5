package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
)

// Process is a git that answers several requests, such as cat-file --batch. It belongs to one goroutine at a time.
type Process struct {
	// In is its standard input. A request that is longer than a pipe must not be written before earlier answers
	// are read.
	In io.WriteCloser
	// Out is its standard output.
	Out *bufio.Reader

	name      string
	complaint outputBuffer
	wait      func() error
	stop      context.CancelFunc
}

// Start starts a git that answers until Close or the end of ctx. Call.In, Out and Answers have no meaning here.
func (r *Repository) Start(ctx context.Context, c Call) (*Process, error) {
	ctx, stop := context.WithCancel(ctx)
	cmd := r.command(ctx, c)
	p := &Process{name: c.name(), complaint: outputBuffer{limit: maxStderr, cut: true}, stop: stop}
	cmd.Stderr = &p.complaint
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut); err != nil {
		stop()
		return nil, fmt.Errorf("git %s: %w", p.name, err)
	}
	if err := r.wrap(cmd, cmd.Start); err != nil {
		stop()
		return nil, &Error{Command: p.name, Exit: -1, Err: err}
	}
	p.In, p.Out, p.wait = in, bufio.NewReaderSize(out, 64<<10), cmd.Wait
	return p, nil
}

// Fail ends the process after its pipes broke, and returns why: git's own complaint if there is one.
func (p *Process) Fail(err error) error {
	p.stop()
	ended := p.wait()
	if errors.Is(err, io.EOF) && ended != nil {
		err = ended
	}
	return &Error{Command: p.name, Exit: -1, Stderr: p.complaint.buffer.String(), Err: err}
}

// Kill ends the process, also while another goroutine waits for an answer, which is then an error.
func (p *Process) Kill() { p.stop() }

// Close ends the process. It is done when Close returns.
func (p *Process) Close() {
	p.In.Close()
	p.stop()
	p.wait() // killed or not, its answers were complete
}
