package firestoretest

import (
	"bufio"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/remotetest"
	"github.com/interlockdev/interlock/internal/test/scenariotest"
	"github.com/interlockdev/interlock/internal/test/tools"
	"github.com/interlockdev/interlock/journal/oncejournal"
	"github.com/interlockdev/interlock/journal/remote"
)

func TestMain(m *testing.M) {
	scenariotest.Main(m)
}

// emulator is Google's emulator. It keeps its documents in memory.
type emulator struct{ addr string }

var (
	shared   *emulator // of all tests of this package, because it takes seconds to start
	starting sync.Once
	journals atomic.Int64
)

// start starts the emulator, once. It ends with this process.
func start(t testing.TB) *emulator {
	t.Helper()
	tools.Need(t, tools.Firestore)
	starting.Do(func() { shared = launchEmulator(t) })
	if shared == nil {
		t.Fatal("the emulator did not start")
	}
	return shared
}

func launchEmulator(t testing.TB) *emulator {
	t.Helper()
	addr := busy.Ports(t, 1)[0]
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(
		"java", "-Xmx1g", "-cp", tools.FirestoreJar(), "com.google.cloud.datastore.emulator.firestore.CloudFirestore",
		"--host", host, "--port", port,
	)
	cmd.SysProcAttr = launch.Attributes()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	go func() {
		var said strings.Builder
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.Contains(lines.Text(), "is now running") {
				ready <- ""
			}
			if said.Len() < 4<<10 {
				fmt.Fprintln(&said, lines.Text())
			}
		}
		_ = cmd.Wait()
		select {
		case ready <- "the emulator ended:\n" + said.String():
		default:
		}
	}()
	if failure := <-ready; failure != "" {
		t.Fatal(failure)
	}
	return &emulator{addr}
}

// suite is the emulator for one test: its journals have names of their own.
type suite struct {
	*emulator
	name string
}

func begin(t testing.TB) *suite {
	t.Helper()
	return &suite{start(t), fmt.Sprint("t", journals.Add(1))}
}

// Kind implements remotetest.Engine.
func (s *suite) Kind() string { return "firestore" }

// URL implements remotetest.Engine.
func (s *suite) URL(name string) string { return s.at(name, s.addr) }

func (s *suite) at(name, addr string) string {
	return fmt.Sprintf("firestore://interlock-test/default/%s-%s?emulator=%s", s.name, name, addr)
}

// Cable implements remotetest.Engine.
func (s *suite) Cable(t testing.TB, name string) (url string, cable remotetest.Cable) {
	p := remotetest.NewProxy(t, "127.0.0.1", s.addr)
	return s.at(name, p.Addr), remotetest.Cable{p}
}

// connect makes a store that is closed at the end of the test.
func connect(t testing.TB, url string) *remote.Store {
	t.Helper()
	at, err := oncejournal.ParseFirestore(url)
	if err != nil {
		t.Fatal(err)
	}
	s, err := oncejournal.ConnectFirestore(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
