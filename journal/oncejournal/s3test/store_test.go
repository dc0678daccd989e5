package s3test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/remotetest"
	"github.com/interlockdev/interlock/internal/test/scenariotest"
	"github.com/interlockdev/interlock/journal/oncejournal"
	"github.com/interlockdev/interlock/journal/remote"
)

const (
	bucket = "journals"
	keyID  = "tester"
	secret = "not-a-secret"

	// asGateway makes the test's own binary a server over a directory: it links one anyway, and so nothing else
	// needs to be built or found. The value is its address and the directory.
	asGateway = "INTERLOCK_TEST_S3_GATEWAY"
)

func TestMain(m *testing.M) {
	if where := os.Getenv(asGateway); where != "" {
		if err := serveGateway(where); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": keyID, "AWS_SECRET_ACCESS_KEY": secret} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	scenariotest.Main(m)
}

func serveGateway(where string) error {
	addr, dir, _ := strings.Cut(where, " ")
	files, err := posix.New(dir, meta.XattrMeta{}, posix.PosixOpts{NewDirPerm: 0o755, Concurrency: 100})
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(context.Background(), files, &embedgw.Config{
		RootUserAccess: keyID, RootUserSecret: secret, Region: "us-east-1", Ports: []string{addr}, Quiet: true,
		MaxConnections: 1000, MaxRequests: 1000, MultipartMaxParts: 10_000, HealthPath: "/healthz",
	})
}

// store is a server with a bucket, for one test: its journals have names of their own.
type store struct {
	addr string
	name string
}

var journals atomic.Int64

// named returns the store for one test.
func named(addr string) *store { return &store{addr, fmt.Sprint("t", journals.Add(1))} }

// inMemory starts gofakes3. It does not check signatures.
func inMemory(t testing.TB) *store {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(bucket); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(s.Close)
	return named(strings.TrimPrefix(s.URL, "http://"))
}

// gateway is versitygw over a directory.
type gateway struct {
	*store
	dir string
	log string
	cmd *exec.Cmd
}

// onDisk starts a gateway that is killed at the end of the test.
func onDisk(t testing.TB) *store { return newGateway(t).store }

func newGateway(t testing.TB) *gateway {
	t.Helper()
	g := &gateway{store: named(busy.Ports(t, 1)[0]), dir: t.TempDir(), log: filepath.Join(t.TempDir(), "log")}
	if err := os.Mkdir(filepath.Join(g.dir, bucket), 0o755); err != nil {
		t.Fatal(err)
	}
	g.start(t)
	t.Cleanup(func() { g.kill(t) })
	return g
}

// start starts it, also again after a kill, and waits until it answers.
func (g *gateway) start(t testing.TB) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(g.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	g.cmd = exec.Command(self)
	g.cmd.Env = append(os.Environ(), asGateway+"="+g.addr+" "+g.dir)
	g.cmd.Stdout, g.cmd.Stderr = log, log
	g.cmd.SysProcAttr = launch.Attributes()
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	busy.Wait(t, "the gateway to answer", func() bool {
		got, err := http.Get("http://" + g.addr + "/healthz")
		if err != nil {
			return false
		}
		got.Body.Close()
		return got.StatusCode == http.StatusOK
	})
}

// restart ends it by kill -9 and starts it again.
func (g *gateway) restart(t testing.TB) {
	t.Helper()
	g.kill(t)
	g.start(t)
}

func (g *gateway) kill(t testing.TB) {
	t.Helper()
	if err := g.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	_ = g.cmd.Wait()
}

// Kind implements remotetest.Engine.
func (s *store) Kind() string { return "s3" }

// URL implements remotetest.Engine.
func (s *store) URL(name string) string { return s.at(name, s.addr) }

func (s *store) at(name, addr string) string {
	return fmt.Sprintf("s3://%s/%s/%s?endpoint=http://%s", bucket, s.name, name, addr)
}

// Cable implements remotetest.Engine.
func (s *store) Cable(t testing.TB, name string) (url string, cable remotetest.Cable) {
	p := remotetest.NewProxy(t, "127.0.0.1", s.addr)
	return s.at(name, p.Addr), remotetest.Cable{p}
}

// connect makes a store that is closed at the end of the test.
func connect(t testing.TB, url string) *remote.Store {
	t.Helper()
	at, err := oncejournal.ParseS3(url)
	if err != nil {
		t.Fatal(err)
	}
	s, err := oncejournal.ConnectS3(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
