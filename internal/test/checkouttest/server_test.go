package checkouttest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/hook"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// asServer has the folder of the journal in a process that is the server.
const asServer = "INTERLOCK_CHECKOUTTEST_SERVER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asServer); dir != "" {
		if err := serve(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serve is a server with the door of hooks, until its standard input ends.
func serve(dir string) error {
	ctx := context.Background()
	j, err := filejournal.Open(ctx, dir, filejournal.Options{})
	if err != nil {
		return err
	}
	sh, err := shard.Open(ctx, shard.Config{Journal: j})
	if err != nil {
		return err
	}
	s, err := server.New(server.Config{Shard: sh})
	if err != nil {
		return err
	}
	api := s.HTTPHandler()
	door := hook.NewHandler(hook.Config{API: api, Disk: true})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the test
		os.Exit(0)
	}()
	web := s.HTTPServer()
	web.Handler = routes{api: api, door: door}
	fmt.Println(l.Addr())
	return web.Serve(l)
}

// routes are those of a server with hooks.
type routes struct{ api, door http.Handler }

func (r routes) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if strings.HasPrefix(q.URL.Path, hook.Path) {
		r.door.ServeHTTP(w, q)
		return
	}
	r.api.ServeHTTP(w, q)
}

// process is a server that is killed and started again.
type process struct {
	t       *testing.T
	journal string
	cmd     *exec.Cmd
	base    string
}

func (p *process) start() {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd = exec.Command(self)
	p.cmd.Env = append(os.Environ(), asServer+"="+p.journal)
	p.cmd.Stderr = os.Stderr
	if _, err := p.cmd.StdinPipe(); err != nil { // it stays open
		p.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		p.t.Fatalf("the server does not start: %v", err)
	}
	p.base = "http://" + strings.TrimSpace(line)
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // one that has ended is dead
	_ = p.cmd.Wait()         // the signal is the error
}
