package guard_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	guard "github.com/interlockdev/interlock/guard/redis"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// redis is a real redis-server, and a directory in which redis-cli reaches it and
// fenced.lua is what the page shows.
type redis struct {
	t   *testing.T
	dir string
	env []string
}

// startRedis starts a server without a disk. reach is how redis-cli finds it.
func startRedis(t *testing.T, dir, reach string, args ...string) *redis {
	t.Helper()
	tools.Need(t, "redis-server", "redis-cli", "bash")
	cmd := exec.Command(
		"redis-server", append([]string{"--save", "", "--appendonly", "no", "--dir", dir, "--daemonize", "no"}, args...)...,
	)
	cmd.SysProcAttr = launch.Attributes()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan bool, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.Contains(lines.Text(), "eady to accept connections") {
				select {
				case ready <- true:
				default:
				}
			}
		}
		_ = cmd.Wait()
		close(ready)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	if !<-ready {
		t.Fatal("redis-server ended before it was ready")
	}
	real, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"redis-cli":  "#!/bin/sh\nexec " + real + " " + reach + ` "$@"` + "\n",
		"fenced.lua": guard.Script,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &redis{t, dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))}
}

// shell runs lines of a shell, to the first that fails.
func (r *redis) shell(script string) (out string, err error) {
	cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = r.dir, r.env
	text, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(text)), err
}

// does runs lines of a shell and wants text to be in what they say.
func (r *redis) does(text, script string) {
	r.t.Helper()
	if out, err := r.shell(script); err != nil || !strings.Contains(out, text) {
		r.t.Errorf("%s\nsaid %q (%v), want %q", script, out, err, text)
	}
}

// refuses is does for lines that have to fail.
func (r *redis) refuses(text, script string) {
	r.t.Helper()
	if out, err := r.shell(script); err == nil || !strings.Contains(out, text) {
		r.t.Errorf("%s\nsaid %q (%v), want to fail with %q", script, out, err, text)
	}
}

func TestRedis(t *testing.T) {
	dir := t.TempDir()
	r := startRedis(t, dir, "-s "+dir+"/s", "--port", "0", "--unixsocket", dir+"/s")
	if strings.TrimSuffix(block(t, "lua redis"), "\n") != guard.Script {
		t.Error("the page shows another script than the one that is shipped")
	}
	for _, load := range []string{"redis-cli -x SCRIPT LOAD < fenced.lua", `redis-cli SCRIPT LOAD "$(cat fenced.lua)"`} {
		if sha, err := r.shell(load); err != nil || sha != guard.SHA() {
			t.Errorf("%s: the script's SHA is %s (%v), want %s", load, sha, err, guard.SHA())
		}
	}
	write := block(t, "sh redis")
	const read = "redis-cli HGET '{account:12345}' balance"
	r.does("", write)
	r.does("900", read)
	late := with(t, with(t, write, "42", "41"), "balance 900", "balance 1")
	r.refuses("FENCED fence 41 is stale, 42 was seen: do not write; acquire the key anew and read again", late)
	r.does("", with(t, write, "balance 900", "balance 800"))
	// Above 2^53 these two are one floating-point number.
	r.does("", with(t, with(t, write, "balance 900", "balance 700"), "42", "9007199254740993"))
	r.refuses("FENCED", with(t, write, "42", "9007199254740992"))
	r.refuses("FENCED", write)
	for _, fence := range []string{"''", "0", "-1", "042", "4e9", "nil"} {
		r.refuses("NOFENCE", with(t, late, "41", fence))
	}
	r.does("700", read)
}

// Writers at once, with fences old and new: those of a key never go down.
func TestRedisFencesNeverGoDown(t *testing.T) {
	dir := t.TempDir()
	r := startRedis(t, dir, "-s "+dir+"/s", "--port", "0", "--unixsocket", dir+"/s")
	sha, err := r.shell(`redis-cli SCRIPT LOAD "$(cat fenced.lua)"`)
	if err != nil {
		t.Fatal(sha, err)
	}
	var group sync.WaitGroup
	for w := range 4 {
		random := rand.New(rand.NewPCG(1, uint64(w)))
		var commands strings.Builder
		for n := range 300 {
			fence := max(1, n+1-random.IntN(5))
			fmt.Fprintf(&commands, "EVALSHA %s 2 fence:{k} {k} %d RPUSH {k} %d\n", sha, fence, fence)
		}
		group.Go(func() { r.does("FENCED", "redis-cli <<'END'\n"+commands.String()+"END") })
	}
	group.Wait()
	out, err := r.shell("redis-cli LRANGE '{k}' 0 -1")
	if err != nil {
		t.Fatal(out, err)
	}
	var fences []int
	for text := range strings.FieldsSeq(out) {
		fence, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		fences = append(fences, fence)
	}
	if len(fences) < 30 || !slices.IsSorted(fences) {
		t.Errorf("%d were accepted, in this order: %v", len(fences), fences)
	}
}

// In a cluster the hash tag keeps the fence with what it protects.
func TestRedisCluster(t *testing.T) {
	ports := busy.Ports(t, 2)
	_, port, _ := net.SplitHostPort(ports[0])
	_, bus, _ := net.SplitHostPort(ports[1])
	r := startRedis(
		t, t.TempDir(), "-p "+port, "--bind", "127.0.0.1", "--port", port, "--cluster-enabled", "yes", "--cluster-port", bus,
	)
	r.does("OK", "redis-cli -e CLUSTER ADDSLOTSRANGE 0 16383")
	r.does("", "until redis-cli CLUSTER INFO | grep -q cluster_state:ok; do :; done")
	write := block(t, "sh redis")
	r.does("", write)
	r.refuses("FENCED", with(t, write, "42", "41"))
	r.refuses("CROSSSLOT", with(t, write, "fence:{account:12345}", "fence:account:12345"))
}
