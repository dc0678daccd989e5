package boundarytest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// agent works in a workspace, if it has one.
type agent struct {
	*world
	name string
	tree string // the folder of its files; "" without a workspace
	made int    // workspaces
	odd  bool   // it did what may be refused
	kept map[string]bool
}

// act does one thing at random.
func (a *agent) act() {
	if a.tree == "" {
		a.create()
		return
	}
	acts := []struct {
		weight int
		act    func()
	}{
		{10, a.edit},
		{4, a.add},
		{2, a.remove},
		{2, a.rename},
		{8, a.commit},
		{3, a.amend},
		{3, a.stash},
		{2, a.reset},
		{2, a.branch},
		{1, a.detach},
		{1, a.hide},
		{1, a.keepByTool},
		{1, a.spoil},
		{1, a.configure},
		{1, a.forge},
		{5, func() { a.submit(false) }},
		{7, func() { a.submit(true) }},
		{2, func() { a.submit(true, "--priority", "100") }},
		{3, a.stack},
		{2, a.withdraw},
		{3, a.sync},
		{2, func() { a.delete(false) }},
		{1, func() { a.delete(true) }},
	}
	sum := 0
	for _, x := range acts {
		sum += x.weight
	}
	n := a.rng.IntN(sum)
	for _, x := range acts {
		if n -= x.weight; n < 0 {
			x.act()
			return
		}
	}
}

func (a *agent) workspace() string { return fmt.Sprintf("%s-%d", a.name, a.made) }

func (a *agent) create() {
	a.made++
	kind := []string{"worktree", "auto"}[a.rng.IntN(2)]
	got := a.interlock(
		a.name, a.checkout, "workspace", "new", a.workspace(), "--upstream", a.upstream, "--target", "main",
		"--repo-name", a.repo, "--kind", kind, "--purpose", "work of "+a.name,
	)
	if got.code != 0 {
		a.Fatalf("workspace new: %+v", got)
	}
	a.tree, a.odd, a.kept = got.out, false, map[string]bool{}
}

// git runs git in the workspace. What the agent asks for may not be possible.
func (a *agent) git(args ...string) (string, bool) {
	out, err := a.try(a.tree, append([]string{"git"}, args...)...)
	a.tell("%s: git %s: %v", a.name, strings.Join(args, " "), cmp.Or(fmt.Sprint(err), "ok"))
	return out, err == nil
}

// files lists the files of the tree, the ignored ones excepted.
func (a *agent) files() []string { return a.filesBelow(a.tree) }

// any returns one of the files.
func (a *agent) any() (path string, ok bool) {
	list := a.files()
	if len(list) == 0 {
		return "", false
	}
	return list[a.rng.IntN(len(list))], true
}

// present are the tokens of the files as they are.
func (a *agent) present() map[string]bool { return a.tokensBelow(a.tree) }

// keep notes that git has the files as they are.
func (a *agent) keep(tokens map[string]bool) { maps.Copy(a.kept, tokens) }

// edit changes one line of a file.
func (a *agent) edit() {
	path, ok := a.any()
	if !ok {
		return
	}
	a.change(path)
	a.tell("%s: edits %s", a.name, path)
}

func (a *agent) change(path string) {
	a.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	line := "word " + a.token()
	if a.rng.IntN(10) == 0 {
		line += " bad"
	}
	// The line itself stays, as no token may be overwritten before git has it.
	i := a.rng.IntN(len(lines))
	lines[i] = line + "\n" + lines[i]
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o644); err != nil {
		a.Fatal(err)
	}
}

func (a *agent) add() {
	path := filepath.Join(a.tree, []string{"", "src", "new"}[a.rng.IntN(3)], fmt.Sprintf("f%d.txt", a.rng.IntN(6)))
	if _, err := os.Lstat(path); err == nil {
		return
	}
	a.write(path, "new "+a.token()+"\n")
	a.tell("%s: adds %s", a.name, path)
}

func (a *agent) remove() {
	if path, ok := a.any(); ok {
		_ = os.Remove(path)
		a.tell("%s: removes %s", a.name, path)
	}
}

func (a *agent) rename() {
	if path, ok := a.any(); ok {
		_ = os.Rename(path, filepath.Join(filepath.Dir(path), fmt.Sprintf("r%d.txt", a.rng.IntN(6))))
		a.tell("%s: renames %s", a.name, path)
	}
}

// commit commits all files, or only those that git knows.
func (a *agent) commit() {
	if a.rng.IntN(2) == 0 {
		a.git("add", "--all")
	}
	if _, ok := a.git("commit", "--quiet", "--all", "-m", "by "+a.name); ok {
		a.keepCommit()
	}
}

// keepCommit notes the tokens of HEAD.
func (a *agent) keepCommit() {
	out, _ := a.git("grep", "-h", "-e", "token-", "HEAD")
	for _, token := range anyToken.FindAllString(out, -1) {
		a.kept[token] = true
	}
}

func (a *agent) amend() {
	if out, ok := a.git("rev-list", "--count", "origin/main..HEAD"); !ok || out == "0" {
		return
	}
	if _, ok := a.git("commit", "--quiet", "--all", "--amend", "-m", "amended by "+a.name); ok {
		a.keepCommit()
	}
}

func (a *agent) stash() {
	before := a.present()
	if a.rng.IntN(3) == 0 {
		a.git("stash", "pop", "--quiet")
		return
	}
	if out, ok := a.git("stash", "push", "--quiet", "--include-untracked"); ok && out == "" {
		a.keep(before)
	}
}

// reset drops the last commit, and the reflog still has it.
func (a *agent) reset() {
	if out, ok := a.git("rev-list", "--count", "origin/main..HEAD"); ok && out != "0" {
		a.git("reset", "--quiet", "--hard", "HEAD^")
	}
}

func (a *agent) branch() {
	a.git("switch", "--quiet", "--create", fmt.Sprintf("side-%d", a.tokens))
}

func (a *agent) detach() {
	a.git("switch", "--quiet", "--detach")
}

// hide hides a changed file from git's status.
func (a *agent) hide() {
	out, ok := a.git("ls-files", "--cached")
	list := strings.Fields(out)
	if !ok || len(list) == 0 {
		return
	}
	path := list[a.rng.IntN(len(list))]
	if _, err := os.Stat(filepath.Join(a.tree, path)); err != nil {
		return
	}
	a.odd = true
	a.git("update-index", []string{"--skip-worktree", "--assume-unchanged"}[a.rng.IntN(2)], path)
	a.change(filepath.Join(a.tree, path))
}

// keepByTool has a commit that only a ref of a tool reaches.
func (a *agent) keepByTool() {
	token := a.token()
	cmd := exec.Command("git", "hash-object", "-w", "--stdin")
	cmd.Dir, cmd.Env, cmd.Stdin = a.tree, a.env, strings.NewReader(token+"\n")
	blob, err := cmd.Output()
	if err != nil {
		return
	}
	tree := a.feed(a.tree, fmt.Sprintf("100644 blob %s\ttool.txt\n", strings.TrimSpace(string(blob))), "git", "mktree")
	commit, ok := a.git("commit-tree", "-m", "of a tool", strings.TrimSpace(tree))
	if !ok {
		return
	}
	ref := fmt.Sprintf("refs/%s/keep/%d", []string{"jj", "tool"}[a.rng.IntN(2)], a.tokens)
	if _, ok := a.git("update-ref", ref, commit); ok {
		a.kept[token] = true
	}
}

// feed runs a command with an input, and must succeed.
func (w *world) feed(folder, input string, argv ...string) string {
	w.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = folder, w.env, strings.NewReader(input)
	out, err := cmd.Output()
	if err != nil {
		w.Fatalf("%q in %s: %v", argv, folder, err)
	}
	return string(out)
}

// spoil breaks the git directory, so that git itself fails in it.
func (a *agent) spoil() {
	dir, ok := a.git("rev-parse", "--absolute-git-dir")
	if !ok {
		return
	}
	a.odd = true
	precious := filepath.Join(a.outside, "precious")
	var err error
	switch n := a.rng.IntN(5); n {
	case 0:
		err = os.WriteFile(filepath.Join(dir, "index"), []byte("broken"), 0o644)
	case 1:
		_ = os.Remove(filepath.Join(dir, "logs", "HEAD"))
		err = os.Symlink(precious, filepath.Join(dir, "logs", "HEAD"))
	case 2:
		_ = os.Remove(filepath.Join(dir, "COMMIT_EDITMSG"))
		err = os.Symlink(precious, filepath.Join(dir, "COMMIT_EDITMSG"))
	case 3:
		text := "[core]\n\tfsmonitor = \"echo pwned >> " + precious + "\"\n"
		err = os.WriteFile(filepath.Join(dir, "config.worktree"), []byte(text), 0o644)
	case 4:
		err = os.WriteFile(filepath.Join(dir, "refs", "heads", "broken"), []byte("no id\n"), 0o644)
	}
	a.tell("%s: breaks its git directory: %v", a.name, err)
}

// configure sets what usual tools set.
func (a *agent) configure() {
	settings := [][]string{
		{"core.hooksPath", ".husky/_"},
		{"submodule.x.url", "../x"},
		{"remote.origin.gh-resolved", "base"},
		{"lfs.https://example.org/x.access", "basic"},
		{"gpg.format", "ssh"},
		{"git-town.main-branch", "main"},
	}
	a.git(append([]string{"config"}, settings[a.rng.IntN(len(settings))]...)...)
}

// forge submits a commit that git refuses to read.
func (a *agent) forge() {
	tree, ok := a.git("rev-parse", "HEAD^{tree}")
	head, ok2 := a.git("rev-parse", "HEAD")
	if !ok || !ok2 {
		return
	}
	text := "tree " + tree + "\nparent " + head +
		"\nauthor A 1700000000 +0000\ncommitter C <c@example.org> 1700000000 +0000\n\nforged\n"
	cmd := exec.Command("git", "hash-object", "-w", "-t", "commit", "--literally", "--stdin")
	cmd.Dir, cmd.Env, cmd.Stdin = a.tree, a.env, strings.NewReader(text)
	commit, err := cmd.Output()
	if err != nil {
		return
	}
	a.odd = true
	a.git("reset", "--quiet", "--soft", strings.TrimSpace(string(commit)))
}

// stack merges a submission of another agent, and hands its own work in as one that builds on that.
func (a *agent) stack() {
	for i := range a.order {
		id := a.order[len(a.order)-1-i]
		base := a.sent[id]
		if base.agent == a.name || base.odd || a.rng.IntN(2) == 0 {
			continue
		}
		if a.git("add", "--all"); a.odd {
			return
		}
		if _, ok := a.git("commit", "--quiet", "--allow-empty", "-m", "before a stack of "+a.name); !ok {
			return
		}
		if _, ok := a.git("fetch", "--quiet", a.upstream, base.head); !ok {
			return
		}
		if _, ok := a.git("merge", "--quiet", "--no-edit", "FETCH_HEAD"); !ok {
			a.git("merge", "--abort")
			return
		}
		a.keepCommit()
		a.change(filepath.Join(a.tree, ".stack-"+a.name))
		a.submit(true, "--on", id)
		return
	}
}

// submit hands the work in.
func (a *agent) submit(all bool, more ...string) {
	args := append([]string{"workspace", "submit", a.workspace(), "--repo-name", a.repo}, more...)
	before := a.present()
	if all {
		args = append(args, "--all", "-m", "by "+a.name)
	}
	got := a.interlock(a.name, a.checkout, args...)
	switch {
	case got.code == 0 && strings.HasPrefix(got.out, "q_"):
		head := a.head()
		if all && !a.odd {
			a.keep(before)
		}
		if a.sent[got.out] == nil {
			a.sent[got.out] = &submission{
				agent: a.name, head: head, workspace: a.workspace(), odd: a.odd, disturbed: a.frozen != "" || a.flaky,
				prior: slices.Contains(more, "--priority"), on: flagOf(more, "--on"),
			}
			a.order = append(a.order, got.out)
		}
	case a.odd, got.code == 65, !all && strings.Contains(got.errors, "commit them"):
	case strings.Contains(got.errors, "nothing to submit"), strings.Contains(got.errors, "--again"):
	default:
		a.Errorf("%s did nothing odd, and submit answers %+v", a.name, got)
	}
}

// flagOf is the value of a flag.
func flagOf(args []string, name string) string {
	if i := slices.Index(args, name); i >= 0 {
		return args[i+1]
	}
	return ""
}

// head is the commit that was submitted last.
func (a *agent) head() string {
	a.Helper()
	refs := a.world.git(
		a.upstream, "for-each-ref", "--sort=-creatordate", "--format=%(objectname) %(refname)", "refs/interlock/sub/",
	)
	head, _ := a.git("rev-parse", "HEAD")
	for line := range strings.Lines(refs) {
		if id, _, _ := strings.Cut(line, " "); id == head {
			return head
		}
	}
	a.Errorf("%s submitted %s, and the repository has %s", a.name, head, refs)
	return head
}

// withdraw takes one of the agent's submissions back.
func (a *agent) withdraw() {
	for id, s := range a.sent {
		if s.agent == a.name {
			a.interlock(a.name, a.checkout, "merge", "withdraw", a.repo+"/main", id)
			return
		}
	}
}

// sync takes the target in. Conflicts are resolved by keeping all lines of both sides.
func (a *agent) sync() {
	got := a.interlock(a.name, a.checkout, "workspace", "sync", a.workspace(), "--repo-name", a.repo)
	if got.code != 65 {
		return
	}
	for _, path := range a.files() {
		text, err := os.ReadFile(path)
		if err != nil {
			a.Fatal(err)
		}
		lines := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(line string) bool {
			return strings.HasPrefix(line, "<<<<<<<") || strings.HasPrefix(line, "=======") ||
				strings.HasPrefix(line, ">>>>>>>") || strings.HasPrefix(line, "|||||||")
		})
		if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o644); err != nil {
			a.Fatal(err)
		}
	}
	a.git("add", "--all")
	if _, ok := a.git("commit", "--quiet", "-m", "resolved by "+a.name); ok {
		a.keepCommit()
	}
}

// delete deletes the workspace. Work that it has must be in a repository afterwards.
func (a *agent) delete(force bool) {
	work := a.present()
	maps.Copy(work, a.kept)
	args := []string{"workspace", "delete", a.workspace(), "--repo-name", a.repo}
	if force {
		args = append(args, "--force")
	}
	got := a.interlock(a.name, a.checkout, args...)
	switch {
	case got.code == 0:
		for token := range work {
			a.safe[token] = fmt.Sprintf("%s, force %v", a.workspace(), force)
		}
		a.tree = ""
	case force:
		a.Errorf("delete --force answers %+v", got)
	case !strings.Contains(got.errors, "--force"):
		a.Errorf("delete answers %+v", got)
	}
}
