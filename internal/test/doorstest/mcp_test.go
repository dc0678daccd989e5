package doorstest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

// The newest revision, and the one before it.
const (
	newest = "2026-07-28"
	older  = "2025-11-25"
)

// site is a server, and a folder with the packages of npm.
type site struct {
	*testing.T
	server *launch.Server
	url    string
	folder string
}

func open(t *testing.T) *site {
	t.Helper()
	tools.Need(t, tools.DoorsNode)
	server := launchtest.Start(t, launch.Config{DataDir: t.TempDir()})
	s := &site{T: t, server: server, url: "http://" + server.HTTP + "/mcp", folder: t.TempDir()}
	for _, name := range []string{"node_modules", "package.json"} {
		if err := os.Symlink(filepath.Join(tools.DoorsFolder(), name), filepath.Join(s.folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"client.py", "client.mjs"} {
		text, err := os.ReadFile("testdata/" + name)
		if err == nil {
			err = os.WriteFile(filepath.Join(s.folder, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// command is a program in the folder of the site; "node" is the one of the packages.
func (s *site) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(tools.DoorsFolder(), name), args...)
	cmd.Dir = s.folder
	cmd.Env = append(
		os.Environ(), "PATH="+tools.DoorsFolder()+string(filepath.ListSeparator)+os.Getenv("PATH"), "HOME="+s.folder,
		"NO_COLOR=1", "PYTHONDONTWRITEBYTECODE=1", "INTERLOCK_URL=http://"+s.server.HTTP,
	)
	return cmd
}

// run runs a program, and returns what it printed.
func (s *site) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), busy.Patience())
	defer cancel()
	out, err := s.command(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// module is a program of a package of npm.
func module(name, file string) string {
	return filepath.Join(tools.DoorsFolder(), "node_modules/@modelcontextprotocol", name, file)
}

// passed is in the summary of a scenario.
var passed = regexp.MustCompile(`(?m)^Passed: ([1-9]\d*)/(\d+), 0 failed, 0 warnings$`)

// scenarios are those of the suite that need no tools, resources and prompts of its own, by revision. docs/mcp.md has
// the others with the reasons.
var scenarios = map[string][]string{
	older: {
		"server-initialize", "server-session-lifecycle", "ping", "tools-list", "resources-list", "prompts-list",
		"dns-rebinding-protection", "server-sse-multiple-streams",
	},
	newest: {
		"tools-list", "resources-list", "prompts-list", "dns-rebinding-protection", "caching",
		"http-header-validation", "sep-2164-resource-not-found", "input-required-result-unsupported-methods",
		"server-sse-multiple-streams",
	},
}

// suite runs the conformance suite.
func (s *site) suite(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), busy.Patience())
	defer cancel()
	args = append([]string{module("conformance", "dist/index.js")}, args...)
	all, err := s.command(ctx, "node", args...).CombinedOutput()
	return string(all), err
}

func (s *site) scenario(t *testing.T, revision, name string) (out string, err error) {
	t.Helper()
	return s.suite(t, "server", "--url", s.url, "--scenario", name, "--spec-version", revision, "-o", t.TempDir())
}

func TestConformance(t *testing.T) {
	t.Parallel()
	s := open(t)
	for revision, list := range scenarios {
		for _, name := range list {
			t.Run(revision+"/"+name, func(t *testing.T) {
				out, err := s.scenario(t, revision, name)
				if m := passed.FindStringSubmatch(out); err != nil || m == nil || m[1] != m[2] {
					t.Errorf("the scenario has findings, or no checks (%v):\n%s", err, out)
				}
			})
		}
	}
}

// Of the scenario about requests without a session, the checks that fail are those that call a tool of the suite's own.
func TestStateless(t *testing.T) {
	t.Parallel()
	s := open(t)
	out, _ := s.scenario(t, newest, "server-stateless") // its exit code is that of the failed checks
	var failed []string
	for _, m := range regexp.MustCompile(`(?m)\[(sep-[\w-]+) *\] (?:\x1b\[\d+m)?FAILURE`).FindAllStringSubmatch(out, -1) {
		failed = append(failed, m[1])
	}
	slices.Sort(failed)
	want := []string{
		"sep-2575-http-server-no-independent-requests-on-stream", "sep-2575-missing-capability-http-400",
		"sep-2575-server-no-log-without-loglevel", "sep-2575-server-rejects-undeclared-capability",
	}
	if !slices.Equal(failed, want) || !strings.Contains(out, "4 failed, 0 warnings") {
		t.Errorf("the failed checks are %q, want %q:\n%s", failed, want, out)
	}
}

// docs/mcp.md names each scenario of the two revisions that is not carried out.
func TestScenariosAreNamed(t *testing.T) {
	t.Parallel()
	s := open(t)
	page, err := os.ReadFile("../../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Conformance\n")
	out, err := s.suite(t, "list", "--server")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	list := regexp.MustCompile(`(?m)^ +- ([\w-]+) \[(.*)\]$`).FindAllStringSubmatch(out, -1)
	if len(list) < 50 {
		t.Errorf("the suite lists %d scenarios:\n%s", len(list), out)
	}
	for _, m := range list {
		name := m[1]
		run := slices.Contains(scenarios[older], name) || slices.Contains(scenarios[newest], name)
		known := strings.Contains(m[2], older) || strings.Contains(m[2], newest)
		if named := strings.Contains(section, "`"+name+"`"); known && named == run {
			t.Errorf("%s: carried out is %t, and named on the page is %t", name, run, named)
		}
	}
}

// The Inspector checks the schemas of the tools, over HTTP and with a process.
func TestInspector(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, target := range map[string][]string{
		"http": {"--transport", "http", "--server-url", s.url}, "stdio": {launchtest.Binary(t), "mcp"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{module("inspector", "clients/launcher/build/index.js"), "--cli"}, target...)
			out := s.run(t, "node", append(args, "--method", "tools/list", "--strict")...)
			if strings.Count(out, `"inputSchema"`) != 7 {
				t.Errorf("it lists other tools:\n%s", out)
			}
		})
	}
}

// agent is a program that calls tools.
type agent struct {
	*testing.T
	in      io.WriteCloser
	answers *bufio.Scanner
	kill    func() // kills the program: it does nothing more
}

// reply is an answer to a call.
type reply struct {
	Error      bool
	Structured map[string]any
	Text       string
	Reports    []float64
	Revision   string
	Code       int // of an error of JSON-RPC
}

// agent starts a program with more arguments, which begin with the server's address or the command that serves it.
func (s *site) agent(program, file string, more ...string) *agent {
	s.Helper()
	if len(more) == 0 {
		more = []string{s.url}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), busy.Patience())
	cmd := s.command(ctx, program, append([]string{file}, more...)...)
	cmd.Stderr = s.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		s.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		s.Fatal(err)
	}
	killed := false
	s.Cleanup(func() {
		defer cancel()
		_ = in.Close()
		if err := cmd.Wait(); err != nil && !killed {
			s.Errorf("%s: %v", file, err)
		}
	})
	return &agent{s.T, in, bufio.NewScanner(out), func() {
		killed = true
		if err := cmd.Process.Kill(); err != nil {
			s.Error(err)
		}
	}}
}

// begin begins a call.
func (a *agent) begin(tool string, arguments map[string]any) {
	a.Helper()
	a.send(map[string]any{"tool": tool, "arguments": arguments})
}

func (a *agent) send(call map[string]any) {
	a.Helper()
	text, err := json.Marshal(call)
	if err == nil {
		_, err = a.in.Write(append(text, '\n'))
	}
	if err != nil {
		a.Fatal(err)
	}
}

// end waits for the answer, and checks that its text and its structured content are the same.
func (a *agent) end(outcome string) reply {
	a.Helper()
	r := a.reply()
	var text map[string]any
	if err := json.Unmarshal([]byte(r.Text), &text); err != nil || len(text) != len(r.Structured) {
		a.Errorf("the text is %s", r.Text)
	}
	if r.Error || r.Structured["outcome"] != outcome {
		a.Fatalf("got %s, want %s", r.Text, outcome)
	}
	return r
}

func (a *agent) reply() (r reply) {
	a.Helper()
	if !a.answers.Scan() {
		a.Fatalf("no answer: %v", a.answers.Err())
	}
	if err := json.Unmarshal(a.answers.Bytes(), &r); err != nil {
		a.Fatal(err)
	}
	return r
}

func (a *agent) call(outcome, tool string, arguments map[string]any) reply {
	a.Helper()
	a.begin(tool, arguments)
	return a.end(outcome)
}

// Two agents by the SDKs of two languages, which speak two revisions, take turns on one key.
func TestTwoAgents(t *testing.T) {
	t.Parallel()
	s := open(t)
	one, two := s.agent("venv/bin/python", "client.py"), s.agent("node", "client.mjs")
	held := one.call("granted", "acquire", map[string]any{"keys": []string{"account:1"}, "purpose": "late fee"})
	queued := two.call("queued", "acquire", map[string]any{"keys": []string{"account:1"}, "wait_s": 1})
	if held.Revision != newest || queued.Revision != older {
		t.Errorf("the agents speak %s and %s", held.Revision, queued.Revision)
	}
	if len(queued.Reports) == 0 {
		t.Error("no progress")
	}
	two.begin("wait", map[string]any{"ticket": queued.Structured["ticket"]})
	one.call("released", "release", map[string]any{"lease": held.Structured["lease"], "note": "fee written"})
	got := two.end("granted")
	if got.Structured["changed"] != true || got.Structured["notes"] == nil {
		t.Errorf("granted: %s", got.Text)
	}
	one.call("held", "acquire", map[string]any{"keys": []string{"account:1"}, "if_held": "fail"})
	two.call("released", "release", map[string]any{"lease": got.Structured["lease"]})
}

// A call that waits as long as it may ends before a client's time is up.
func TestLongCall(t *testing.T) {
	t.Parallel()
	s := open(t)
	one, two := s.agent("venv/bin/python", "client.py"), s.agent("node", "client.mjs")
	one.call("granted", "acquire", map[string]any{"keys": []string{"account:1"}})
	began := time.Now()
	last := -1.0
	for _, report := range two.call("queued", "acquire", map[string]any{"keys": []string{"account:1"}, "wait_s": 50}).Reports {
		if report <= last || report-last > 15_000 {
			t.Errorf("progress %v after %v", report, last)
		}
		last = report
	}
	if took := time.Since(began); took < 45*time.Second || last < 35_000 {
		t.Errorf("the call took %v, and the last progress is %v", took, last)
	}
}
