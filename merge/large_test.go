package merge

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/internal/lfs"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// A push brings the objects of Git LFS first, and moves nothing if one is nowhere.
func TestPushLarge(t *testing.T) {
	tools.Need(t, "git-lfs")
	dir := t.TempDir()
	run := func(r git.Repository, args ...string) string {
		t.Helper()
		out, err := r.Output(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	here := filepath.Join(dir, "here")
	forge := git.Repository{Dir: filepath.Join(dir, "forge.git")}
	run(git.Repository{Folder: dir}, "init", "-q", "--bare", "-b", "main", forge.Dir)
	run(git.Repository{Folder: dir}, "init", "-q", "-b", "main", here)
	r := git.Repository{Dir: filepath.Join(here, ".git"), WorkTree: here}
	commit := func(files map[string]string) string {
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(here, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		run(r, "add", "--all")
		run(r, "commit", "-q", "-m", "x")
		return run(r, "rev-parse", "HEAD")
	}
	pointer := func(oid string) string {
		return "version https://git-lfs.github.com/spec/v1\noid sha256:" + oid + "\nsize 4\n"
	}
	const have = "b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c" // of "foo\n"
	lack := strings.Repeat("0", 63) + "1"
	first := commit(map[string]string{".gitattributes": "*.bin filter=lfs\n", "guide.txt": pointer(lack)})
	object := lfs.In(lfs.Store(r.Dir, ""), have)
	if err := errors.Join(
		os.MkdirAll(filepath.Dir(object), 0o755), os.WriteFile(object, []byte("foo\n"), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	good := commit(map[string]string{"a.bin": pointer(have), "b.txt": pointer(lack)})
	bad := commit(map[string]string{"c.bin": pointer(lack[:62] + "22")})
	run(r, "push", "-q", forge.Dir, first+":refs/heads/main")
	target := &Target{Repository: r, Ref: "refs/heads/main", Remote: "file://" + forge.Dir}
	if err := target.transact(t.Context(), step{target.Ref, first, good}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(lfs.In(lfs.Store(forge.Dir, ""), have)); err != nil {
		t.Errorf("the object is not in the forge: %v", err)
	}
	err := target.transact(t.Context(), step{target.Ref, good, bad})
	refused, ok := errors.AsType[*Rejected](err)
	if !ok || !refused.Answered || !strings.Contains(refused.Words, "c.bin") {
		t.Errorf("an object that is nowhere: %v", err)
	}
	if head := run(forge, "rev-parse", "main"); head != good {
		t.Errorf("the forge is at %s, want %s", head, good)
	}
}
