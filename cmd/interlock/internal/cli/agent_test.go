package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestGitBranch(t *testing.T) {
	write := func(file, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root := t.TempDir()
	repo, work := filepath.Join(root, "web"), filepath.Join(root, "hotfix")
	write(filepath.Join(repo, ".git", "HEAD"), "ref: refs/heads/feature/login\n")
	write(filepath.Join(repo, "src", "main.go"), "")
	write(filepath.Join(repo, ".git", "worktrees", "hotfix", "HEAD"), "0123456789abcdef\n")
	write(filepath.Join(work, ".git"), "gitdir: ../web/.git/worktrees/hotfix\n")
	for dir, want := range map[string]string{
		repo: "web/feature/login", filepath.Join(repo, "src"): "web/feature/login", work: "hotfix/detached", root: "",
	} {
		t.Chdir(dir)
		if got := gitBranch(); got != want {
			t.Errorf("%s is %q, want %q", dir, got, want)
		}
	}
}
