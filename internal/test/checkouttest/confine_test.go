package checkouttest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/busy"
)

// programs are all that commands find. None of them does anything outside of the paths that it is given.
var programs = strings.Fields(`
	awk base64 basename bash bzip2 cat chmod cmp comm cp csplit cut dd diff dirname ed egrep env expr false fgrep find
	flock fold git grep gunzip gzip head install join ln ls md5sum mkdir mktemp mv nice nl node nohup od paste patch perl
	python3 printf pwd readlink realpath rm rmdir sed seq setsid sh sha1sum shred shuf sort split stat stdbuf tac tail tar
	tee test timeout touch tr true truncate uniq unlink unxz unzip wc xargs xz zip zstd
`)

// room is the folder that all commands are confined to, with a process that runs them one by one.
type room struct {
	t      *testing.T
	dir    string
	sealed bool // by bubblewrap
	in     io.WriteCloser
	out    *bufio.Reader
	cmd    *exec.Cmd
}

// runner runs each command until all that it has started has ended: the pipe has its end then.
const runner = `while IFS= read -r -d '' dir && IFS= read -r -d '' edited && IFS= read -r -d '' command; do
	( cd "$dir" && EDITED=$edited exec bash -c "$command" ) </dev/null 2>&1 | cat >/dev/null
	echo done
done`

func newRoom(t *testing.T) *room {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &room{t: t, dir: dir}
	for _, sub := range []string{"bin", "home"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range programs {
		path := filepath.Join("/usr/bin", name)
		if _, err := os.Stat(path); err != nil {
			path, _ = exec.LookPath(name)
		}
		if path != "" {
			if err := os.Symlink(path, filepath.Join(dir, "bin", name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	argv := []string{
		"bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run", "--bind", dir, dir,
		"--unshare-all", "--die-with-parent", "--",
	}
	r.sealed = exec.Command(argv[0], append(slices.Clone(argv[1:]), "true")...).Run() == nil
	if !r.sealed {
		argv = nil
	}
	argv = append(argv, "bash", "-c", runner)
	r.cmd = exec.Command(argv[0], argv[1:]...)
	r.cmd.Dir, r.cmd.Env = dir, r.variables()
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.out = bufio.NewReader(out)
	t.Cleanup(func() {
		_ = r.in.Close() // the runner ends
		_ = r.cmd.Wait()
	})
	return r
}

// variables are the environment of commands.
func (r *room) variables() []string {
	return []string{
		"PATH=" + filepath.Join(r.dir, "bin"), "HOME=" + filepath.Join(r.dir, "home"), "LANG=C.UTF-8", "TMPDIR=" + r.dir,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES=" + r.dir, "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "PAGER=cat",
		"GIT_EDITOR=echo edited >", "GIT_AUTHOR_DATE=1790000000 +0000", "GIT_COMMITTER_DATE=1790000000 +0000",
	}
}

// run runs a command in a folder. edited is the value of a variable that its reader cannot know.
func (r *room) run(dir, command, edited string) {
	r.t.Helper()
	if why := loose(command); why != "" {
		r.t.Fatalf("not confined (%s): %s", why, command)
	}
	if _, err := io.WriteString(r.in, dir+"\x00"+edited+"\x00"+command+"\x00"); err != nil {
		r.t.Fatal(err)
	}
	late := time.AfterFunc(busy.Patience(), func() { _ = r.cmd.Process.Kill() })
	defer late.Stop()
	if line, err := r.out.ReadString('\n'); err != nil || line != "done\n" {
		r.t.Fatalf("%q, %v: it does not end, or ended the runner: %s", line, err, command)
	}
}

var (
	// outward are paths that lead out: from the root, the home, or upward; and values that may be empty before a path.
	outward = regexp.MustCompile("(?:^|[\\s\"'=:(<>|&;,{`$!@])/|" + `/\.\.(?:/|\s|$)|(?:^|[\s"'=(<>])~|` +
		`[)}\x60"']/|\$[A-Za-z0-9_@*#]+["']?/|(?:^|\s)-\w+/`)
	upward = regexp.MustCompile(`(?:^|[^.\w])\.\.(?:$|[^.])`)
	// harmful are words of commands that stop other processes, wait, or ask.
	harmful = regexp.MustCompile(`\b(kill|pkill|killall|sleep|yes|watch|ulimit|reboot|halt|mount|chroot|vi|vim|nvim|` +
		`nano|emacs|ex|less|more|top|select|read-only|fg|mkfifo|coproc|nc|suspend|gpg|daemon|` +
		`serve|instaweb|gui|gitk|` +
		`difftool|mergetool|send-email|http|https|ssh|clone|remote|config|gc|submodule|credential|filter-branch)\b|` +
		`tail -f|:\(\)|while true|until false|while :|/dev/(?:tcp|udp|sd|mem)`)
	devices = strings.NewReplacer("/dev/null", "dev_null", "/dev/stdin", "dev_stdin")
)

// loose returns why a command may do something outside of its folder; "" if it may not.
func loose(command string) string {
	text := devices.Replace(command)
	for _, rule := range []*regexp.Regexp{outward, upward, harmful} {
		if found := rule.FindString(text); found != "" {
			return found
		}
	}
	return ""
}

// The rule itself: what must never be run.
func TestConfined(t *testing.T) {
	for _, command := range []string{
		"rm -rf /", "rm -rf /etc", "cat < /etc/passwd", "echo x >/etc/x", "rm -rf ~", "rm -rf ~/x", "rm ..", "rm ../x",
		"cd a/..",
		"rm a/../../x", `rm "$X/y"`, `rm -rf "$X"/y`, "rm $X/*", "rm ${X}/y", "rm $(pwd)/x", "cp a --target-directory=/x",
		"kill -9 -1", "dd of=/dev/sda", ":(){ :|:& };:", "tar -C/ -x", "echo `pwd`/x", "find / -delete", "git clone x",
		"cat </dev/tcp/1.2.3.4/80", "bash -c 'rm /x'", "a=/x; rm $a",
	} {
		if loose(command) == "" {
			t.Errorf("it may be run: %s", command)
		}
	}
	for _, command := range []string{
		"echo x > src/a 2>/dev/null", "sed -i s/a/b/ a.go", "git checkout -- src", "rm ./a", "ls ...",
	} {
		if why := loose(command); why != "" {
			t.Errorf("%s may not be run: %s", command, why)
		}
	}
}
