package boundarytest

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/merge/merger"
)

// audit compares the repositories with the model.
func (w *world) audit() {
	w.Helper()
	w.auditTarget()
	w.auditLine()
	w.auditWork()
	if after := w.surroundings(); after != w.before {
		w.Errorf("the checkout changed from\n%s\nto\n%s", w.before, after)
	}
}

// auditTarget compares the branch with the outcomes.
func (w *world) auditTarget() {
	w.Helper()
	want := map[string]string{}
	for id, s := range w.sent {
		switch s.outcome.Code {
		case merger.Landed:
			if earlier, ok := want[s.outcome.Landing.Commit]; ok && w.sent[earlier].head != s.head {
				w.Errorf("%s and %s landed as one commit", earlier, id)
			}
			want[s.outcome.Landing.Commit] = id
		case merger.Returned, merger.Withdrawn, "superseded":
		default:
			w.Errorf("%s ended as %q", id, s.outcome.Code)
		}
	}
	got := map[string]bool{}
	// The last tree of a move was checked, for all landings that moved together. They come newest first.
	checked := map[int64]bool{}
	list := w.git(w.upstream, "log", "--first-parent", "--format=%H %T %P", w.begin+"..refs/heads/main")
	for line := range strings.Lines(list) {
		f := strings.Fields(line)
		commit, tree, parents := f[0], f[1], f[2:]
		got[commit] = true
		id, ok := want[commit]
		switch {
		case !ok:
			w.Errorf("%s is on the target, and no submission landed as it", commit)
			continue
		case w.passed[tree]:
			checked[w.sent[id].outcome.Landing.At] = true
		case !checked[w.sent[id].outcome.Landing.At]:
			w.Errorf("%s of %s landed, and its tree has not passed", commit, w.sent[id].agent)
		}
		made, err := w.try(w.upstream, "git", "merge-tree", "--write-tree", parents[0], w.sent[id].head)
		if err != nil || made != tree {
			w.Errorf("%s of %s has the tree %s, and git makes %s, %v", commit, w.sent[id].agent, tree, made, err)
		}
	}
	for commit, id := range want {
		if !got[commit] {
			w.Errorf("%s landed as %s, which is not on the target", id, commit)
		}
	}
}

var anyToken = regexp.MustCompile(`token-\w+-\d+;`)

// auditWork finds the tokens of deleted workspaces in what the repositories keep.
func (w *world) auditWork() {
	w.Helper()
	found := map[string]bool{}
	stores := []string{w.upstream, filepath.Join(w.checkout, ".git")}
	kept, err := filepath.Glob(filepath.Join(w.dir, "workspaces", "*", ".saved.git"))
	if err != nil {
		w.Fatal(err)
	}
	// What git cannot read of a broken workspace is moved away as it is.
	moved, err := filepath.Glob(filepath.Join(w.dir, "workspaces", "*", ".kept"))
	if err != nil {
		w.Fatal(err)
	}
	for _, folder := range moved {
		maps.Copy(found, w.tokensBelow(folder))
		objects, err := filepath.Glob(filepath.Join(folder, "*", "*", "objects"))
		if err != nil {
			w.Fatal(err)
		}
		for _, store := range objects {
			bare := w.T.TempDir()
			w.git(bare, "init", "--quiet", "--bare")
			w.write(filepath.Join(bare, "objects", "info", "alternates"), store+"\n")
			for _, token := range anyToken.FindAllString(w.git(bare, "cat-file", "--batch-all-objects", "--batch"), -1) {
				found[token] = true
			}
		}
	}
	for _, store := range append(stores, kept...) {
		objects := w.git(store, "rev-list", "--objects", "--no-object-names", "--all")
		for _, token := range anyToken.FindAllString(w.feed(store, objects+"\n", "git", "cat-file", "--batch"), -1) {
			found[token] = true
		}
	}
	var lost []string
	for _, token := range slices.Sorted(maps.Keys(w.safe)) {
		if !found[token] {
			lost = append(lost, token+" ("+w.safe[token]+")")
		}
	}
	if len(lost) > 0 {
		w.Errorf("lost: %s", strings.Join(lost, ", "))
	}
}

// precious describes the folder outside, which no command may change.
func (w *world) precious() string {
	w.Helper()
	return w.texts(w.outside)
}

// surroundings describes what no agent may change in the checkout: its files, branches and settings.
func (w *world) surroundings() string {
	w.Helper()
	return strings.Join([]string{
		w.texts(w.checkout), w.git(w.checkout, "for-each-ref", "refs/heads", "refs/tags", "refs/stash"),
		w.git(w.checkout, "symbolic-ref", "HEAD"), w.git(w.checkout, "status", "--porcelain"),
	}, "\n")
}

// texts are the files of a folder.
func (w *world) texts(folder string) string {
	w.Helper()
	var b strings.Builder
	for _, path := range w.filesBelow(folder) {
		text, err := os.ReadFile(path)
		if err != nil {
			w.Fatal(err)
		}
		b.WriteString(path + ": " + string(text) + "\n")
	}
	return b.String()
}

// tokensBelow are the tokens of the files in a folder, without those of git and the ignored ones.
func (w *world) tokensBelow(folder string) map[string]bool {
	w.Helper()
	tokens := map[string]bool{}
	for _, path := range w.filesBelow(folder) {
		text, err := os.ReadFile(path)
		if err != nil {
			w.Fatal(err)
		}
		for _, token := range anyToken.FindAllString(string(text), -1) {
			tokens[token] = true
		}
	}
	return tokens
}

func (w *world) filesBelow(folder string) (list []string) {
	w.Helper()
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == ".git" || e.Name() == "ignored"):
			return fs.SkipDir
		case e.Type().IsRegular() && e.Name() != ".git" && e.Name() != ".gitignore":
			list = append(list, path)
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return list
}
