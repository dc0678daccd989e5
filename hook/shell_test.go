package hook

import (
	"slices"
	"strings"
	"testing"
)

func TestReadCommand(t *testing.T) {
	for _, tt := range []struct {
		command, writes, trees string // paths below /w, separated by blanks; "a>b" is b in the folder a
	}{
		// Redirections.
		{"echo x > a.txt", "a.txt", ""},
		{"echo x >> a.txt 2>&1", "a.txt", ""},
		{"echo x >a.txt 2>err.log", "a.txt err.log", ""},
		{"echo x >| a.txt", "a.txt", ""},
		{"make &> build.log", "build.log", ""},
		{"make &>> build.log", "build.log", ""},
		{"make >& build.log", "build.log", ""},
		{"echo x > /dev/null; echo y 2>/dev/null", "", ""},
		{"echo x > \"my file.txt\"", "my_file.txt", ""},
		{"echo x > my\\ file.txt", "my_file.txt", ""},
		{"echo 'a > b'", "", ""},
		{"echo \"a > b\" | cat", "", ""},
		{"cat < in.txt > out.txt", "out.txt", ""},
		{"cat > a.go <<'EOF'\npackage a // > b.go\nEOF\necho done > c", "a.go c", ""},
		{"cat <<-EOF > a\n\ttext\n\tEOF\nrm b", "a b", ""},
		{"> empty", "empty", ""},
		{"echo x > $HOME/a; echo x > ~/b; echo > \"$f\"; echo > `pwd`/c", "", ""},
		{"diff <(sort a > t) b", "", ""},
		{"a=$(cat x > y) b", "", ""},
		{"[ 1 -gt 0 ] && echo x > a", "a", ""},
		{"echo ok # > nothing", "", ""},
		{"exec 3>&1 >log", "log", ""},
		{"FOO=bar cmd > a", "a", ""},
		{"cat <<< text > a", "a", ""},

		// Programs.
		{"echo x | tee a b", "a b", ""},
		{"echo x | sudo tee -a /etc/hosts", "/etc/hosts", ""},
		{"sed -i 's/a/b/' x.go", "x.go", ""},
		{"sed -i.bak -e 's/a/b/' -e 's/c/d/' x.go y.go", "x.go y.go", ""},
		{"sed -i '' 's/a/b/' x.go", "x.go", ""},
		{"sed -Ei 's/a/b/' x.go", "x.go", ""},
		{"sed --in-place=.bak 's/a/b/' x.go", "x.go", ""},
		{"sed -n 's/a/b/p' x.go", "", ""},
		{"sed 's/-i/b/' x.go", "", ""},
		{"perl -pi -e 's/a/b/' x y", "x y", ""},
		{"perl -i -pe 's/a/b/' x", "x", ""},
		{"perl -e 'print 1' x", "", ""},
		{"perl -ne 'print if /-i/' x", "", ""},
		{"mv a b", "a b>a", ""},
		{"mv a b/", "a b/a", ""},
		{"mv -f a b c", "a b c/a c/b", ""},
		{"mv -t dir a b", "a b dir/a dir/b", ""},
		{"cp a b", "b>a", ""},
		{"cp -r src dst", "", "dst"},
		{"cp *.go dst", "", "dst"},
		{"rm a b", "a b", ""},
		{"rm -f a", "a", ""},
		{"rm -rf build", "", "build"},
		{"rm *.o", "", "."},
		{"rm src/*.o src/x", "src/x", "src"},
		{"truncate -s 0 log", "log", ""},
		{"dd if=/dev/zero of=disk bs=1", "disk", ""},
		{"patch a.go < fix.patch", "a.go", ""},
		{"patch -p1 < fix.patch", "", "."},
		{"patch -p1 --dry-run < fix.patch", "", ""},
		{
			"apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.go\n*** Move to: b.go\n*** Add File: c/d.go\n" +
				"*** End Patch\nEOF",
			"a.go b.go c/d.go", "",
		},
		{"cd sub && apply_patch '*** Begin Patch\n*** Delete File: a.go\n*** End Patch'", "sub/a.go", ""},
		{"gofmt -w a.go b.go", "a.go b.go", ""},
		{"gofmt -l .", "", ""},
		{"gofumpt -w .", "", "."},
		{"prettier --write src/a.ts src", "src/a.ts", "src"},
		{"npx --yes prettier --write a.ts", "a.ts", ""},
		{"prettier --check a.ts", "", ""},
		{"black pkg/a.py", "pkg/a.py", ""},
		{"ruff check --fix a.py", "a.py", ""},
		{"ruff check a.py", "", ""},
		{"eslint --fix a.js", "a.js", ""},
		{"clang-format -i a.c", "a.c", ""},

		// Folders.
		{"cd src && echo x > a", "src/a", ""},
		{"cd src; cd ..; rm a", "a", ""},
		{"(cd src && rm a); rm b", "src/a b", ""},
		{"cd /x/y && rm a /z/b", "/x/y/a /z/b", ""},
		{"cd $DIR && rm a /z/b", "/z/b", ""},
		{"cd - && rm a", "", ""},
		{"cd && rm a", "", ""},
		{"pushd src && rm a", "src/a", ""},
		{"rm ../../../a", "/a", ""},
		{"bash -c 'cd src; rm a'; rm b", "src/a b", ""},
		{"bash -lc \"echo x > a\"", "a", ""},
		{"sh <<'EOF'\nrm a\nEOF", "a", ""},
		{"bash script.sh", "", ""},
		{"if true; then rm a; else rm b; fi", "a b", ""},
		{"for f in *.go; do rm $f; done", "", ""},
		{"timeout 10 rm a", "a", ""},
		{"sudo -n rm a", "a", ""},
		{"true || rm a & rm b", "a b", ""},

		// Git.
		{"git checkout main", "", "."},
		{"git checkout -b new", "", ""},
		{"git checkout -- a.go src/", "a.go", "src"},
		{"git checkout main -- a.go", "a.go", ""},
		{"git restore a.go", "a.go", ""},
		{"git restore .", "", "."},
		{"git restore --staged a.go", "", ""},
		{"git switch main", "", "."},
		{"git switch -c new", "", ""},
		{"git stash", "", "."},
		{"git stash list", "", ""},
		{"git stash pop", "", "."},
		{"git reset --hard HEAD~1", "", "."},
		{"git reset a.go", "", ""},
		{"git merge x && git rebase y && git pull", "", "."},
		{"git -C sub pull", "", "sub"},
		{"git -c a.b=c pull --rebase", "", "."},
		{"git clean -fd", "", "."},
		{"git rm a.go", "a.go", ""},
		{"git mv a.go b.go", "a.go b.go>a.go", ""},
		{"git status && git diff > d.patch", "d.patch", ""},
		{"git commit -m 'rm a > b'", "", ""},
		{"git apply fix.patch", "", "."},
		{"git", "", ""},

		// What passes.
		{"go test ./... 2>&1 | tail -5", "", ""},
		{"ls -la; cat a; grep -r x .", "", ""},
		{"echo \"unclosed > a", "", ""},
		{"python3 -c 'open(\"a\",\"w\")'", "", ""},
		{"", "", ""},
		{"((", "", ""},
		{">", "", ""},
		{"cat <<EOF", "", ""},
	} {
		writes, trees := ReadCommand(tt.command, "/w")
		var got []string
		for _, w := range writes {
			text := strings.ReplaceAll(strings.TrimPrefix(w.Path, "/w/"), " ", "_")
			if w.Into != "" {
				text += ">" + w.Into
			}
			got = append(got, text)
		}
		if !slices.Equal(got, strings.Fields(tt.writes)) {
			t.Errorf("%s\nwrites %q, want %q", tt.command, got, tt.writes)
		}
		got = nil
		for _, tree := range trees {
			if tree = strings.TrimPrefix(tree, "/w"); tree == "" {
				tree = "."
			}
			got = append(got, strings.TrimPrefix(tree, "/"))
		}
		if !slices.Equal(got, strings.Fields(tt.trees)) {
			t.Errorf("%s\nchanges %q at large, want %q", tt.command, got, tt.trees)
		}
	}
}

func TestReadCommandOfUnknownFolder(t *testing.T) {
	writes, trees := ReadCommand("rm a /b; git pull; cd /x; rm c", "")
	if len(writes) != 2 || writes[0].Path != "/b" || writes[1].Path != "/x/c" || trees != nil {
		t.Errorf("writes %+v, trees %q", writes, trees)
	}
	writes, _ = ReadCommand(`rm a.txt C:\x\b.txt`, `C:\w`)
	if len(writes) != 2 || writes[0].Path != "C:/w/a.txt" {
		t.Errorf("writes %+v", writes)
	}
}

// FuzzReadCommand has commands of any form: each is read to its end, and each path is absolute.
func FuzzReadCommand(f *testing.F) {
	for _, seed := range []string{
		"echo x > 'a b' && cd \"$x\"; rm *.go", "cat <<EOF >a\nb\nEOF", "bash -c 'sh -c \"rm a\"'", "a)(b>&1<<-\t'",
		"sed -i -e",
		"git -C", "mv -t", "perl -", "tee `", "cp $(a '(' ) b", "patch -p1 <<<x", "\\\n>\\",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, command string) {
		writes, trees := ReadCommand(command, "/w")
		for _, target := range writes {
			trees = append(trees, target.Path)
		}
		for _, path := range trees {
			if !isAbs(path) {
				t.Errorf("%q: path %q is not absolute", command, path)
			}
		}
	})
}
