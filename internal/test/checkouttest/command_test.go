package checkouttest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
)

// order is a command with what the generator knows of it.
type order struct {
	text string
	// reads means that it only reads, or is a dry run.
	reads bool
	// beyond is the part of the remainder of docs/hooks.md that it belongs to, "" for none.
	beyond string
	// about are files that it may be about.
	about []string
}

// The remainder: what hooks do not see, by docs/hooks.md. All but the last are commands that are not understood, which
// unknown=deny refuses.
const (
	ofScript   = "a script of the project"
	ofProgram  = "a program in another language"
	ofVariable = "a variable of the environment"
	ofAlias    = "an alias of git"
	ofPipe     = "text from a file or a pipe"
	ofTable    = "a row that is not understood"
	ofFolder   = "a cd that fails"
)

// row is a row of the table that may be run.
type row struct {
	order
	harmless bool
}

// rows are the commands of hook/shell/testdata that are confined.
func rows(t *testing.T) (list []row) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tools.Root(), "hook/shell/testdata/commands.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		command, reading, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ⇒")
		if !ok || strings.HasPrefix(line, "# ") {
			continue
		}
		r := row{order: order{text: strings.ReplaceAll(command, "⏎", "\n")}, harmless: strings.TrimSpace(reading) == ""}
		if loose(r.text) != "" {
			continue
		}
		if strings.Contains(reading, "?") {
			r.beyond = ofTable
		}
		r.reads = r.harmless
		for _, word := range strings.Fields(reading) {
			word = strings.TrimLeft(word, "@=+%&!*^~")
			if slices.Contains(names, word) {
				r.about = append(r.about, word)
			}
		}
		list = append(list, r)
	}
	if len(list) < 400 {
		t.Fatalf("only %d rows of the table may be run", len(list))
	}
	return list
}

// maker makes random commands.
type maker struct {
	*rand.Rand
	rows []row
}

func one[T any](m *maker, list ...T) T { return list[m.IntN(len(list))] }

// next makes a command for an agent in the top folder.
func (m *maker) next() order {
	switch n := m.IntN(100); {
	case n < 40:
		r := m.rows[m.IntN(len(m.rows))]
		return r.order
	case n < 66:
		return m.wrapped(m.writer)
	case n < 80:
		return m.wrapped(m.large)
	case n < 96:
		return m.wrapped(m.reader)
	}
	return m.remainder()
}

func (m *maker) file() string { return names[m.IntN(len(names))] }

// spelled is a file in one of the ways to write a word, from a folder.
func (m *maker) spelled(name string) string {
	switch m.IntN(9) {
	case 0:
		return "'" + name + "'"
	case 1:
		return `"` + name + `"`
	case 2:
		return "./" + name
	case 3:
		return "$'" + name + "'"
	case 4:
		return `\` + name
	case 5:
		return "{" + name + ",}"
	case 6: // a pattern
		return name[:len(name)-1] + "[" + name[len(name)-1:] + "]"
	}
	return name
}

// writer changes a file that it names. other is another one.
func (m *maker) writer(dir string) order {
	name, other := m.file(), m.file()
	if dir != "" {
		var inside []string
		for _, n := range names {
			if rest, ok := strings.CutPrefix(n, dir+"/"); ok {
				inside = append(inside, rest)
			}
		}
		name, other = one(m, inside...), one(m, inside...)
	}
	f, g := m.spelled(name), other
	base := path.Base(name)
	folder := path.Dir(name)
	text := one(
		m,
		"echo x > "+f, "echo x >> "+f, "printf x | tee "+f, "printf x | tee -a z "+f, "sed -i s/a/b/ "+f,
		"sed -i.bak -e s/a/b/ "+f,
		"perl -pi -e s/a/b/ "+f, "cp "+g+" "+f, "cp -f "+g+" "+f, "mv "+g+" "+f, "mv "+f+" moved", "rm "+f,
		"rm -f "+f+" nothing",
		"truncate -s 0 "+f, "chmod +x "+f, "ln -sf "+g+" "+f, "install -m 600 "+g+" "+f, "sort -r -o "+f+" "+g,
		"dd if=/dev/null of="+f,
		"git checkout -- "+f, "git checkout dev -- "+f, "git restore "+f, "git restore -s dev "+f, "git rm -qf "+f,
		"git mv -f "+f+" moved", "cat > "+f+" <<'E'\nx\nE\n", "cat "+g+" > "+f, "gzip -f "+f, "git show dev:F > "+f,
		"head -1 "+g+" > "+f, "shred -u "+f, ": > "+f, "exec 3> "+f, "diff "+g+" z > "+f,
		"printf '1d\\nw\\nq\\n' | ed -s "+f,
		"find . -name "+base+" -delete", "find . -type f -name '"+base+"' -exec rm {} +",
		"find "+folder+" -type f | xargs rm -f",
		"printf '%s\\n' "+g+" "+f+" | xargs rm -f", "printf '"+g+"\\0"+name+"\\0' | xargs -0 rm -f",
		"echo z,"+name+" | xargs -d, rm -f", "IFS=,; l=z,"+name+"; rm -f $l",
		"printf 'w "+name+"\\nq\\n' | ed -s "+g, "ls | xargs truncate -s 0", "git ls-files | xargs sed -i s/a/b/",
		"grep -rl alpha . | xargs sed -i s/a/b/", "for f in "+f+" z; do sed -i s/a/b/ $f; done",
		"for f in "+folder+"/*; do rm \"$f\"; done", "f="+name+"; echo x > $f", "f="+name+" && rm \"$f\"",
		"n="+strings.TrimSuffix(base, path.Ext(base))+"; echo x > "+folder+"/$n"+path.Ext(base),
		"ls "+folder+" | while read -r f; do rm "+folder+"/$f; done", "set -- "+f+" && rm \"$1\"",
		"files=("+f+" z); rm \"${files[@]}\"",
		"rm "+folder+"/*", "rm *"+path.Ext(base), "touch "+f+" && rm "+f, "split -l 1 "+g+" "+name, "unlink "+name,
		"git apply fix.patch", "patch -p1 < fix.patch", "tar -xf a.tar", "tar xzf a.tar.gz", "tar -xf a.tar -C "+folder,
		"awk '{print > \""+name+"\"}' "+g, "sed -n 'w "+name+"' "+g, "git diff dev --output="+f, "xz -f "+f,
		"zip -qm z.zip "+f,
		"git stash push -q -- "+f, "comm "+g+" z 2>"+f, "mv -t "+folder+" "+g, "cp "+g+" "+folder,
		"cp -r docs sub", "mv sub/* .",
		"echo x | dd of="+f, "base64 "+g+" >| "+f, "tr a b < "+g+" &> "+f, "sort "+g+" | uniq - "+f,
	)
	return order{text: text, about: []string{name, other}}
}

// large changes files at large, takes them into the index or a commit, or moves HEAD.
func (m *maker) large(string) order {
	f := m.file()
	return order{about: []string{f}, text: one(
		m,
		"git stash", "git stash -u", "git checkout -q dev", "git checkout -q -b n", "git checkout -f", "git checkout .",
		"git checkout dev -- .", "git restore .", "git reset -q --hard", "git reset -q --hard HEAD",
		"git reset -q --hard dev",
		"git reset -q dev", "git reset -q --soft dev", "git clean -fdxq", "rm -rf src", "rm -rf *", "git pull -q",
		"git pull -q --rebase",
		"git merge -q dev", "git merge --squash dev", "git rebase -q dev", "git cherry-pick dev", "git add -A",
		"git add .", "git add -u",
		"git add src", "git add "+f, "git commit -qam x", "git commit -qm x", "git commit -qm x "+f,
		"git commit -qm x .",
		"git add -A && git commit -qm x", "git commit -q --amend --no-edit", "git commit -q --amend -m y",
		"git switch -q -c n",
		"git switch -q dev", "git bisect start dev HEAD", "git stash && git stash pop", "git read-tree -u --reset dev",
		"git checkout-index -fa", "mv src src2", "cp -r docs sub", "git rm -rqf src", "git mv src src2",
		"git revert --no-edit HEAD",
		"git commit -qa -m 'two words' && git log -1", "git add -A; git commit -m x | tail -1",
		"git symbolic-ref HEAD refs/heads/dev",
		"git update-ref HEAD dev", "git branch -f n", "git fetch -q && git merge -q origin/main",
		"git checkout -q --detach",
		"git format-patch -1 -q", "git am fix.patch", "find . -name '*.go' -delete", "git commit --allow-empty -qm x",
		"git commit -qi -m x "+f, "git commit -qo -m x -- "+f, "git stash push -qm x src", "git add --all src lib",
		"git reset -q", "git tag v1", "git add '*'", "git add ':/' ':!z'", "git checkout -q -- '*"+path.Ext(f)+"'",
		"git restore ':(icase)"+strings.ToUpper(f)+"'", "git rm -qf '"+path.Dir(f)+"/*'", "git restore ':!z'",
		"git update-index --add "+f, "git ls-files -m | git update-index --stdin", "git rm -q --cached "+f,
		"git apply --cached fix.patch", "git branch -m n", "git update-ref refs/heads/main dev",
		"git add ':(exclude,top)z' "+f, "git add ':/"+f+"' ':/!z'", "git checkout dev -- ':(top)"+f+"'",
		"git stash push -q -- '"+path.Dir(f)+"/*'", "git commit -qm x -- '*"+path.Ext(f)+"'", "git clean -fdq ':/'",
	)}
}

// reader only reads, or is a dry run.
func (m *maker) reader(dir string) order {
	f, g := m.spelled(path.Base(m.file())), m.file()
	text := one(
		m,
		"cat "+f, "grep -n a "+f, "grep -rn alpha .", "sed -n 1p "+f, "sed s/a/b/ "+f, "head -2 "+f, "wc -l "+f,
		"diff "+f+" "+g,
		"git diff", "git log -1", "git status --short", "git show HEAD:F", "git add -n .", "git add --dry-run -A",
		"git commit --dry-run -am x", "git clean -nd", "git clean --dry-run -fd", "patch --dry-run -p1 < fix.patch",
		"find . -name "+f, "find . -type f | head", "tar -tf a.tar", "ls -la", "sort "+f, "awk '{print $1}' "+f,
		"perl -ne print "+f,
		"git stash list", "test -f "+f+" && echo y", "[[ a > F ]]", "(( 3 > 2 ))", "git diff --stat HEAD",
		"git blame F", "git rm -n F",
		"git apply --check fix.patch", "git apply --stat fix.patch", "git branch -a", "git rev-parse HEAD",
		"tail -n 1 "+f,
		"cut -c1 "+f+" | sort | uniq -c", "git ls-files | wc -l", "git ls-files | xargs wc -l",
		"find . -name '*.go' -exec wc -l {} +",
		"cat "+f+" > /dev/null 2>&1", "echo \"a > F\"", "git mv -n F G", "git fetch --dry-run",
		"git push --dry-run origin main",
		"git merge-base main dev", "git tag", "git reflog", "git describe --always", "git cat-file -p HEAD",
		"od -c "+f, "cmp "+f+" "+g,
		"md5sum "+f, "gzip -c "+f+" > /dev/null", "for f in *.go; do wc -l $f; done",
		"while read -r l; do echo $l; done < F",
		"f=F; cat \"$f\"", "git log --oneline | head -1", "git diff dev --stat", "true", "tac "+f, "seq 3",
		"zip --help", "git add --help | cat",
		"git restore --staged F", "git reset -q HEAD -- F", "git stash show",
	)
	if strings.Contains(text, "--help") || strings.Contains(text, "--staged") || strings.Contains(text,
		"git reset") ||
		dir != "" && strings.Contains(text, "fix.patch") {
		text = "git status"
	}
	return order{text: text, reads: true}
}

// remainder is what hooks do not see, by their page.
func (m *maker) remainder() order {
	f := m.file()
	o := one(
		m,
		order{text: "bash run.sh " + f, beyond: ofScript}, order{text: "sh ./run.sh " + f, beyond: ofScript},
		order{text: "make -s", beyond: ofScript}, order{text: ". ./run.sh " + f, beyond: ofScript},
		order{text: "python3 -c 'open(\"" + f + "\",\"w\")'", beyond: ofProgram},
		order{text: "perl -e 'open(F,\">\",\"" + f + "\")'", beyond: ofProgram},
		order{text: "awk 'BEGIN{f=\"" + f + "\"; print > f}'", beyond: ofProgram},
		order{text: "echo x > \"$EDITED\"", beyond: ofVariable}, order{text: "rm $EDITED", beyond: ofVariable},
		order{text: "git wipe -q", beyond: ofAlias}, order{text: "cat run.sh | bash -s " + f, beyond: ofPipe},
		order{text: "bash -s " + f + " < run.sh", beyond: ofPipe},
		order{text: "cd nowhere; echo x > " + f, beyond: ofFolder},
		order{text: "cd nowhere 2>/dev/null; rm -f " + f, beyond: ofFolder},
	)
	o.about = []string{f}
	return o
}

// wrapped puts a command into one of the constructs of a shell, or several.
func (m *maker) wrapped(simple func(dir string) order) order {
	dir := ""
	if m.IntN(4) == 0 {
		dir = one(m, "src", "sub", "lib", "docs")
	}
	o := simple(dir)
	if dir != "" {
		o.text = one(
			m,
			"cd "+dir+" && "+o.text, "cd ./"+dir+"\n"+o.text, "(cd "+dir+"; "+o.text+"\n)",
			"pushd "+dir+" >/dev/null; "+o.text+"\npopd",
			"d="+dir+"; cd $d && "+o.text, "if cd "+dir+"; then "+o.text+"\nfi",
		)
		for i, name := range o.about {
			o.about[i] = path.Join(dir, name)
		}
	}
	for range m.IntN(3) {
		o.text = m.wrap(o.text)
	}
	return o
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func (m *maker) wrap(c string) string {
	choices := []string{
		"(" + c + "\n)", "{ " + c + "\n}", "true && { " + c + "\n}", "false || { " + c + "\n}",
		"{ " + c + "\n} 2>&1 | cat",
		"echo x | { " + c + "\n}", "bash -c " + quote(c), "bash -ec " + quote(c), "sh -c " + quote("true; "+c),
		"if true; then " + c + "\nfi",
		"f() { " + c + "\n}; f", "eval " + quote(c), "y=$(" + c + "\n)", "! { " + c + "\n}",
		"{ " + c + "\n} &\nwait", "for i in 1; do " + c + "\ndone",
		"case x in x) " + c + "\n;; esac", "bash <<'EE'\n" + c + "\nEE", "echo " + quote(c) + " | bash",
		"set -e; " + c, "time { " + c + "\n}",
		"while :; do " + c + "\nbreak; done", "until true; do :; done; " + c, "env A=1 bash -c " + quote(c),
		"timeout 9 bash -c " + quote(c),
		"nice -n 1 sh -c " + quote(c), "echo `" + c + "\n`", "A=1; " + c, "[ -d src ] && { " + c + "\n}",
		"trap " + quote(c) + " EXIT", "command eval " + quote(c),
		"echo a; " + c + "\necho b", "# a comment\n" + c, "cat <(" + c + "\n)", "function g { " + c + "\n}; g",
		"nohup bash -c " + quote(c) + " 2>/dev/null",
		"cd \"$(git rev-parse --show-toplevel)\" && { " + c + "\n}",
		"xargs -I{} bash -c " + quote(c) + " <<< x", "x=" + quote(c) + "; eval \"$x\"",
		"x=" + quote(c) + "; bash -c \"$x\"",
		"test -d nowhere && cd nowhere; " + c, "if [ -d nowhere ]; then cd nowhere; fi\n" + c,
		"case x in y) cd src;; esac\n" + c, "if false; then cd src; else cd .; fi; " + c,
		"while false; do cd src; done\n" + c, "cd . && [ -d nowhere ] && cd nowhere\n" + c,
		"find . -maxdepth 0 -exec bash -c " + quote(c) + " \\;", "git ls-files F | while read -r n; do " + c + "\ndone",
	}
	for range 8 {
		if wrapped := choices[m.IntN(len(choices))]; !strings.Contains(wrapped, "`") || !strings.ContainsAny(c,
			"`\\$") {
			if loose(wrapped) == "" {
				return wrapped
			}
		}
	}
	return c
}

func (o *order) String() string { return fmt.Sprintf("%q", o.text) }
