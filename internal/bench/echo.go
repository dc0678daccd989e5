package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/interlockdev/interlock/internal/launch"
)

// Echo is the yardstick of the HTTP transport: net/http with a handler that decodes the JSON
// of an acquire, encodes it again with a lease's id and does nothing else. Its server is
// a process of its own, as Interlock's is, and its callers are the same.
type Echo struct {
	// Command starts a process that calls ServeEcho.
	Command []string
}

// Name implements Target.
func (e Echo) Name() string { return "net/http echo" }

// Open implements Target.
func (e Echo) Open(ctx context.Context) (Site, error) {
	s := &echoSite{cmd: exec.Command(e.Command[0], e.Command[1:]...)}
	s.cmd.Stderr = os.Stderr
	s.cmd.SysProcAttr = launch.Attributes()
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the echo: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = s.in.Close() })
	defer stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("start the echo: it did not say where it is: %w", err)
	}
	if _, err := fmt.Sscan(line, &s.http, &s.tcp, &s.synced); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("start the echo: its first line is %q: %w", line, err)
	}
	return s, nil
}

// echoSite is an echo server.
type echoSite struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	http string // addresses
	tcp  string

	synced string // where what is echoed is synced before
}

// Crew implements Site.
func (s *echoSite) Crew(ctx context.Context, n int) (*Crew, error) {
	return dialHTTP(ctx, n, s.http, nil, "Host: "+s.http+"\r\n")
}

// Usage implements Site: an echo reports nothing.
func (s *echoSite) Usage(context.Context) (Usage, error) { return Usage{}, nil }

// Settle implements Site.
func (s *echoSite) Settle(context.Context) (Usage, error) { return Usage{}, nil }

// Close implements Site.
func (s *echoSite) Close() error {
	_ = s.in.Close() // it ends when the last client has gone
	return s.cmd.Wait()
}

// ServeEcho answers until in ends. It writes the addresses of its HTTP and its TCP echo, and
// of one that syncs, to out first.
func ServeEcho(in io.Reader, out io.Writer) error {
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	synced, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: http.HandlerFunc(AnswerEcho), ReadHeaderTimeout: time.Minute}
	served := make(chan error, 3)
	go func() { served <- srv.Serve(web) }()
	go func() { served <- echoBytes(raw) }()
	go func() { served <- syncBytes(synced) }()
	if _, err := fmt.Fprintln(out, web.Addr(), raw.Addr(), synced.Addr()); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, in) // its end is what is waited for
		_ = srv.Close()
	}()
	if err := <-served; err != http.ErrServerClosed {
		return err
	}
	return nil
}

// echoBytes sends back what it gets, on one connection after the other.
func echoBytes(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		_, _ = io.Copy(struct{ io.Writer }{conn}, struct{ io.Reader }{conn}) // until the caller goes
		_ = conn.Close()
	}
}

// AnswerEcho decodes and encodes as much JSON as a cycle has, and does nothing else.
func AnswerEcho(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Agent  string `json:"agent"`
		Claims []struct {
			Key  string `json:"key"`
			Mode string `json:"mode"`
		} `json:"claims"`
		Lease struct {
			ID string `json:"id"`
		} `json:"lease"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	body.Lease.ID = "l_00000000000000000000000000000000"
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}
