package sequence

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

type layout struct{ tool, folder, there, first, second, later string }

func layouts(t *testing.T) (list []layout) {
	t.Helper()
	text, err := os.ReadFile("testdata/layouts.txt")
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(text), "\n\n") {
		if strings.HasPrefix(block, "#") {
			continue
		}
		lines := strings.Split(strings.TrimSpace(block), "\n")
		folder, there, _ := strings.Cut(strings.TrimSpace(lines[1]), ": ")
		next := strings.Split(lines[2], " | ")
		list = append(list, layout{lines[0], folder, there, next[0], next[1], next[2]})
	}
	if len(list) < 30 {
		t.Fatalf("%d layouts", len(list))
	}
	return list
}

func in(folder, names string) (list []string) {
	for _, name := range strings.Fields(names) {
		list = append(list, folder+"/"+name)
	}
	return list
}

func TestLayouts(t *testing.T) {
	for _, c := range layouts(t) {
		there, first, second := in(c.folder, c.there), in(c.folder, c.first), in(c.folder, c.second)
		check := func(target []string, added ...string) []Problem {
			return Guard{}.Check(c.folder, target, slices.Concat(target, added))
		}
		if got := check(there, first...); len(got) != 0 {
			t.Errorf("%s: the first one: %v", c.tool, got)
		}
		landed := slices.Concat(there, first)
		got := check(landed, second...)
		if len(got) != 1 || !slices.Contains(first, got[0].TakenBy) || got[0].Free == got[0].Number {
			t.Errorf("%s: the second one: %+v", c.tool, got)
			continue
		}
		if got := check(landed, in(c.folder, c.later)...); len(got) != 0 {
			t.Errorf("%s: a later version: %v", c.tool, got)
		}
		// The free version is free.
		free := parseName(t, got[0].Free, second[0])
		if again := check(landed, free); len(again) != 0 {
			t.Errorf("%s: the free version %s: %v", c.tool, free, again)
		}
		// A rename of the last one is no second version, and what belongs to a step of the target neither.
		if got := (Guard{}).Check(c.folder, landed, slices.Concat(there, second)); len(got) != 0 {
			t.Errorf("%s: renamed: %v", c.tool, got)
		}
		found := Guard{}.Survey(there)
		if !slices.ContainsFunc(found, func(f Folder) bool { return f.Path == c.folder && f.Guarded }) {
			t.Errorf("%s: the survey finds %+v", c.tool, found)
		}
	}
}

// parseName is a path with another version.
func parseName(t *testing.T, free, of string) string {
	t.Helper()
	folder, name, _ := cutLast(of, "/")
	v, ok := parseVersion(name)
	if !ok {
		t.Fatalf("%s has no version", of)
	}
	return folder + "/" + strings.Replace(name, v.text, free, 1)
}

func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	return s[:max(i, 0)], s[i+1:], i >= 0
}

func TestGuard(t *testing.T) {
	for _, c := range []struct{ folder, there, added, want string }{
		{"m/migrations", "0040_a.sql 0042_b.up.sql 0042_b.down.sql x.txt", "0043_c.sql", ""},
		{"migrations", "0040_a.sql 0042_b.sql", "0045_c.sql", ""},
		{
			"migrations", "0040_a.sql 0042_b.sql", "0042_c.sql",
			"migrations/0042_c.sql: number 0042 is taken by 0042_b.sql; 0043 is free",
		},
		{
			"migrations", "0040_a.sql 0042_b.sql", "0041_c.sql",
			"migrations/0041_c.sql: number 0041 is below 0042, the highest on the target; 0043 is free",
		},
		{"migrations", "0042_b.up.sql 0041_a.sql", "0042_b.test.sql", ""}, // belongs to a step that is there
		{"migrations", "0041_a.sql 0042_b.sql", "notes.sql", ""},
		{
			"migrations", "0001_a.sql 0002_b.sql", "0003_c.sql 0003_d.sql",
			"migrations/0003_d.sql: number 0003 is taken by 0003_c.sql; 0004 is free",
		},
		{"migrations", "", "0001_a.sql 0001_b.sql", ""}, // no file tells what the numbers are
		{"src", "0001_a.sql 0002_b.sql", "0002_c.sql", ""},
		{"changelog", "50.bugfix.rst 52.feature.rst", "50.feature.rst 49.bugfix.rst", ""}, // issues
		{"migrations", "2024_a.sql 2025_b.sql", "2025_c.sql", ""},                         // years
		{"docs/adr", "2026-01-01-a.md 2026-01-02-b.md", "2026-01-02-c.md", ""},            // days
		{"migrations", "1_2_0.sql 1_3_0.sql 1_4_0.sql", "1_5_0.sql", ""},                  // versions
		{
			"migrations", "20260101120000_a.rb", "20260101120000_b.rb",
			"migrations/20260101120000_b.rb: number 20260101120000 is taken by 20260101120000_a.rb; " +
				"make it anew with a later one, such as 20260101120001",
		},
	} {
		target := in(c.folder, c.there)
		var got []string
		for _, p := range (Guard{}).Check(c.folder, target, slices.Concat(target, in(c.folder, c.added))) {
			got = append(got, p.String())
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s + %s: %q, want %q", c.there, c.added, got, c.want)
		}
	}
	target := in("src", "0001_a.sql 0002_b.sql")
	now := slices.Concat(target, in("src", "0002_c.sql"))
	if got := (Guard{Folders: []string{"src"}}).Check("src", target, now); len(got) != 1 {
		t.Errorf("a named folder: %v", got)
	}
	target, now = in("migrations", "0001_a.sql"), in("migrations", "0001_a.sql 0001_b.sql")
	if got := (Guard{Except: []string{"migrations"}}).Check("migrations", target, now); len(got) != 0 {
		t.Errorf("an excepted folder: %v", got)
	}
}

func TestSurvey(t *testing.T) {
	paths := slices.Concat(
		in("db/migrations", "0001_a.sql 0002_b.sql"), in("db/patches", "001_a.sql 002_b.sql 003_c.sql"),
		in("prisma/migrations/20260101120000_a", "migration.sql"), in("migrations", "2024_a.sql 2025_b.sql"),
		in("src", "a.go b.go 1_x.go"), []string{"README.md"},
	)
	var got []string
	for _, f := range (Guard{}).Survey(paths) {
		got = append(got, fmt.Sprint(f.Guarded, " ", f))
	}
	want := []string{
		`true "db/migrations" (2, such as "0002_b.sql")`,
		`false "db/patches" (3, such as "003_c.sql"): its name is not a usual one`,
		`false "migrations" (2, such as "2025_b.sql"): its numbers look like years`,
		`true "prisma/migrations" (1, such as "20260101120000_a")`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func alembic(id, before string) string {
	return fmt.Sprintf("from alembic import op\n\nrevision: str = '%s'\ndown_revision = %s\n", id, before)
}

func django(dependencies string) string {
	return "class Migration(migrations.Migration):\n\n    dependencies = [\n        " + dependencies +
		",\n    ]\n    operations = []\n"
}

func TestHeads(t *testing.T) {
	chain := map[string]string{"v/a1_x.py": alembic("a1", "None"), "v/b2_x.py": alembic("b2", `"a1"`)}
	app := map[string]string{
		"shop/migrations/0001_initial.py": django(`("auth", "0001_initial")`),
		"shop/migrations/0002_b.py":       django(`('shop', '0001_initial'), ('auth', '0002_b')`),
	}
	squashed := strings.Replace(django(`("auth", "0001_initial")`), "    operations",
		"    replaces = [(\"shop\", \"0001_initial\"), (\"shop\", \"0002_b\")]\n    operations", 1)
	two := map[string]string{"v/a.py": alembic("a", "None"), "v/b.py": alembic("b", "None")}
	for _, c := range []struct {
		name   string
		target map[string]string
		added  map[string]string
		want   string
	}{
		{"next", chain, map[string]string{"v/c3.py": alembic("c3", `"b2"`)}, ""},
		{
			"second head", chain,
			map[string]string{"v/c3.py": alembic("c3", `'a1'`)},
			"v/c3.py: c3 is a second head beside b2_x.py; name that one in its down_revision",
		},
		{
			"second root", chain,
			map[string]string{"v/c3.py": alembic("c3", `None`)},
			"v/c3.py: c3 is a second head beside b2_x.py; name that one in its down_revision",
		},
		{
			"two in one", chain,
			map[string]string{"v/c3.py": alembic("c3", `'b2'`), "v/d4.py": alembic("d4", `'b2'`)},
			"v/d4.py: d4 is a second head beside c3.py; name that one in its down_revision",
		},
		{
			"same id", chain,
			map[string]string{"v/c3.py": alembic("b2", `'b2'`)},
			"v/c3.py: revision b2 is taken by b2_x.py; take another id",
		},
		{
			"a merge of two", two,
			map[string]string{"v/c.py": alembic("c", "('a', 'b')")},
			"",
		},
		{
			"old heads", two,
			map[string]string{"v/c.py": alembic("c", "'a'")},
			"",
		},
		{"the first", nil, map[string]string{"v/a.py": alembic("a", "None")}, ""},
		{"other files", chain, map[string]string{"v/x.py": "print()\n"}, ""},
		{"Django, next", app, map[string]string{"shop/migrations/0003_c.py": django(`("shop", "0002_b")`)}, ""},
		{
			"Django, second leaf", app,
			map[string]string{"shop/migrations/0003_c.py": django(`("shop", "0001_initial")`)},
			"shop/migrations/0003_c.py: 0003_c is a second head beside 0002_b.py; name that one in its dependencies",
		},
		{"Django, squashed", app, map[string]string{"shop/migrations/0001_squashed.py": squashed}, ""},
	} {
		now := maps.Clone(c.added)
		maps.Copy(now, c.target)
		var got []string
		for _, p := range Heads(c.target, now) {
			got = append(got, p.String())
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Whatever is there and is added: a problem names a new file, a version that is there twice is a problem if one of both
// is new, and without a new file there is none. A plain comparison of numbers is the expectation.
func TestGuardAgainstNumbers(t *testing.T) {
	returned := 0
	for seed := range uint64(5000) {
		random := rand.New(rand.NewPCG(seed, 7))
		numbers := map[string]int{}
		pick := func(n int, names string) (list []string) {
			for range random.IntN(n) {
				number := random.IntN(14) + 1
				f := fmt.Sprintf("migrations/%04d_%c.sql", number, names[random.IntN(len(names))])
				if numbers[f] == 0 {
					numbers[f] = number
					list = append(list, f)
				}
			}
			return list
		}
		target, added := pick(7, "abc"), pick(4, "xyz")
		counts := map[int]int{}
		for _, f := range target {
			counts[numbers[f]]++
		}
		shared := len(target) - len(counts)
		got := Guard{}.Check("migrations", target, slices.Concat(target, added))
		named := map[string]bool{}
		for _, p := range got {
			named[p.Path] = true
			if !slices.Contains(added, p.Path) {
				t.Fatalf("seed %d: %v names a file of the target", seed, p)
			}
		}
		if len(target) == 0 || shared*2 > len(target) {
			continue
		}
		for _, f := range added {
			if taken := counts[numbers[f]] > 0; taken && !named[f] {
				t.Fatalf("seed %d: %s is taken in %v, and no problem", seed, f, target)
			} else if taken {
				returned++
			}
		}
	}
	if returned < 1000 {
		t.Errorf("only %d duplicates were tried", returned)
	}
}
