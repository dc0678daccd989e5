package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// object writes an object as it is, however broken.
func (r *Repository) object(t *testing.T, kind, content string) string {
	t.Helper()
	id, err := r.Feed(t.Context(), []byte(content), "hash-object", "-w", "--literally", "-t", kind, "--stdin")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// entry is one entry of a tree, as it is stored.
func entry(mode, name, id string) string {
	var raw strings.Builder
	for i := 0; i < len(id); i += 2 {
		var b byte
		fmt.Sscanf(id[i:i+2], "%02x", &b)
		raw.WriteByte(b)
	}
	return mode + " " + name + "\x00" + raw.String()
}

func commitText(tree, parents, author, committer string) string {
	text := "tree " + tree + "\n"
	for p := range strings.FieldsSeq(parents) {
		text += "parent " + p + "\n"
	}
	if author != "" {
		text += "author " + author + "\n"
	}
	if committer != "" {
		text += "committer " + committer + "\n"
	}
	return text + "\nchange\n"
}

const ada = "Ada <ada@example.org> 1700000000 +0000"

// What a forge with transfer.fsckObjects refuses, and a few kinds that stop a clone, are refused with git's words.
func TestFsckRefuses(t *testing.T) {
	r := newRepository(t)
	blob := r.object(t, "blob", "x\n")
	null := strings.Repeat("0", 40)
	root := r.object(t, "tree", entry("100644", "a", blob))
	base := r.object(t, "commit", commitText(root, "", ada, ada))
	sub := r.object(t, "tree", entry("100644", "b", blob))
	modules := func(text string) string {
		return entry("100644", ".gitmodules", r.object(t, "blob", text))
	}
	const module = "[submodule \"x\"]\n\tpath = x\n\t"
	trees := map[string]string{
		"two entries of a name":      entry("100644", "a", blob) + entry("100644", "a", blob),
		"unsorted":                   entry("100644", "b", blob) + entry("100644", "a", blob),
		"file and folder of a name":  entry("100644", "a", blob) + entry("40000", "a", sub),
		"a zero before the mode":     entry("0100644", "a", blob),
		"a folder with a zero":       entry("040000", "a", sub),
		".git":                       entry("40000", ".git", sub),
		".GIT":                       entry("40000", ".GIT", sub),
		"git~1":                      entry("40000", "git~1", sub),
		"..":                         entry("40000", "..", sub),
		".":                          entry("40000", ".", sub),
		"a slash":                    entry("100644", "a/b", blob),
		"an empty name":              entry("100644", "", blob),
		"a mode of no kind":          entry("777777", "a", blob),
		"a group's mode":             entry("100664", "a", blob),
		"no mode":                    "a\x00" + strings.Repeat("x", 20),
		"a torn entry":               entry("100644", "a", blob)[:20],
		"a null id":                  entry("100644", "a", null),
		"a null gitlink":             entry("160000", "a", null),
		"a folder that is a file":    entry("40000", "a", blob),
		"a file that is missing":     entry("100644", "a", strings.Repeat("1", 40)),
		"a folder that is missing":   entry("40000", "a", strings.Repeat("1", 40)),
		".gitmodules: url":           modules(module + "url = -u./x\n"),
		".gitmodules: url with line": modules(module + "url = \"https://example.org/%0ahost\"\n"),
		".gitmodules: ext":           modules(module + "url = -oProxyCommand=x\n"),
		".gitmodules: path":          modules("[submodule \"x\"]\n\tpath = -x\n\turl = ./x\n"),
		".gitmodules: name":          modules("[submodule \"../x\"]\n\tpath = x\n\turl = ./x\n"),
		".gitmodules: update":        modules(module + "url = ./x\n\tupdate = !touch /x\n"),
		".gitmodules: no file":       modules("[submodule \"x\n"),
		".gitmodules: a link":        entry("120000", ".gitmodules", blob),
		".gitmodules: a folder":      entry("40000", ".gitmodules", sub),
		".gitattributes: a link":     entry("120000", ".gitattributes", blob),
	}
	commits := map[string]string{
		"no author":             commitText(root, base, "", ada),
		"no committer":          commitText(root, base, ada, ""),
		"no address":            commitText(root, base, "A 1700000000 +0000", ada),
		"a bracket too few":     commitText(root, base, "A <a@example.org 1700000000 +0000", ada),
		"no space":              commitText(root, base, "A<a@example.org> 1700000000 +0000", ada),
		"a date that overflows": commitText(root, base, "A <a@example.org> 99999999999999999999 +0000", ada),
		"a date with a zero":    commitText(root, base, "A <a@example.org> 01700000000 +0000", ada),
		"no date":               commitText(root, base, "A <a@example.org>", ada),
		"a zone of no form":     commitText(root, base, "A <a@example.org> 1700000000 +00", ada),
		"two authors":           commitText(root, base, ada+"\nauthor "+ada, ada),
		"a null byte":           commitText(root, base, ada, ada) + "\x00\n",
		"a tree that is a file": commitText(blob, base, ada, ada),
		"no tree":               "parent " + base + "\nauthor " + ada + "\ncommitter " + ada + "\n\nx\n",
		"a null parent":         commitText(root, base+" "+null, ada, ada),
		"nothing":               "",
	}
	for name, tree := range trees {
		commits["tree: "+name] = commitText(r.object(t, "tree", tree), base, ada, ada)
	}
	refused := func(name, head string) {
		t.Helper()
		err := r.Fsck(t.Context(), t.TempDir(), head, base)
		if unsound, ok := errors.AsType[*Unsound](err); !ok || unsound.Words == "" {
			t.Errorf("%s: %v, want git's words", name, err)
		}
	}
	for name, text := range commits {
		head := r.object(t, "commit", text)
		refused(name, head)
		// Also below another commit, and beside another folder.
		good := commitText(r.object(t, "tree", entry("100644", "z", blob)), head, ada, ada)
		refused(name+", and a good one", r.object(t, "commit", good))
	}
	deep := r.object(t, "tree", entry("40000", "d", r.object(t, "tree", trees["two entries of a name"])))
	refused("deep", r.object(t, "commit", commitText(deep, base, ada, ada)))
}

// What the target has is not held against a submission: old commits, files, and faults of folders that stay as they
// were.
func TestFsckExcusesHistory(t *testing.T) {
	r := newRepository(t)
	blob := r.object(t, "blob", "x\n")
	bad := r.object(t, "blob", "[submodule \"x\"]\n\tpath = x\n\turl = -u./x\n")
	folder := r.object(t, "tree", entry("100664", "old", blob))
	tree := func(name string) string {
		return r.object(t, "tree", entry("100644", ".gitmodules", bad)+entry("40000", "d", folder)+
			entry("0100644", name, blob))
	}
	base := r.object(t, "commit", commitText(tree("f"), "", "A 1", ada))
	next := r.object(t, "commit", commitText(tree("g"), base, ada, ada))
	if err := r.Fsck(t.Context(), t.TempDir(), next, base); err != nil {
		t.Errorf("with old faults: %v", err)
	}
	deeper := r.object(t, "tree", entry("100644", ".gitmodules", bad)+
		entry("40000", "d", r.object(t, "tree", entry("100664", "old", blob)+entry("100644", "p", blob)))+
		entry("0100644", "f", blob))
	below := r.object(t, "commit", commitText(deeper, base, ada, ada))
	if err := r.Fsck(t.Context(), t.TempDir(), below, base); err != nil {
		t.Errorf("with an old fault of a folder: %v", err)
	}
	worse := r.object(t, "tree", entry("100644", ".gitmodules", bad)+entry("40000", "d", folder)+
		entry("0100644", "f", blob)+entry("100644", "f", blob))
	err := r.Fsck(t.Context(), t.TempDir(), r.object(t, "commit", commitText(worse, base, ada, ada)), base)
	if _, ok := errors.AsType[*Unsound](err); !ok {
		t.Errorf("with a new fault beside old ones: %v", err)
	}
	if err := r.Fsck(t.Context(), t.TempDir(), base, base); err != nil {
		t.Errorf("nothing new: %v", err)
	}
	// A git that is killed, or a machine that fails, is no fault of the objects.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := errors.AsType[*Unsound](r.Fsck(ctx, t.TempDir(), next, base)); ok {
		t.Error("a killed git is taken for a fault")
	}
	full := *r
	full.Through = []string{"sh", "-c", "echo 'fatal: write error: No space left on device' >&2; exit 128"}
	if _, ok := errors.AsType[*Unsound](full.Fsck(t.Context(), t.TempDir(), next, base)); ok {
		t.Error("a full disk is taken for a fault")
	}
}
