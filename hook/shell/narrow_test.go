package shell

import "testing"

func TestNarrow(t *testing.T) {
	own := func(dir string) []string {
		switch dir {
		case "/w":
			return []string{"a b.go", "src/c"}
		case "/w/src":
			return []string{"../a b.go", "c"}
		}
		return nil
	}
	for command, want := range map[string]string{
		"git commit -am x":         "{ git add -A -- 'a b.go' src/c && git commit --only -m x -- 'a b.go' src/c; }",
		"git commit -a -m 'x y' .": "{ git add -A -- 'a b.go' src/c && git commit --only -m 'x y' -- 'a b.go' src/c; }",
		`git commit -qam"x $y" && git push`: "{ git add -A -- 'a b.go' src/c && " +
			`git commit --only -qm"x $y" -- 'a b.go' src/c; } && git push`,
		"git add -A && git commit -m x | tail -3": "git add -A -- 'a b.go' src/c && " +
			"git commit --only -m x -- 'a b.go' src/c | tail -3",
		"cd src; git add . ; git commit --message=x": "cd src; git add -A -- c ; " +
			"git commit --only --message=x -- '../a b.go' c",
		"git commit -m x src": "{ git add -A -- src/c && git commit --only -m x -- src/c; }",
		"git commit --all -m \"$(cat <<'E'\na 'b\nE\n)\" 2>&1": "{ git add -A -- 'a b.go' src/c && git commit --only -m " +
			"\"$(cat <<'E'\na 'b\nE\n)\" -- 'a b.go' src/c; } 2>&1",
		"if [ -d src ]; then cd src; fi; git add -A": "", "test -d src && cd src; git commit -am x": "",
		"cd src | ls; git add -A": "", "f() { cd src; }; f; git add -A": "", "git add ':/src/c' 'a b.go'": "",
		"test -d src && cd src && git add -A": "test -d src && cd src && git add -A -- '../a b.go' c",
		"git add src ':!src/c'":               "", "git commit -m x . ':(exclude,top)a b.go'": "",
		"git commit --amend -am x": "", "git add -p": "", "git status": "", "(git add -A": "",
		"cd /elsewhere && git add -A": "", "for i in 1; do git add -A; done": "", "git -C x add -A": "",
		"sudo git add -A": "", "git commit --dry-run -a": "",
		`cd "$X" && git add -A`: "", "git add 'a b.go'": "git add -A -- 'a b.go'",
	} {
		got, ok := Narrow(command, "/w", own)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%s\nbecomes %q, want %q", command, got, want)
		}
		if !ok {
			continue
		}
		for _, tree := range Read(got, "/w").Trees {
			if tree.Whole || tree.Path != "/w/a b.go" && tree.Path != "/w/src/c" {
				t.Errorf("%s\nbecomes %q, which takes %+v", command, got, tree)
			}
		}
	}
}
