package etcdtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"go.uber.org/zap"

	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/scenariotest"
	"github.com/interlockdev/interlock/journal/etcdjournal"
	"github.com/interlockdev/interlock/journal/remote"
)

// asMember makes the test's own binary a member of a cluster: it links etcd anyway, and
// so nothing else needs to be built or found.
const asMember = "INTERLOCK_TEST_ETCD_MEMBER"

func TestMain(m *testing.M) {
	if os.Getenv(asMember) != "" {
		etcdmain.Main(os.Args)
		return
	}
	scenariotest.Main(m)
}

// cluster is three members of etcd, each a process.
type cluster struct {
	testing.TB
	members []*member
	papers  *papers // nil: its clients need not authenticate
	stores  atomic.Int32
}

type member struct {
	client string // host:port
	dir    string
	args   []string
	cmd    *exec.Cmd
}

// startCluster starts one that is stopped at the end of the test. flags are etcd's, for
// every member.
func startCluster(t testing.TB, flags ...string) *cluster {
	t.Helper()
	return startClusterWith(t, nil, flags...)
}

func startClusterWith(t testing.TB, with *papers, flags ...string) *cluster {
	t.Helper()
	c := &cluster{TB: t, papers: with}
	scheme := "http://"
	if with != nil {
		scheme = "https://"
		flags = append(
			flags, "--cert-file", with.member.cert, "--key-file", with.member.key, "--trusted-ca-file", with.ca,
			"--client-cert-auth",
		)
	}
	const size = 3
	ports := busy.Ports(t, 2*size)
	var initial []string
	for i := range size {
		initial = append(initial, fmt.Sprintf("m%d=http://%s", i, ports[size+i]))
	}
	for i := range size {
		m := &member{client: ports[i], dir: t.TempDir()}
		m.args = append([]string{
			"--name", fmt.Sprint("m", i), "--data-dir", filepath.Join(m.dir, "data"),
			"--listen-client-urls", scheme + m.client, "--advertise-client-urls", scheme + m.client,
			"--listen-peer-urls", "http://" + ports[size+i], "--initial-advertise-peer-urls", "http://" + ports[size+i],
			"--initial-cluster", strings.Join(initial, ","), "--initial-cluster-token", t.Name(), "--logger", "zap",
			"--log-level", "error",
		}, flags...)
		c.members = append(c.members, m)
		c.start(i)
	}
	t.Cleanup(func() {
		for _, m := range c.members {
			m.kill()
		}
	})
	c.settled()
	return c
}

// start starts a member, also again after a kill.
func (c *cluster) start(i int) {
	c.Helper()
	m := c.members[i]
	self, err := os.Executable()
	if err != nil {
		c.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(m.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.Fatal(err)
	}
	defer log.Close()
	m.cmd = exec.Command(self, m.args...)
	m.cmd.Env = append(os.Environ(), asMember+"=1")
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.cmd.Start(); err != nil {
		c.Fatal(err)
	}
}

// kill is kill -9.
func (m *member) kill() {
	if m.cmd != nil {
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
		m.cmd = nil
	}
}

// pause stops a member. When it returns no thread of it runs any more: the signal alone
// only asks for that, and on a busy machine a follower had time to answer its leader.
func (m *member) pause(t testing.TB) {
	t.Helper()
	m.signal(t, syscall.SIGSTOP)
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(m.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || !status.Stopped() {
			t.Fatalf("the member does not stop: %v, status %x", err, status)
		}
		return
	}
}

func (m *member) resume(t testing.TB) { m.signal(t, syscall.SIGCONT) }

func (m *member) signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) endpoints() (list []string) {
	for _, m := range c.members {
		list = append(list, m.client)
	}
	return list
}

// client is etcd's own.
func (c *cluster) client() *clientv3.Client {
	c.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: c.endpoints(), DialTimeout: 10 * time.Second, Logger: zap.NewNop(), TLS: c.papers.config(c),
	})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { client.Close() })
	return client
}

// settled waits until all members answer and know their leader.
func (c *cluster) settled() {
	c.Helper()
	client := c.client()
	ctx, cancel := context.WithTimeout(context.Background(), busy.Patience())
	defer cancel()
	for _, endpoint := range c.endpoints() {
		for {
			limit, done := context.WithTimeout(ctx, time.Second)
			s, err := client.Status(limit, endpoint)
			done()
			if err == nil && s.Leader != 0 {
				break
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				c.Fatalf("the cluster does not come up: %v\n%s", err, c.logs())
			}
		}
	}
}

func (c *cluster) logs() string {
	var b strings.Builder
	for i, m := range c.members {
		text, _ := os.ReadFile(filepath.Join(m.dir, "log"))
		fmt.Fprintf(&b, "member %d:\n%s\n", i, text)
	}
	return b.String()
}

// leader is the member that leads now.
func (c *cluster) leader() int {
	c.Helper()
	client := c.client()
	for i, m := range c.members {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		s, err := client.Status(ctx, m.client)
		cancel()
		if err == nil && s.Leader == s.Header.MemberId {
			return i
		}
	}
	c.Fatal("no member leads")
	return 0
}

// pauseFollowers leaves the leader alone: it has no majority from then on.
func (c *cluster) pauseFollowers() (followers []*member) {
	c.Helper()
	leader := c.leader()
	for i, m := range c.members {
		if i != leader {
			m.pause(c)
			followers = append(followers, m)
		}
	}
	return followers
}

// place is one without any writes.
func (c *cluster) place() etcdjournal.Place {
	at := etcdjournal.Place{Endpoints: c.endpoints(), Name: fmt.Sprint("j", c.stores.Add(1))}
	if p := c.papers; p != nil {
		at.CA, at.Cert, at.Key = p.ca, p.server.cert, p.server.key
	}
	return at
}

// store connects to a place.
func (c *cluster) store(at etcdjournal.Place) *remote.Store {
	c.Helper()
	s, err := etcdjournal.Connect(at)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { s.Close() })
	return s
}
