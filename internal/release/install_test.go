package main

import (
	"flag"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
)

var install = flag.Bool("install", false, "install the packages on a copy of this machine; needs root")

// Both packages install, the server works as its unit starts it, and a purge leaves the journal.
func TestInstall(t *testing.T) {
	tools.Asked(t, *install, "-install", "packages")
	tools.Need(t, "dpkg-deb", "rpm", "unshare", "mount", "ip", "strace", "systemd-analyze")
	r := finished(t)
	out, err := exec.Command(
		"unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "testdata/install.sh",
		filepath.Join(r.out, "interlock_1.2.3_"+runtime.GOARCH+".deb"),
		filepath.Join(r.out, "interlock_1.2.3_"+runtime.GOARCH+".rpm"),
		t.TempDir(),
	).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"\nverified\ninterlock\ninterlock v1.2.3\n", "\ninterlock-hook v1.2.3\n", "exit code 69\nthe unit is in order\n",
		"\nready http=127.0.0.1:7999 grpc=127.0.0.1:7421\n", "\nlocked\nok active\n",
		"\nrefused system calls: \nwritable code: 0\n",
		"interlock: the journal is kept in /var/lib/interlock\npurged\n",
		"\nverified the RPM\n", "\n/usr/sbin/useradd\n",
		"\ninterlock v1.2.3\ninterlock: the journal is kept", "\nerased\n",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if t.Failed() {
		t.Logf("it is:\n%s", out)
	}
}
