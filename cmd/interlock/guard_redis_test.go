//go:build unix

package main

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/guard/redis"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// The commands against a real server, and the function that they load.
func TestGuardRedis(t *testing.T) {
	tools.Need(t, "redis-server", "redis-cli")
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	server := exec.Command(
		"redis-server", "--save", "", "--dir", dir, "--port", "0", "--unixsocket", socket, "--requirepass", "pass word",
	)
	server.SysProcAttr = launch.Attributes()
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "eady to accept connections") {
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() {
		}
		_ = server.Wait()
	}()
	t.Cleanup(func() {
		_ = server.Process.Kill()
		<-ended
	})

	guard := func(code int, want string, args ...string) {
		t.Helper()
		p := startProc(
			t, append(cleanEnvironment(), "REDISCLI_AUTH=pass word"), append([]string{"guard", "redis"}, args...)...,
		)
		p.in.Close()
		if out := p.ends(code); !strings.Contains(out, want) {
			t.Errorf("guard redis %s: got\n%s\nwant %s", strings.Join(args, " "), out, want)
		}
	}
	for range 2 {
		guard(cli.ExitOK, "installed: FCALL interlock_fenced\n", "install", "--url", "unix://"+socket)
	}
	guard(cli.ExitUsage, "name the server: interlock guard redis install --url URL", "install")
	guard(cli.ExitUsage, `is no address of a Redis server`, "install", "--url", "http://user:secret@x")
	guard(cli.ExitUnreachable, "Could not connect to Redis", "install", "--url", "redis://127.0.0.1:1")
	guard(cli.ExitOK, redis.Script, "print")
	guard(cli.ExitOK, redis.Library(), "print", "--library")
	guard(cli.ExitOK, redis.SHA()+"\n", "print", "--sha")
	guard(cli.ExitUsage, "exclude each other", "print", "--sha", "--library")

	call := func(want string, fence string, command ...string) {
		t.Helper()
		cli := exec.Command("redis-cli", append([]string{
			"-s", socket, "FCALL", redis.Function, "2", "fence:{k}", "{k}", fence,
		}, command...)...)
		cli.Env = append(cleanEnvironment(), "REDISCLI_AUTH=pass word")
		if out, err := cli.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v under %s: %s (%v), want %s", command, fence, out, err, want)
		}
	}
	call("OK", "42")
	call("OK", "42", "SET", "{k}", "1")
	call("FENCED fence 41 is stale, 42 was seen", "41", "SET", "{k}", "2")
	call("NOFENCE", "", "SET", "{k}", "2")
	call("1", "9007199254740993", "GET", "{k}")
	call("FENCED", "9007199254740992", "GET", "{k}")
}
