package redisjournal_test

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/certtest"
	"github.com/interlockdev/interlock/internal/test/redisserver"
	"github.com/interlockdev/interlock/internal/test/remotetest"
	"github.com/interlockdev/interlock/journal/redisjournal"
)

// Over TLS, as a user with no more rights than the page lists, and with the password from the environment.
func TestUserOverTLS(t *testing.T) {
	cert, key := certtest.SelfSigned(t, t.TempDir(), 1)
	secured := busy.Ports(t, 1)[0]
	_, port, _ := net.SplitHostPort(secured)
	server := durable(
		t, redisserver.Redis, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert,
		"--tls-auth-clients", "no",
	)
	server.Do(
		t, "ACL", "SETUSER", "locks", "on", ">secret", "~{interlock/*", "+@read", "+@write", "+@scripting", "+info",
		"+config|get", "+wait", "+select",
	)
	at := place(t, "rediss://locks@"+secured+"/0?ca="+cert)
	refused := func(want string) {
		t.Helper()
		_, err := connect(t, at).Open(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	refused("WRONGPASS")
	t.Setenv(redisjournal.PasswordVariable, "secret")
	j := remotetest.Own(t, connect(t, at))
	remotetest.Add(t, j, "secured")
	server.Do(t, "ACL", "SETUSER", "locks", "-config|get")
	refused("allow it CONFIG GET")
	server.Do(t, "ACL", "SETUSER", "locks", "~{other}*", "resetkeys")
	refused("NOPERM")
}

// The nodes of a cluster each have a part of the shards, and name the right one.
func TestCluster(t *testing.T) {
	kinds(t, func(t *testing.T, k redisserver.Kind) {
		var nodes []*redisserver.Server
		for i := range 2 {
			bus := freeBus(t)
			nodes = append(nodes, durable(t, k, "--cluster-enabled", "yes", "--cluster-port", bus))
			first, last := i*8192, i*8192+8191
			nodes[i].Do(t, "CLUSTER", "ADDSLOTSRANGE", fmt.Sprint(first), fmt.Sprint(last))
		}
		host, port, _ := net.SplitHostPort(nodes[0].Addr)
		bus := nodes[0].Do(t, "CONFIG", "GET", "cluster-port")
		nodes[1].Do(t, "CLUSTER", "MEET", host, port, strings.Split(bus, "\n")[1])
		for _, node := range nodes {
			busy.Wait(t, "the cluster", func() bool {
				return strings.Contains(node.Do(t, "CLUSTER", "INFO"), "cluster_state:ok")
			})
		}
		s := connect(t, place(t, nodes[0].URL("j")))
		for shard := range 8 {
			j := remotetest.Own(t, s.Shard(shard))
			remotetest.Add(t, j, "one")
			if again := remotetest.Own(t, s.Shard(shard)); remotetest.Texts(t, again) != " one " {
				t.Errorf("shard %d holds %q", shard, remotetest.Texts(t, again))
			}
		}
		for i, node := range nodes {
			if node.Do(t, "DBSIZE") == "0" {
				t.Errorf("node %d has no shard", i)
			}
		}
		nodes[1].Stop(t, syscall.SIGKILL)
		nodes[1].Restart(t)
		remotetest.Add(t, remotetest.Own(t, s.Shard(0)), "two")
	})
}

// freeBus returns a free port on which nodes talk to each other.
func freeBus(t *testing.T) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(busy.Ports(t, 1)[0])
	return port
}
