package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// pane is a terminal of tmux with a program in it.
type pane struct {
	t      *testing.T
	socket string
	env    []string
}

func newPane(t *testing.T, env []string, width, height int, command ...string) *pane {
	t.Helper()
	p := &pane{t, filepath.Join(t.TempDir(), "tmux"), append(env, "TERM=xterm-256color")}
	p.tmux(append([]string{
		"-f", os.DevNull, "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height),
	}, command...)...)
	t.Cleanup(func() { p.command("kill-server").Run() })
	return p
}

func (p *pane) command(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-S", p.socket}, args...)...)
	cmd.Env = p.env
	return cmd
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	out, err := p.command(args...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// types presses keys, as tmux names them.
func (p *pane) types(keys ...string) {
	p.t.Helper()
	p.tmux(append([]string{"send-keys"}, keys...)...)
}

// shows waits until the pane has all the texts, and none of those that begin with "!". It returns its lines.
func (p *pane) shows(texts ...string) []string {
	p.t.Helper()
	for deadline := time.Now().Add(busy.Patience()); ; {
		shown := p.tmux("capture-pane", "-p")
		missing := ""
		for _, text := range texts {
			text, not := strings.CutPrefix(text, "!")
			if strings.Contains(shown, text) == not {
				missing = text
			}
		}
		if missing == "" {
			return strings.Split(shown, "\n")
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("waited for %q, the last one is %q; the pane shows\n%s", texts, missing, shown)
		}
	}
}

// interlock top on a terminal: views, selection, explanation, filter, a revocation that asks, another size, a server
// that restarts, and a terminal that is left as it was.
func TestTop(t *testing.T) {
	tools.Need(t, "tmux")
	r := newRig(t)
	r.must("lock", "account:12345", "--agent", "billing-7", "--purpose", "late fee", "--ttl", "10m")
	r.must("lock", "帳簿:十一月", "--agent", "請求係", "--purpose", "月末", "--ttl", "10m")
	waits := r.start("run", "account:12345", "--agent", "support-2", "--", "true")

	p := newPane(t, r.env, 100, 20, "sh", "-c", "echo before; stty -g > "+r.dir+"/tty; "+launchtest.Binary(t)+
		" top; echo code $?; stty -g | cmp - "+r.dir+"/tty && echo as it was; read x")
	lines := p.shows("1 waiter", "billing-7", "late fee", "請求係", "q quit", "!before")
	starts := map[int]bool{} // cells before the holder, where a wide character takes two
	for _, line := range lines {
		for end, name := range map[string]string{"late fee": "billing-7", "月末": "請求係"} {
			if before, _, found := strings.Cut(line, name); found && strings.HasSuffix(strings.TrimSpace(line), end) {
				starts[len([]rune(before))+strings.Count(before, "帳簿")*2+strings.Count(before, "十一月")*3] = true
			}
		}
	}
	if len(starts) != 1 {
		t.Errorf("the holders begin at %v in\n%s", starts, strings.Join(lines, "\n"))
	}

	p.types("j", "Enter")
	p.shows("> account:12345", "── why account:12345", "is held by billing-7", "Next:")
	p.types("Escape")
	p.shows("!── why", "> account:12345")
	p.types("w")
	p.shows("└─ support-2", "waits for account:12345")
	p.types("a")
	p.shows("WAITS FOR", "BLOCKS")
	p.types("1", "/")
	p.types("-l", "請求")
	p.shows("filter: 請求", "!late fee")
	p.types("Enter")
	p.shows("only 請求", "帳簿")
	p.types("Escape")
	p.shows("account:12345", "!only")

	p.types("x")
	p.shows("is held by billing-7", "Revoke the lease with fence 1?", "[y/N]")
	p.types("n")
	p.shows("nothing was revoked")
	p.types("x", "y")
	p.types("-l", "stuck since noon")
	p.shows("reason: stuck since noon")
	p.types("Enter")
	p.shows("revoked: billing-7 no longer holds account:12345 (fence 1)")
	waits.ends(0)
	p.types("t")
	p.shows("revoked", "billing-7", "stuck since noon")

	p.types("1")
	p.tmux("resize-window", "-x", "60", "-y", "10")
	p.shows("[1 keys]", "帳簿", "q quit")
	r.server.Kill()
	p.shows("connecting again")
	r.restart()
	p.shows("帳簿", "!connecting again")

	p.types("q")
	p.shows("before", "code 0", "as it was")
}

// Without a terminal top prints frames, and -o json the pictures; without any it names the next step.
func TestTopPrints(t *testing.T) {
	r := newRig(t)
	r.must("lock", "account:12345", "--agent", "billing-7", "--purpose", "late fee", "--ttl", "10m")
	for args, want := range map[string]string{
		"top --frames 1":                      "billing-7",
		"top --frames 1 --view agents":        "late fee",
		"top --frames 1 --view waits":         "no agent waits",
		"top --frames 1 --view trouble":       "no deadlock",
		"top --frames 1 --filter nothing":     "nothing has nothing",
		"top --frames 1 --sort held":          "by held",
		"top --frames 1 -o json":              `"verdict":"No agent waits."`,
		"top --frames 2":                      "billing-7",
		"top --frames 1 --namespace rival":    "no key is held",
		"at --time 0s top --frames 1":         "billing-7",
		"at --time 0s top --frames 1 -o json": `"verdict"`,
	} {
		if out := r.must(strings.Fields(args)...); !strings.Contains(out, want) {
			t.Errorf("interlock %s shows\n%s", args, out)
		}
	}
	for args, want := range map[string]string{
		"top":               "use --frames 1",
		"top --frames -1":   "number of frames",
		"top --view nobody": "want keys, waits",
	} {
		if out, code := r.do(strings.Fields(args)...); code != cli.ExitUsage || !strings.Contains(out, want) {
			t.Errorf("interlock %s: exit code %d, %s", args, code, out)
		}
	}
}
