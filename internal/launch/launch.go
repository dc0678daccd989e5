package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// Config is the configuration of the server to start.
type Config struct {
	// Binary is the interlock binary. Required.
	Binary string

	// DataDir is where the server keeps its journal. Required without Journal.
	DataDir string

	// Journal is the URL of a journal in an engine, in place of DataDir. The server is ready when it
	// owns a shard.
	Journal string

	// Args are more arguments of serve, after the data directory and the addresses,
	// so they win.
	Args []string

	// Wrap is put before the command: {"strace", "-D", ...}. It must leave the
	// server's process id and exit code as they are.
	Wrap []string

	// Log gets what the server writes to standard error. nil keeps the last lines for
	// error texts only.
	Log io.Writer
}

// Server is a running, or ended, server.
type Server struct {
	HTTP string // address, host:port
	GRPC string
	// RESP is where the server answers clients of Redis; "" if it does not.
	RESP string

	cmd   *exec.Cmd
	log   *tail
	ended chan struct{}
	code  int
}

// ExitError reports that the server ended before it was ready.
type ExitError struct {
	Code int // exit code; -1 after a signal
	Log  string
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("the server ended with exit code %d before it was ready:\n%s", e.Code, e.Log)
}

// Start starts a server and returns when it has printed its ready line. It
// returns an *ExitError when the server ended instead. When ctx ends first the
// server is killed.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	args := append(append([]string(nil), cfg.Wrap...), cfg.Binary, "serve",
		"--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
	if cfg.Journal != "" {
		args = append(args, "--journal", cfg.Journal)
	} else {
		args = append(args, "--data-dir", cfg.DataDir)
	}
	args = append(args, cfg.Args...)

	s := &Server{log: &tail{next: cfg.Log}, ended: make(chan struct{})}
	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Env = environment(os.Environ())
	s.cmd.Stderr = s.log
	s.cmd.SysProcAttr = Attributes()
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}

	ready := make(chan string, 1)
	go func() {
		// Wait may only be called when the pipe has been read to its end.
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "standby ") {
				continue
			}
			select {
			case ready <- lines.Text():
			default:
			}
		}
		err := s.cmd.Wait()
		s.code = s.cmd.ProcessState.ExitCode()
		if err != nil && s.code == 0 {
			s.code = -1
		}
		close(s.ended)
	}()

	select {
	case line := <-ready:
		if n, _ := fmt.Sscanf(line, "ready http=%s grpc=%s resp=%s", &s.HTTP, &s.GRPC, &s.RESP); n < 2 {
			s.Kill()
			return nil, fmt.Errorf("the server's first line is %q, want ready http=ADDR grpc=ADDR", line)
		}
		return s, nil
	case <-s.ended:
		return nil, &ExitError{Code: s.code, Log: s.log.String()}
	case <-ctx.Done():
		s.Kill()
		return nil, context.Cause(ctx)
	}
}

// environment is the caller's without the variables that would configure a
// server.
func environment(all []string) (env []string) {
	for _, v := range all {
		if !strings.HasPrefix(v, "INTERLOCK_") {
			env = append(env, v)
		}
	}
	return env
}

// Ended is closed when the server has ended.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// ExitCode waits for the end and returns the exit code, -1 after a signal.
func (s *Server) ExitCode() int {
	<-s.ended
	return s.code
}

// Log returns the end of the server's standard error.
func (s *Server) Log() string { return s.log.String() }

// Kill ends the server with SIGKILL and waits until it is gone.
func (s *Server) Kill() {
	// The only error is that it is gone already.
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// Signal sends the server a signal, such as SIGHUP.
func (s *Server) Signal(signal os.Signal) error { return s.cmd.Process.Signal(signal) }

// Stop asks the server to shut down and waits for it, or until ctx ends: then it
// is killed. It returns an error unless the server ended with exit code 0.
func (s *Server) Stop(ctx context.Context) error {
	if err := terminate(s.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the server: %w", err)
	}
	select {
	case <-s.ended:
	case <-ctx.Done():
		s.Kill()
		return fmt.Errorf("the server did not stop in time: %w", context.Cause(ctx))
	}
	if s.code != 0 {
		return fmt.Errorf("the server ended with exit code %d:\n%s", s.code, s.log.String())
	}
	return nil
}

// tail keeps the end of its input and passes everything on.
type tail struct {
	mu   sync.Mutex
	end  []byte
	next io.Writer
}

const tailBytes = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, p...)
	if extra := len(t.end) - tailBytes; extra > 0 {
		t.end = append(t.end[:0], t.end[extra:]...)
	}
	if t.next != nil {
		return t.next.Write(p)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.end)
}
