package merger

import (
	"strings"
	"testing"
)

// Two submissions that were made at one time take one version: the second comes back, whatever the layout.
func TestVersionsInAllLayouts(t *testing.T) {
	alembic := func(id, before string) string { return "revision = '" + id + "'\ndown_revision = " + before + "\n" }
	for _, c := range []struct {
		name                string
		base, first, second files
		want                string
	}{
		{
			"folders of Prisma",
			files{"prisma/migrations/20260101120000_a/migration.sql": "a\n"},
			files{"prisma/migrations/20260723120000_x/migration.sql": "x\n"},
			files{"prisma/migrations/20260723120000_y/migration.sql": "y\n"},
			"20260723120000 is taken by 20260723120000_x",
		},
		{
			"heads of Alembic",
			files{"alembic/versions/a1b2_a.py": alembic("a1b2", "None")},
			files{"alembic/versions/c3d4_x.py": alembic("c3d4", "'a1b2'")},
			files{"alembic/versions/e5f6_y.py": alembic("e5f6", "'a1b2'")},
			"e5f6 is a second head beside c3d4_x.py",
		},
		{
			"an old duplicate",
			files{"migrations/0001_a.sql": "a", "migrations/0001_b.sql": "b", "migrations/0002_c.sql": "c"},
			files{"migrations/0003_x.sql": "x\n"},
			files{"migrations/0003_y.ts": "y\n"},
			"0003 is taken by 0003_x.sql",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.work(good)
			base := r.commit(r.begin, c.base)
			r.run("update-ref", "refs/heads/main", base)
			first := r.submit(Submission{ID: "first", Head: r.commit(base, c.first)})
			second := r.submit(Submission{ID: "second", Head: r.commit(base, c.second)})
			r.start(r.config("merger"))
			if o := r.result(first); o.Code != Landed {
				t.Fatalf("the first: %+v", o)
			}
			if o := r.result(second); o.Reason != WhySequence || !strings.Contains(o.Message, c.want) {
				t.Errorf("the second: %+v, want %q", o, c.want)
			}
		})
	}
}
