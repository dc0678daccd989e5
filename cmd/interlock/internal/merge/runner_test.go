package merge

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/internal/scratch"
)

// A check finds history and tags in its folder, and whatever it does with git there, the repository stays as it is.
func TestCheckOut(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			ctx := t.Context()
			home := filepath.Join(t.TempDir(), `odd "home"`)
			shell := func(dir, script string) string {
				t.Helper()
				cmd := exec.CommandContext(ctx, "sh", "-ec", script)
				cmd.Dir = dir
				cmd.Env = []string{
					"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1",
					"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org",
				}
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", script, err, out)
				}
				return strings.TrimSpace(string(out))
			}
			if err := os.Mkdir(home, 0o700); err != nil {
				t.Fatal(err)
			}
			shell(home, `git init -q -b main --object-format=`+format+` w; cd w
				echo one > f; git add f; git commit -qm one; git tag -a v1.0 -m v1.0
				echo two > f; git commit -qam two; echo three > g; git add g; git commit -qm three
				git clone -q --bare . ../web.git; cd ..; git -C web.git config core.hooksPath /nowhere`)
			repo := git.Repository{Dir: filepath.Join(home, "web.git")}
			commit, err := repo.Output(ctx, "rev-parse", "main")
			if err != nil {
				t.Fatal(err)
			}
			dir, err := scratch.New("check")
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Remove()
			tree := dir.Path("tree")
			r := &runner{repo: repo, ref: "refs/heads/main"}
			if err := r.checkOut(ctx, commit, dir, tree); err != nil {
				t.Fatal(err)
			}
			for script, want := range map[string]string{
				"git describe | cut -d- -f1,2":                             "v1.0-2",
				"git status --porcelain":                                   "",
				"git diff --name-only HEAD~1":                              "g",
				"git diff --name-only origin/main~2...HEAD | tr '\\n' ' '": "f g",
				"git log --format=%s | tr '\\n' ' '":                       "three two one",
				"git rev-parse HEAD":                                       commit,
				"git config core.hooksPath || echo none":                   "none",
			} {
				if got := shell(tree, script); got != want {
					t.Errorf("%s: %q, want %q", script, got, want)
				}
			}
			before := listing(t, repo.Dir)
			shell(tree, `echo x > x; git add x; git commit -qm x; git tag -f v1.0; git tag -d v1.0
				git update-ref refs/heads/main HEAD; git branch -f other; git pack-refs --all
				git reflog expire --expire=now --all; git repack -adq; git gc -q --prune=now; git prune --expire=now
				git update-ref -d refs/remotes/origin/main; git config --local core.bare false; git push -q . HEAD:refs/heads/y
				git reset -q --hard HEAD~2; git clean -fdxq`)
			if after := listing(t, repo.Dir); !slices.Equal(before, after) {
				t.Errorf("the repository was %v, and is %v", before, after)
			}
			shell(repo.Dir, "git fsck --full --strict")
		})
	}
}

// listing has each file of a folder with its content.
func listing(t *testing.T, folder string) (list []string) {
	t.Helper()
	if err := filepath.WalkDir(folder, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		list = append(list, name+" "+string(text))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return list
}
