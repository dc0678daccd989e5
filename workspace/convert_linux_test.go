//go:build unix

package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/lfs"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// rot is a filter that is its own reverse, and rotProcess the same as a process that stays.
const (
	rot        = "tr a-zA-Z n-za-mN-ZA-M"
	rotProcess = `#!/usr/bin/python3
import sys
i, o = sys.stdin.buffer, sys.stdout.buffer
def read():
    n = int(i.read(4) or b"0", 16)
    return i.read(n - 4) if n > 4 else None
def write(text):
    o.write(b"%04x" % (len(text) + 4) + text)
def flush():
    o.write(b"0000"); o.flush()
def lines():
    list = []
    while (line := read()) is not None: list.append(line.strip())
    return list
lines(); write(b"git-filter-server\n"); write(b"version=2\n"); flush()
lines(); write(b"capability=clean\n"); write(b"capability=smudge\n"); flush()
swap = bytes.maketrans(b"abcdefghijklmnopqrstuvwxyz", b"nopqrstuvwxyzabcdefghijklm")
while True:
    head = lines()
    if not head: break
    body = b""
    while (part := read()) is not None: body += part
    write(b"status=success\n"); flush()
    body = body.translate(swap)
    while body: write(body[:60000]); body = body[60000:]
    flush(); flush()
`
)

// TestConversions compares what lands from a workspace with what plain git commits in a linked worktree of the same
// repository: by the agent's own commit, and by submit --all.
func TestConversions(t *testing.T) {
	if onceMore() {
		return
	}
	some := []string{"crlf input", "filter in info", "process and clean", "LFS", "key in git directory", "UTF-16"}
	tools.Need(t, "git-lfs")
	tools.Need(t, "bwrap")
	const global, local, info, tree = "global", "local", "info", "tree"
	mixed := "one\r\ntwo\nthree\r\n"
	for name, tt := range map[string]struct {
		config  []string // KEY VALUE lines of the source
		global  []string
		attr    string
		in      string // where the attributes are
		file    string
		content string
	}{
		"lf":                 {content: "one\ntwo\n"},
		"crlf":               {content: "one\r\ntwo\r\n"},
		"crlf input":         {config: []string{"core.autocrlf input"}, content: "one\r\ntwo\r\n"},
		"crlf input global":  {global: []string{"core.autocrlf input"}, content: "one\r\ntwo\r\n"},
		"crlf true":          {config: []string{"core.autocrlf true"}, content: "one\r\ntwo\r\n"},
		"mixed":              {config: []string{"core.autocrlf true", "core.safecrlf false"}, content: mixed},
		"mixed text":         {attr: "*.txt text", in: tree, content: mixed},
		"mixed text in info": {attr: "*.txt text", in: info, content: mixed},
		"mixed text of user": {attr: "*.txt text", in: global, content: mixed},
		"eol crlf":           {attr: "*.txt text eol=crlf", in: tree, content: mixed},
		"core.eol":           {config: []string{"core.eol crlf"}, attr: "*.txt text", in: tree, content: mixed},
		"binary in info":     {config: []string{"core.autocrlf input"}, attr: "*.txt -text", in: info, content: mixed},
		"info is stronger":   {attr: "*.txt text\n\x00*.txt -text", in: info, content: mixed},
		"UTF-16":             {attr: "*.txt text working-tree-encoding=UTF-16LE", in: tree, content: "h\x00i\x00\n\x00"},
		"UTF-16 of user":     {attr: "*.txt text working-tree-encoding=UTF-16LE", in: global, content: "h\x00i\x00\n\x00"},
		"ident":              {attr: "*.txt ident", in: tree, content: "$Id: abc $\n"},
		"filter":             {config: rotFilter, attr: rotAttribute, in: tree, content: "secret\n"},
		"filter in info":     {config: rotFilter, attr: "*.txt filter=rot", in: info, content: "secret\n"},
		"filter of user":     {global: rotFilter, attr: "*.txt filter=rot", in: global, content: "secret\n"},
		"required filter": {
			config: append(rotFilter[:2:2], "filter.rot.required true"),
			attr:   rotAttribute, in: tree, content: "secret\n",
		},
		"clean alone": {
			config: []string{"filter.strip.clean sed s/output.*//"},
			attr:   "*.txt filter=strip", in: tree, content: "cell\noutput 7\n",
		},
		"filter by path": {
			config: []string{"filter.name.clean sed s,%,%f,"},
			attr:   "*.txt filter=name", in: tree, content: "name\n",
		},
		"filter in the tree": {
			config: []string{"filter.rot.clean ./rot.sh", "filter.rot.smudge ./rot.sh"},
			attr:   rotAttribute, in: tree, content: "secret\n",
		},
		"filter and crlf": {
			config: append(rotFilter[:2:2], "core.autocrlf input"),
			attr:   "*.txt text filter=rot", in: tree, content: "secret\r\n",
		},
		"process": {
			config: []string{"filter.rot.process .rot/rot.py", "filter.rot.required true"},
			attr:   rotAttribute, in: tree, content: "secret\n",
		},
		"process and clean": {
			config: []string{"filter.rot.process .rot/rot.py", "filter.rot.clean false"},
			attr:   rotAttribute, in: tree, content: "secret\n",
		},
		"key in git directory": {config: keyFilter, attr: rotAttribute, in: tree, content: "secret\n"},
		"LFS":                  {global: lfsConfig, attr: lfsAttribute, in: tree, content: "large\n"},
		"LFS, local":           {config: lfsConfig, attr: lfsAttribute, in: tree, content: "large\n"},
		"LFS, empty":           {global: lfsConfig, attr: lfsAttribute, in: tree, content: ""},
		"LFS without process":  {global: lfsConfig[:3], attr: "*.txt filter=lfs", in: info, content: "large\n"},
		"odd name": {
			global: lfsConfig,
			attr:   "*.txt filter=lfs", in: tree, file: "dir/ä -- 'b'\".txt", content: "large\n",
		},
	} {
		if testing.Short() && !slices.Contains(some, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			file := tt.file
			if file == "" {
				file = "new.txt"
			}
			want, r := conversionRig(t, tt.config, tt.global, tt.attr, tt.in, file, tt.content)
			for how, script := range map[string]string{"own": "git add --all && git commit -qm own", "all": "true"} {
				w := r.create(Options{Name: how, Kind: Worktree})
				for path, content := range map[string]string{file: tt.content, "old.txt": tt.content + tt.content} {
					r.write(filepath.Join(w.Path(), path), content)
				}
				r.in(w, script)
				work, err := w.Submit(r.ctx, "work", true)
				if err != nil {
					t.Errorf("%s: %v", how, err)
					continue
				}
				for path, blob := range want {
					if got := r.git("rev-parse", work.Ref+":"+path); got != blob {
						t.Errorf("%s: %s is %q, want %q", how, path, r.git("cat-file", "blob", got), r.git("cat-file", "blob", blob))
					}
				}
				if out := r.in(w, "git status --short"); out != "" {
					t.Errorf("%s: git in the workspace shows %s", how, out)
				}
				if s := r.status(w); s.Unsubmitted() {
					t.Errorf("%s: %s", how, s)
				}
				if _, err := r.host.Delete(r.ctx, "web", how, false); err != nil {
					t.Errorf("%s: %v", how, err)
				}
			}
		})
	}
}

const (
	rotAttribute = "*.txt filter=rot"
	lfsAttribute = "*.txt filter=lfs diff=lfs merge=lfs -text"
)

var rotFilter = []string{"filter.rot.clean " + rot, "filter.rot.smudge " + rot}

// keyFilter finds its key in the git directory, as git-crypt does.
var keyFilter = []string{
	`filter.rot.clean tr a-z "$(cat $(git rev-parse --git-dir)/rot/key)"`,
	`filter.rot.smudge tr "$(cat $(git rev-parse --git-dir)/rot/key)" a-z`,
}

var lfsConfig = []string{
	"filter.lfs.clean git-lfs clean -- %f", "filter.lfs.smudge git-lfs smudge -- %f", "filter.lfs.required true",
	"filter.lfs.process git-lfs filter-process",
}

// conversionRig makes a source with conversions, and returns the blobs that plain git commits in a linked worktree.
func conversionRig(
	t *testing.T, config, global []string, attr, in, file, content string,
) (map[string]string, *rig) {
	r := newRig(t)
	set := func(scope string, lines []string) {
		for _, line := range lines {
			key, value, _ := strings.Cut(line, " ")
			r.git("config", scope, key, value)
		}
	}
	set("--global", global)
	set("--local", config)
	attributes := map[string]string{
		"tree": filepath.Join(r.source, ".gitattributes"), "info": filepath.Join(r.source, ".git/info/attributes"),
		"global": filepath.Join(r.source, "../home/attributes"),
	}
	if first, second, two := strings.Cut(attr, "\x00"); two {
		r.write(attributes["tree"], first)
		attr = second
	}
	if attr != "" {
		r.write(attributes[in], attr+"\n")
	}
	if in == "global" {
		r.git("config", "--global", "core.attributesFile", attributes["global"])
	}
	r.write(filepath.Join(r.source, ".git/rot/key"), "n-za-m")
	r.write(filepath.Join(r.source, "rot.sh"), "#!/bin/sh\nexec "+rot+"\n")
	r.write(filepath.Join(r.source, ".rot/rot.py"), rotProcess)
	if err := errors.Join(
		os.Chmod(filepath.Join(r.source, "rot.sh"), 0o755), os.Chmod(filepath.Join(r.source, ".rot/rot.py"), 0o755),
	); err != nil {
		t.Fatal(err)
	}
	r.write(filepath.Join(r.source, "old.txt"), content+"old\n")
	r.commit("old")
	linked := filepath.Join(t.TempDir(), "linked")
	r.git("worktree", "add", "-q", "-b", "linked", linked)
	r.write(filepath.Join(linked, file), content)
	r.write(filepath.Join(linked, "old.txt"), content+content)
	if strings.Contains(strings.Join(config, " "), "git rev-parse --git-dir") {
		r.git("-C", linked, "-c", "filter.rot.clean="+rot, "-c", "filter.rot.smudge="+rot, "add", "--all")
	} else {
		r.git("-C", linked, "add", "--all")
	}
	r.git("-C", linked, "commit", "-qm", "expected")
	want := map[string]string{}
	for _, path := range []string{file, "old.txt"} {
		want[path] = r.git("rev-parse", "linked:"+path)
	}
	return want, r
}

// onceMore reports whether the tests run again as another user, or on another file system, which converts nothing.
func onceMore() bool { return os.Getenv(asOther) != "" || os.Getenv(onXFS) != "" }

// TestFilterCannotRun refuses files that have a filter which cannot run, unless the user takes them as they are.
func TestFilterCannotRun(t *testing.T) {
	tools.Need(t, "bwrap")
	for name, tt := range map[string]struct{ config, in, want string }{
		"not defined":      {"", "tree", "not configured"},
		"of nothing":       {"filter.rot.required true", "tree", "not configured"},
		"no program":       {"filter.rot.clean /nonexistent/rot", "tree", ""},
		"in info":          {"", "info", "not configured"},
		"no program later": {"filter.rot.smudge /nonexistent/rot", "tree", "cannot run"},
		"out of sight":     {"filter.rot.smudge cat \"$HOME/key\" -", "tree", "cannot run"},
		"fails":            {"filter.rot.smudge false", "tree", "cannot run"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.write(filepath.Join(r.source, "old.txt"), "old\n")
			if tt.in == "tree" {
				r.write(filepath.Join(r.source, ".gitattributes"), "*.txt filter=rot\n")
			} else {
				r.write(filepath.Join(r.source, ".git/info/attributes"), "*.txt filter=rot\n")
			}
			r.commit("old")
			if key, value, ok := strings.Cut(tt.config, " "); ok {
				r.git("config", key, value)
			}
			_, err := r.tryCreate(Options{Name: "a", Kind: Worktree})
			if tt.want != "" && (!errors.Is(err, ErrFilter) || !strings.Contains(err.Error(), tt.want) ||
				!strings.Contains(err.Error(), ".txt")) {
				t.Errorf("new: %v", err)
			}
			if tt.want == "" {
				w, err := r.tryCreate(Options{Name: "b", Kind: Worktree})
				if err != nil {
					t.Fatal(err)
				}
				r.write(filepath.Join(w.Path(), "new.txt"), "new\n")
				if _, err := w.Submit(r.ctx, "work", true); !errors.Is(err, ErrFilter) {
					t.Errorf("submit: %v", err)
				}
				return
			}
			r.git("config", "--add", "interlock.allowUnfiltered", "rot")
			r.host.converts = nil
			w, err := r.tryCreate(Options{Name: "a", Kind: Worktree})
			if err != nil {
				t.Fatal(err)
			}
			r.write(filepath.Join(w.Path(), "new.txt"), "new\n")
			if _, err := w.Submit(r.ctx, "work", true); err != nil {
				t.Errorf("submit: %v", err)
			}
		})
	}
}

// TestCommittedWithoutFilter refuses what the agent's git committed without the filter that applies.
func TestCommittedWithoutFilter(t *testing.T) {
	if onceMore() {
		return
	}
	tools.Need(t, "bwrap")
	tools.Need(t, "git-lfs")
	salted := []string{
		`filter.rot.clean head -c 8 /dev/urandom | od -An -tx1 | tr -d ' \n'; ` + rot,
		"filter.rot.smudge tail -c +17 | " + rot,
	}
	// The object of the committed file is removed, and something else is put there.
	const object = "o=$(sha256sum new.txt | cut -c1-64); f=.git-dir/lfs/objects/$(echo $o | cut -c1-2)/" +
		"$(echo $o | cut -c3-4)/$o; rm -f $f"
	without := "-c filter.rot.clean=cat -c filter.rot.smudge=cat -c filter.lfs.process=cat -c filter.lfs.clean=cat " +
		"-c filter.lfs.process= -c filter.lfs.required=false"
	for name, tt := range map[string]struct {
		config   []string
		script   string
		accepted bool
	}{
		"plain": {rotFilter, "git WITHOUT add . && git commit -qm raw", false},
		"plain, then all": {
			rotFilter,
			"git WITHOUT add . && git commit -qm raw && git add --renormalize . && git commit -qm mended",
			false,
		},
		"mended": {
			rotFilter,
			"git WITHOUT add . && git commit -qm raw && git add --renormalize . && git commit -q --amend -m mended",
			true,
		},
		"unset": {rotFilter, "git config --file .git-dir/interlock.config --remove-section filter.rot && " +
			"git add . && git commit -qm raw", false},
		"attributes": {
			rotFilter,
			"echo '*.txt -filter' > .git-dir/info/attributes && git add . && git commit -qm raw",
			false,
		},
		"low level": {
			rotFilter, "git update-index --add --cacheinfo 100644,$(git hash-object -w --no-filters new.txt),new.txt && " +
				"git commit -qm raw", false,
		},
		"salted":      {salted, "git add . && git commit -qm salted", true},
		"not salted":  {salted, "git WITHOUT add . && git commit -qm raw", false},
		"large":       {lfsConfig, "git WITHOUT add . && git commit -qm raw", false},
		"large, kept": {lfsConfig, "git add . && git commit -qm pointer", true},
		"large, gone": {
			lfsConfig, "printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%064d\\nsize 9\\n' 1 > new.txt; " +
				"git add . && git commit -qm pointer", false,
		},
		"large, other":  {lfsConfig, "git add . && git commit -qm pointer && OBJECT && echo other > $f", true},
		"large, a link": {lfsConfig, "git add . && git commit -qm pointer && OBJECT && ln -s /etc/passwd $f", true},
		"large, a pipe": {lfsConfig, "git add . && git commit -qm pointer && OBJECT && mkfifo $f", true},
	} {
		t.Run(name, func(t *testing.T) {
			driver := "rot"
			if strings.Contains(name, "large") {
				driver = "lfs"
			}
			_, r := conversionRig(t, tt.config, nil, "*.txt filter="+driver, "tree", "x.txt", "secret\n")
			w := r.create(Options{Name: "a", Kind: Worktree})
			r.write(filepath.Join(w.Path(), "new.txt"), "password\n")
			script := strings.NewReplacer("WITHOUT", without, "OBJECT", object).Replace(tt.script)
			r.in(w, strings.ReplaceAll(script, ".git-dir", w.GitDir()))
			_, err := w.Submit(r.ctx, "work", true)
			if err == nil && driver == "lfs" {
				sum := sha256.Sum256([]byte("password\n"))
				oid := hex.EncodeToString(sum[:])
				content, err := os.ReadFile(lfs.In(filepath.Join(r.source, ".git/lfs/objects"), oid))
				r.want("object", string(content), "password\n")
				if err != nil {
					t.Error(err)
				}
				return
			}
			if strings.HasPrefix(name, "large, ") && name != "large, gone" {
				return // what is in its place makes git-lfs fail, or is made anew
			}
			if _, refused := errors.AsType[*Error](err); tt.accepted != (err == nil) || !tt.accepted && !refused {
				t.Errorf("submit: %v", err)
			}
			if refs := r.git("for-each-ref", "refs/interlock/sub"); tt.accepted == (refs == "") {
				t.Errorf("refs %q", refs)
			}
		})
	}
}

// TestLargeFiles finds the files of Git LFS in a new workspace where the source has their content.
func TestLargeFiles(t *testing.T) {
	tools.Need(t, "bwrap")
	tools.Need(t, "git-lfs")
	each(t, func(r *rig, o Options) {
		for _, line := range lfsConfig {
			key, value, _ := strings.Cut(line, " ")
			r.git("config", key, value)
		}
		r.write(filepath.Join(r.source, ".gitattributes"), "*.bin filter=lfs diff=lfs merge=lfs -text\n")
		r.write(filepath.Join(r.source, "src/have.bin"), "content\n")
		r.write(filepath.Join(r.source, "src/lack.bin"), "elsewhere\n")
		r.commit("large")
		lack := r.git("lfs", "ls-files", "-l", "-I", "src/lack.bin")[:64]
		if err := os.Remove(lfs.In(filepath.Join(r.source, ".git/lfs/objects"), lack)); err != nil {
			t.Fatal(err)
		}
		w := r.create(o)
		r.want("content", r.in(w, "cat src/have.bin; head -c 7 src/lack.bin; git status --short"), "content\nversion")
		if s := r.status(w); s.Unsubmitted() {
			t.Errorf("status %s", s)
		}
		r.in(w, "git mv src/lack.bin src/moved.bin 2>/dev/null || mv src/lack.bin src/moved.bin; "+
			"cp src/have.bin src/copy.bin; echo more > src/more.bin; touch src/*.bin")
		work, err := w.Submit(r.ctx, "work", true)
		if err != nil {
			t.Fatal(err)
		}
		oid := strings.Fields(r.git("cat-file", "blob", work.Ref+":src/more.bin"))[3]
		content, err := os.ReadFile(lfs.In(filepath.Join(r.source, ".git/lfs/objects"), strings.TrimPrefix(oid, "sha256:")))
		if err != nil || string(content) != "more\n" {
			t.Errorf("the object of more.bin: %q, %v", content, err)
		}
		if _, err := r.host.Delete(r.ctx, "web", w.Name, false); err != nil {
			t.Error(err)
		}
	})
}
