//go:build unix

package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/interlockdev/interlock"
)

func TestPathsThatAreRefused(t *testing.T) {
	d := open(t, t.TempDir())
	for _, path := range []string{
		"", ".", "..", "/", "/etc/passwd", "../x", "a/../../x", "a/..", "a/./b", "./a", "a//b", "a/", "/a",
		"a\x00b", "a\nb", "a\x1b[2Jb", "a\u202eb", "a\u200bb", "a\u3164b", "a\u2800b", "\xff", `a\b`, `..\x`, `C:\x`,
		".git", ".git/config", "sub/.git/hooks/pre-commit", ".GIT/config", ".Git",
		".interlock/lock", ".interlock", ".Interlock/base/x", ".interlock.tmp", "a/.interlock.tmp", ".interloc\u212a/lock",
		strings.Repeat("a/", MaxPathBytes/2) + "b", "--upload-pack=x\x00", strings.Repeat("a", 300),
	} {
		_, err := d.Read(path)
		wantCode(t, err, interlock.CodeInvalidPath)
		_, err = d.Write(t.Context(), Change{Path: path, Base: None, Body: []byte("x")})
		wantCode(t, err, interlock.CodeInvalidPath)
	}
	for _, path := range []string{
		"a", "a b", "-rf", "--upload-pack=x", ".gitignore", ".github/x", "a..b", "...", "日本/é", "❤\ufe0f", "~", "$HOME",
		"a'b\"c`d",
	} {
		write(t, d, Change{Path: path, Base: None, Body: []byte(path)})
		if f := read(t, d, path); string(f.Body) != path {
			t.Errorf("%q has %q", path, f.Body)
		}
	}
}

// No link leads out of the root, or to a second name within it, for reading or for
// writing.
func TestSymbolicLinks(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	put(t, outside, "secret", "secret")
	put(t, outside, "dir/secret", "secret")
	put(t, root, "real/f", "inside")
	put(t, root, ".git/config", "config")
	for name, target := range map[string]string{
		"out-file":          filepath.Join(outside, "secret"),
		"out-dir":           outside,
		"up":                "..",
		"relative":          filepath.Join("..", filepath.Base(outside), "secret"),
		"dangling":          filepath.Join(outside, "new"),
		"loop":              "loop",
		"inside":            "real/f",
		"inside-dir":        "real",
		"innocent":          ".git",
		"real/out":          outside,
		"proc":              "/proc/self/root",
		"real/back-and-out": filepath.Join("..", "..", filepath.Base(outside)),
	} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	d := open(t, root)
	for _, path := range []string{
		"out-file", "out-dir/secret", "out-dir/new", "up/x", "up/" + filepath.Base(outside) + "/secret", "relative",
		"dangling", "loop", "loop/x",
		"inside", "inside-dir/f", "inside-dir/new", "innocent/config", "innocent/hooks/x", "real/out/secret", "real/out/new",
		"proc" + outside + "/secret", "real/back-and-out/secret", "real/f/below-a-file", "real",
	} {
		if f, err := d.Read(path); err == nil {
			t.Errorf("reading %s gives %q", path, f.Body)
		} else {
			wantCode(t, err, interlock.CodeInvalidPath)
		}
		for _, c := range []Change{
			{Path: path, Base: None, Body: []byte("written")},
			{Path: path, Base: versionOf([]byte("secret")), Body: []byte("written")},
			{Path: path, Base: versionOf([]byte("inside")), Delete: true},
		} {
			if _, err := d.Write(t.Context(), c); err == nil {
				t.Errorf("writing %s went through", path)
			} else {
				wantCode(t, err, interlock.CodeInvalidPath)
			}
		}
	}
	for name, want := range map[string]string{"secret": "secret", "dir/secret": "secret"} {
		if got := content(t, outside, name); got != want {
			t.Errorf("outside, %s is %q", name, got)
		}
	}
	if got := content(t, root, ".git/config"); got != "config" {
		t.Errorf("git's configuration is %q", got)
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 2 {
		t.Errorf("outside are %v, %v", entries, err)
	}
}

// Links where our own files should be are no way out either.
func TestPlantedLinks(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	put(t, outside, "victim", "victim")
	put(t, root, "f", "old")
	if err := os.Symlink(filepath.Join(outside, "victim"), filepath.Join(root, tempName)); err != nil {
		t.Fatal(err)
	}
	d := open(t, root)
	write(t, d, Change{Path: "f", Base: versionOf([]byte("old")), Body: []byte("new")})
	if content(t, outside, "victim") != "victim" || content(t, root, "f") != "new" {
		t.Errorf("the victim is %q, the file %q", content(t, outside, "victim"), content(t, root, "f"))
	}
	other := t.TempDir()
	put(t, other, "f", "old")
	if err := os.Symlink(outside, filepath.Join(other, metaName)); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, other).Write(
		t.Context(), Change{Path: "f", Base: versionOf([]byte("old")), Body: []byte("new")},
	); err == nil {
		t.Error("a directory for our own files that is a link is used")
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside are %v, %v", entries, err)
	}
}

func TestWhatIsNoFile(t *testing.T) {
	root := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(root, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "dir"), 0o777); err != nil {
		t.Fatal(err)
	}
	d := open(t, root)
	for _, path := range []string{"pipe", "dir"} {
		_, err := d.Read(path)
		wantCode(t, err, interlock.CodeInvalidPath)
		_, err = d.Write(t.Context(), Change{Path: path, Base: None, Body: []byte("x")})
		wantCode(t, err, interlock.CodeInvalidPath)
	}
}
