package etcdtest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/interlockdev/interlock/internal/test/remotetest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

var namespaces = flag.Bool(
	"namespaces", false, "also cut a network between two namespaces, which takes root and iproute2",
)

// The same with a network of its own for the old owner: its link to etcd goes down while that
// to its clients stays.
func TestCutByNamespace(t *testing.T) {
	tools.Asked(t, *namespaces, "-namespaces", "etcd")
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
	space := fmt.Sprint("ilk", os.Getpid())
	ip("netns", "add", space)
	t.Cleanup(func() { ip("netns", "del", space) })
	ip("netns", "exec", space, "ip", "link", "set", "lo", "up")
	// Two cables: 0 to etcd, 1 to the clients.
	for i := range 2 {
		outer, inner := fmt.Sprint(space, "o", i), fmt.Sprint(space, "i", i)
		ip("link", "add", outer, "type", "veth", "peer", "name", inner)
		ip("link", "set", inner, "netns", space)
		ip("addr", "add", fmt.Sprintf("10.213.%d.1/30", i), "dev", outer)
		ip("link", "set", outer, "up")
		ip("netns", "exec", space, "ip", "addr", "add", fmt.Sprintf("10.213.%d.2/30", i), "dev", inner)
		ip("netns", "exec", space, "ip", "link", "set", inner, "up")
	}
	c := startCluster(t)
	var through []string
	for _, m := range c.members {
		through = append(through, remotetest.NewProxy(t, "10.213.0.1", m.client).Addr)
	}
	old := remotetest.ServeAt(t, []string{"ip", "netns", "exec", space}, "10.213.1.2:7420", "10.213.1.2:7421",
		"--insecure", "--journal", c.url("cut", through...))
	old.Becomes("ready")
	next := remotetest.Serve(t, c.url("cut"))
	next.Becomes("standby")
	remotetest.OldOwnerIsSilent(t, old, next, remotetest.Looking, func(cut bool) {
		state := "up"
		if cut {
			state = "down"
		}
		ip("link", "set", space+"o0", state)
	})
}
