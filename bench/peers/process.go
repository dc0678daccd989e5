package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/interlockdev/interlock/internal/bench"
)

// process is a service that runs.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// start starts a service and returns when it has said that it is ready, which is a part of
// a line on its standard output or error.
func start(ctx context.Context, cmd *exec.Cmd, ready string) (*process, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = in, in
	err = cmd.Start()
	_ = in.Close()
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	told := make(chan struct{})
	var said strings.Builder // is read when the process has ended
	go func() {
		defer close(p.ended)
		lines := bufio.NewReader(out)
		for waiting := true; ; {
			line, err := lines.ReadString('\n')
			if said.Len() < 4<<10 {
				said.WriteString(line)
			}
			if waiting && strings.Contains(line, ready) {
				waiting = false
				close(told)
			}
			if err != nil {
				break
			}
		}
		_, _ = io.Copy(io.Discard, out)
		_ = out.Close()
		_ = cmd.Wait()
	}()
	select {
	case <-told:
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("%s ended before it was ready:\n%s", filepath.Base(cmd.Path), said.String())
	case <-ctx.Done():
		p.end(syscall.SIGKILL)
		return nil, context.Cause(ctx)
	}
}

// patience is how long a service may take to end by itself.
const patience = 10 * time.Second

// end sends a signal, and SIGKILL if that is not enough.
func (p *process) end(by os.Signal) {
	_ = p.cmd.Process.Signal(by)
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-p.ended:
	case <-limit.C:
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// ticks is how many units of processor time in /proc are a second.
const ticks = 100

// usage returns the resources used by the process and its children, also those that have ended.
func (p *process) usage() (u bench.Usage, err error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return u, err
	}
	self := strconv.Itoa(p.cmd.Process.Pid)
	found := false
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return u, err
		}
		// A name may have blanks and brackets in it; what follows has neither.
		name := strings.LastIndexByte(string(text), ')')
		fields := strings.Fields(string(text[name+1:]))
		if len(fields) < 22 {
			return u, fmt.Errorf("%s has %d fields", file, len(fields))
		}
		itself := filepath.Base(filepath.Dir(file)) == self
		if !itself && fields[1] != self {
			continue
		}
		found = found || itself
		counted := []int{11, 12, 13, 14} // its user and system time, and those of its children that have ended
		if fields[17] == "1" {
			// A process of one thread is counted in nanoseconds. Hundreds of PostgreSQL's have
			// not used one tick each.
			counted = counted[2:]
			ran, err := ranFor(filepath.Dir(file))
			if err != nil {
				return u, err
			}
			u.CPU += ran
		}
		for _, at := range counted {
			n, err := strconv.ParseInt(fields[at], 10, 64)
			if err != nil {
				return u, fmt.Errorf("%s: %w", file, err)
			}
			u.CPU += time.Duration(n) * time.Second / ticks
		}
		pages, err := strconv.ParseInt(fields[21], 10, 64)
		if err != nil {
			return u, fmt.Errorf("%s: %w", file, err)
		}
		u.Resident += pages * int64(os.Getpagesize())
	}
	if !found {
		return u, fmt.Errorf("process %s has ended", self)
	}
	return u, nil
}

// ranFor is how long the first thread of a process has run; 0 if it has ended.
func ranFor(proc string) (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join(proc, "schedstat"))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var ran int64
	if _, err := fmt.Sscan(string(text), &ran); err != nil {
		return 0, fmt.Errorf("%s/schedstat: %w", proc, err)
	}
	return time.Duration(ran), nil
}

// freePorts returns n free ports of loopback.
func freePorts(n int) (ports []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	return ports, nil
}
