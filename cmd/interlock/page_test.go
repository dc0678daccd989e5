//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/release/npm"
	"github.com/interlockdev/interlock/internal/release/wheel"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// TestPages pastes the commands of README and of every page under docs into a shell, in
// order, each page against a server and in a directory of its own.
//
//   - A block of kind sh is pasted as it is, and no command in it may fail. A block of kind
//     text right behind it is what it prints, but for numbers.
//   - A block of kind console is read like a script of testdata.
//   - A block of kind http has exchanges, which have a server of their own.
//
// Test plumbing stands in HTML comments: "<!-- run: COMMANDS -->" runs commands at that place,
// and "<!-- not run: REASON -->" right before a block leaves it out. A server's address is the
// default one, and 127.0.0.1:6379 that of its door for clients of Redis, with --resp-strip lock:.
func TestPages(t *testing.T) {
	for _, file := range pageFiles(t) {
		page := readPage(t, file)
		transcript := page.of("sh", "console", hiddenCommands)
		if len(transcript) > 0 && file != accountPage {
			t.Run(filepath.Base(file)+"/shell", func(t *testing.T) {
				t.Parallel()
				r := newRig(t, "--resp", "127.0.0.1:0", "--resp-strip", "lock:")
				if prepare := preparations[filepath.Base(file)]; prepare != nil {
					prepare(r)
				}
				page.paste(r, transcript)
			})
		}
		if exchanges := page.of("http"); len(exchanges) > 0 {
			t.Run(filepath.Base(file)+"/http", func(t *testing.T) {
				t.Parallel()
				runExchanges(t, file, onTheirLines(exchanges))
			})
		}
	}
}

// preparations add what the commands of a page need, in environment variables.
var preparations = map[string]func(*rig){
	"frameworks.md":          buildPython,
	"forge.md":               func(r *rig) { tools.Need(r.t, "bwrap") },
	"python.md":              buildPython,
	"recipes.md":             freePorts,
	"sandbox.md":             func(r *rig) { tools.Need(r.t, "bwrap") },
	"workspace-databases.md": func(r *rig) { tools.Need(r.t, "sqlite3") },
	"typescript.md":          packTypeScript,
	"workspaces.md":          unmountAtEnd,
}

// freePorts has the addresses of a server of the page in FREE_HTTP and FREE_GRPC.
func freePorts(r *rig) {
	ports := busy.Ports(r.t, 2)
	r.env = append(r.env, "FREE_HTTP="+ports[0], "FREE_GRPC="+ports[1])
}

// unmountAtEnd unmounts what a page that failed half-way has left mounted, before its folder is removed.
func unmountAtEnd(r *rig) {
	below := filepath.Dir(r.dir) + string(filepath.Separator)
	r.t.Cleanup(func() {
		mounts, _ := os.ReadFile("/proc/self/mountinfo")
		for line := range strings.Lines(string(mounts)) {
			if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], below) {
				_ = exec.Command("umount", fields[4]).Run()
			}
		}
	})
}

// buildPython builds the packages of the client for Python into the folder PACKAGES.
func buildPython(r *rig) {
	tools.Need(r.t, "python3", tools.PythonVenv)
	folder := r.t.TempDir()
	if err := wheel.Build("../..", folder, "1.2.3", time.Unix(0, 0)); err != nil {
		r.t.Fatal(err)
	}
	r.env = append(r.env, "PACKAGES="+folder, "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INDEX=1")
}

// packTypeScript builds the package of the client for TypeScript into the folder PACKAGES.
func packTypeScript(r *rig) {
	tools.Need(r.t, "node", tools.TypeScriptCompiler)
	body, err := npm.Pack("../..", "1.2.3", time.Unix(0, 0))
	if err != nil {
		r.t.Fatal(err)
	}
	folder := r.t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, npm.Name("1.2.3")), body, 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.env = append(
		r.env, "PACKAGES="+folder, "npm_config_cache="+folder, "npm_config_audit=false", "npm_config_fund=false",
	)
}

// maxNotRun is how many blocks of commands may be left out, in all pages together.
const maxNotRun = 20

// TestPagesRunWhatTheyShow finds commands that no test runs.
func TestPagesRunWhatTheyShow(t *testing.T) {
	// A line that begins like this is a command, whatever its block is called.
	command := regexp.MustCompile(
		`(?m)^(\$ |bin/interlock |interlock [a-z-]+ |make [a-z]|curl |git |go (run|test|build) )`,
	)
	notRun := 0
	for _, file := range pageFiles(t) {
		for _, b := range readPage(t, file).blocks {
			runnable := slices.Contains([]string{"sh", "console", "http", hiddenCommands}, b.kind)
			if b.notRun != "" {
				notRun++
				if !runnable && !strings.HasPrefix(b.kind, "sh ") {
					t.Errorf("%s:%d: a block of kind %q is never run: say nothing about it", file, b.line, b.kind)
				}
			} else if !runnable && command.MatchString(b.text) {
				t.Errorf("%s:%d: a block of kind %q has commands, which must be of kind sh or console", file, b.line, b.kind)
			}
		}
	}
	if notRun > maxNotRun {
		t.Errorf("%d blocks are not run, more than %d", notRun, maxNotRun)
	}
}

// TestPagesLinkToHeadings follows the links of all pages to headings. That the pages
// themselves exist is checked by internal/layout.
func TestPagesLinkToHeadings(t *testing.T) {
	more, err := filepath.Glob("../../docs/reference/*.md")
	if err != nil {
		t.Fatal(err)
	}
	files := append(pageFiles(t), append(more, "../../CHANGELOG.md", "../../CONTRIBUTING.md")...)
	link := regexp.MustCompile(`\]\(([^()\s#:]*)#([^()\s]+)\)`)
	anchors := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			target := file
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(file), m[1])
			}
			if _, known := anchors[target]; !known {
				anchors[target] = headings(t, target)
			}
			if !slices.Contains(anchors[target], m[2]) {
				t.Errorf("%s links to %s#%s, and there is no such heading", file, target, m[2])
			}
		}
	}
}

// headings returns the anchors of a page's headings, as GitHub makes them.
func headings(t *testing.T, file string) (anchors []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
		anchors = append(anchors, strings.ReplaceAll(other.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return anchors
}

// pageFiles returns the pages with commands to run: all but the generated reference.
func pageFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no pages", err)
	}
	return append([]string{"../../README.md"}, files...)
}

// hiddenCommands is the kind of the commands in a comment.
const hiddenCommands = "<!-- run: -->"

// page is a page with its blocks.
type page struct {
	file   string
	blocks []pageBlock
}

// pageBlock is a block of a page, or a comment with commands.
type pageBlock struct {
	line   int // of its first line of text
	kind   string
	text   string
	notRun string // why it is not run, or ""
	prints string // the block of kind text behind it, if it follows at once
}

var notRunComment = regexp.MustCompile(`^<!-- not run: (.+) -->$`)

func readPage(t *testing.T, file string) page {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := page{file: file}
	lines := strings.Split(string(text), "\n")
	reason, behind := "", -1 // behind is the block of kind sh that only empty lines follow so far
	for i := 0; i < len(lines); i++ {
		until := func(end string) (string, int) {
			first := i + 1
			for i++; i < len(lines) && lines[i] != end; i++ {
			}
			return strings.Join(lines[first:min(i, len(lines))], "\n") + "\n", first + 1
		}
		kind, isBlock := strings.CutPrefix(lines[i], "```")
		switch m := notRunComment.FindStringSubmatch(lines[i]); {
		case isBlock:
			body, line := until("```")
			if kind == "text" && behind >= 0 {
				p.blocks[behind].prints = body
			}
			behind = -1
			if kind == "sh" {
				behind = len(p.blocks)
			}
			p.blocks = append(p.blocks, pageBlock{line: line, kind: kind, text: body, notRun: reason})
			reason = ""
		case m != nil:
			reason = m[1]
		case lines[i] == "<!-- run:":
			body, line := until("-->")
			p.blocks = append(p.blocks, pageBlock{line: line, kind: hiddenCommands, text: body})
		case lines[i] != "":
			reason, behind = "", -1
		}
	}
	return p
}

// of returns the blocks of some kinds that are to be run.
func (p page) of(kinds ...string) (found []pageBlock) {
	for _, b := range p.blocks {
		if b.notRun == "" && slices.Contains(kinds, b.kind) {
			found = append(found, b)
		}
	}
	return found
}

// onTheirLines returns the text of blocks, on the lines where they are in their page.
func onTheirLines(blocks []pageBlock) string {
	var b strings.Builder
	line := 1
	for _, block := range blocks {
		b.WriteString(strings.Repeat("\n", block.line-line))
		b.WriteString(block.text)
		line = block.line + strings.Count(block.text, "\n")
	}
	return b.String()
}

var digits = regexp.MustCompile(`\d+`)

// paste runs blocks in order.
func (p page) paste(r *rig, blocks []pageBlock) {
	r.t.Helper()
	s := newShell(r.t, append(r.env, "DATA="+r.dir))
	for _, b := range blocks {
		if b.kind == "console" {
			s.play(p.file, strings.Repeat("\n", b.line-1)+b.text)
		} else {
			text := strings.NewReplacer(
				"127.0.0.1:7420", r.server.HTTP, "localhost:7420", r.server.HTTP, "127.0.0.1:6379", r.server.RESP,
			).Replace(b.text)
			out, code := s.run("set -ea\n" + text + "set +ea\n")
			got, want := digits.ReplaceAllString(out, "0"), digits.ReplaceAllString(b.prints, "0")
			if code != 0 {
				r.t.Errorf("%s:%d: a command of\n%s\nfailed with exit code %d; they wrote:\n%s", p.file, b.line, b.text, code, out)
			} else if b.prints != "" && !matchLines(dropEmpty(strings.Split(want, "\n")), dropEmpty(strings.Split(got, "\n"))) {
				r.t.Errorf("%s:%d:\n%s\nwrote:\n%s\nwant:\n%s", p.file, b.line, b.text, out, b.prints)
			}
		}
		if r.t.Failed() {
			return // what follows builds on it
		}
	}
}

// shell runs commands as one shell would: each has the directory and the exported
// variables that the one before has left.
type shell struct {
	t   *testing.T
	dir string
	env []string
}

func newShell(t *testing.T, env []string) *shell {
	t.Helper()
	tools.Need(t, "bash", "curl")
	s := &shell{t: t, dir: t.TempDir()}
	s.env = append(
		slices.Clone(env), "STATE="+filepath.Join(s.dir, ".state"),
		"PATH="+filepath.Dir(launchtest.Binary(t))+":"+os.Getenv("PATH"),
	)
	if err := os.WriteFile(filepath.Join(s.dir, ".state"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs commands to the end of the shell. Those in the background go on until the end
// of the test; what they write later is lost.
func (s *shell) run(commands string) (out string, code int) {
	s.t.Helper()
	file, err := os.CreateTemp(s.dir, ".out")
	if err != nil {
		s.t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.Command("bash", "-c", `. "$STATE"; cd "$PWD"; `+commands+"\n"+`code=$?; export -p > "$STATE"; exit $code`)
	cmd.Dir, cmd.Env = s.dir, s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout, cmd.Stderr = file, file
	timeout := time.AfterFunc(busy.Patience(), func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	err = cmd.Run()
	timeout.Stop()
	if cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	if syscall.Kill(-cmd.Process.Pid, 0) == nil { // some go on, also if a command has failed
		s.t.Cleanup(func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	}
	text, err := os.ReadFile(file.Name())
	if err != nil {
		s.t.Fatal(err)
	}
	return string(bytes.TrimRight(text, "\n")), cmd.ProcessState.ExitCode()
}

func TestReadPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	text := "Paste:\n\n```sh\na\n```\n\n```text\nb\n```\n\n<!-- not run: no\ndisk -->\n<!-- not run: no disk -->\n```sh\nc\n```\n<!-- run:\nd\n-->\n```sh\ne\n```\nmore\n```text\nf\n```\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []pageBlock{
		{line: 4, kind: "sh", text: "a\n", prints: "b\n"},
		{line: 8, kind: "text", text: "b\n"},
		{line: 15, kind: "sh", text: "c\n", notRun: "no disk"},
		{line: 18, kind: hiddenCommands, text: "d\n"},
		{line: 21, kind: "sh", text: "e\n"},
		{line: 25, kind: "text", text: "f\n"},
	}
	if got := readPage(t, file).blocks; !slices.Equal(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}
