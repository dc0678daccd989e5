package sequence

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
)

func parse(t testing.TB, text string) Pattern {
	t.Helper()
	p, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if p.String() != text {
		t.Fatalf("pattern %q is written as %q", text, p)
	}
	return p
}

func TestPattern(t *testing.T) {
	for _, c := range []struct{ pattern, file, want string }{
		{"{n:4}_{name}.sql", "0042_users.sql", "42 users"},
		{"{n:4}_{name}.sql", "0042_users.up.sql", "42 users.up"},
		{"{n:4}_{name}.sql", "10000_users.sql", "10000 users"},
		{"{n:4}_{name}.sql", "042_users.sql", ""},
		{"{n:4}_{name}.sql", "00042_users.sql", ""},
		{"{n:4}_{name}.sql", "0042_users.py", ""},
		{"{n:4}_{name}.sql", "0042_.sql", ""},
		{"{n:4}_{name}.sql", "20261126205323_users.sql", ""},
		{"V{n}__{name}.sql", "V12__users.sql", "12 users"},
		{"V{n}__{name}.sql", "12__users.sql", ""},
		{"{n:4}-{name}.md", "0027-use-one-log.md", "27 use-one-log"},
		{"{n}_{name}", "7_x", "7 x"},
		{"{n}_{name}", "07_x", ""},
	} {
		p := parse(t, c.pattern)
		got := ""
		if n, name, ok := p.Match(c.file); ok {
			got = fmt.Sprint(n, " ", name)
			if back := p.Format(n, name); back != c.file {
				t.Errorf("%s: %s is written as %s", c.pattern, c.file, back)
			}
		}
		if got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.pattern, c.file, got, c.want)
		}
	}
	for _, text := range []string{
		"", "{name}.sql", "{n}.sql", "{n:0}_{name}", "{n:8}_{name}", "{n4}_{name}", "{n:4_{name}", "{n}{name}",
		"1{n}_{name}", "{n}1{name}", "{n}_{name}/x", "{n}_{name}{n}", "{n}_{name}_{name}",
	} {
		if p, err := Parse(text); err == nil || !strings.Contains(err.Error(), "write for example") {
			t.Errorf("pattern %q: %+v, %v; want an error with an example", text, p, err)
		}
	}
}

func TestCheck(t *testing.T) {
	rules := []Rule{{Directory: "db/migrations", Pattern: parse(t, "{n:4}_{name}.sql")}}
	target := []string{
		"db/migrations/0040_a.sql", "db/migrations/0042_b.up.sql", "db/migrations/0042_b.down.sql", "db/migrations/x.txt",
		"db/migrations/old/0099_z.sql", "README.md",
	}
	for _, c := range []struct{ added, want, renames string }{
		{"db/migrations/0043_c.sql", "", ""},
		{"db/migrations/0045_c.sql", "", ""},
		{
			"db/migrations/0042_c.sql",
			"db/migrations/0042_c.sql: number 0042 is taken by 0042_b.down.sql; 0043 is free",
			"0042_c.sql>0043_c.sql",
		},
		{
			"db/migrations/0041_c.sql",
			"db/migrations/0041_c.sql: number 0041 is below 0042, the highest on the target; 0043 is free",
			"0041_c.sql>0043_c.sql",
		},
		{"db/migrations/0042_b.test.sql", "", ""}, // belongs to a step that is there
		{"other/0042_c.sql", "", ""},
		{"db/migrations/notes.sql", "", ""},
		{
			"db/migrations/0042_c.up.sql db/migrations/0042_c.down.sql db/migrations/0043_d.sql",
			"db/migrations/0042_c.down.sql: number 0042 is taken by 0042_b.down.sql; 0043 is free",
			"0042_c.down.sql>0043_c.down.sql 0042_c.up.sql>0043_c.up.sql 0043_d.sql>0044_d.sql",
		},
		{
			"db/migrations/0043_c.sql db/migrations/0043_d.sql",
			"db/migrations/0043_d.sql: number 0043 is taken by 0043_c.sql; 0044 is free",
			"0043_d.sql>0044_d.sql",
		},
	} {
		added := strings.Fields(c.added)
		var got, renames []string
		for _, p := range Check(rules, target, added) {
			got = append(got, p.String())
		}
		for _, r := range Renumber(rules, target, added) {
			renames = append(renames, path.Base(r.From)+">"+path.Base(r.To))
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s: %q, want %q", c.added, got, c.want)
		}
		if strings.Join(renames, " ") != c.renames {
			t.Errorf("%s: renames %q, want %q", c.added, renames, c.renames)
		}
	}
	first := Check(rules, nil, []string{"db/migrations/0000_a.sql"})
	if len(first) != 0 {
		t.Errorf("the first file of a sequence: %v", first)
	}
}

// Whatever two submissions add, renumbering leaves no problem, loses no file and overwrites none.
func TestRenumberSolvesEverything(t *testing.T) {
	rules := []Rule{{Directory: ".", Pattern: parse(t, "{n:2}_{name}.sql")}}
	problems := 0
	for seed := range uint64(5000) {
		random := rand.New(rand.NewPCG(seed, 5))
		pick := func(n int, names string) (list []string) {
			for range random.IntN(n) {
				f := fmt.Sprintf("%02d_%c", random.IntN(12), names[random.IntN(len(names))])
				for _, end := range [][]string{{".sql"}, {".up.sql", ".down.sql"}}[random.IntN(2)] {
					if !slices.Contains(list, f+end) {
						list = append(list, f+end)
					}
				}
			}
			return list
		}
		target, added := pick(6, "abc"), pick(6, "cde")
		added = slices.DeleteFunc(added, func(p string) bool { return slices.Contains(target, p) })
		tree := map[string]string{}
		for _, f := range slices.Concat(target, added) {
			tree[f] = f
		}
		count := len(tree)
		problems += len(Check(rules, target, added))
		for _, r := range Renumber(rules, target, added) {
			if tree[r.From] == "" || tree[r.To] != "" {
				t.Fatalf("seed %d: %s cannot be renamed to %s: %v, %v", seed, r.From, r.To, target, added)
			}
			tree[r.To] = tree[r.From]
			delete(tree, r.From)
		}
		var after []string
		for f, was := range tree {
			if slices.Contains(added, was) {
				after = append(after, f)
			} else if f != was {
				t.Fatalf("seed %d: %s of the target was renamed", seed, was)
			}
		}
		if left := Check(rules, target, after); len(left) != 0 || len(tree) != count {
			t.Fatalf("seed %d: %d files of %d, problems %v", seed, len(tree), count, left)
		}
	}
	if problems < 1000 {
		t.Errorf("only %d problems were tried", problems)
	}
}

func TestCommand(t *testing.T) {
	r := Rule{Directory: "m", Pattern: parse(t, "{n:4}_{name}.sql")}
	got := r.Command([]string{"tool", "--to={to}", "{from}", "{directory}", "{n}"}, Rename{"m/0042_a.sql", "m/0043_a.sql"})
	if want := "tool --to=m/0043_a.sql m/0042_a.sql m 0043"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}
