package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/interlockdev/interlock/guard/postgres"
	"github.com/interlockdev/interlock/internal/test/postgrestest"
)

// Writers with fences old and new go at a small tree of keys at once, at all isolation levels.
// Each key's row has the list of the fences that wrote it, in the order of their commits. The
// invariants of all accepted writes:
//
//   - the fences of a row never go down;
//   - nothing is added under a lower fence to what a committed transaction has read under its
//     own, so no reader decides on what a late writer then changes;
//   - transactions that enter one key each never deadlock.
//
// All the while fences are made idle, and pruned.
func TestFencesNeverGoDown(t *testing.T) {
	keys := []string{"a", "a/b", "a/b/c", "a/b/d", "a/e", "f"}
	dsn := postgrestest.Start(t).Database(t)
	owner := connect(t, dsn)
	must(t, owner, postgres.Schema)
	must(t, owner, "CREATE TABLE cell (key text PRIMARY KEY, fences bigint[] NOT NULL DEFAULT '{}')")
	for _, key := range keys {
		must(t, owner, "INSERT INTO cell VALUES ('"+key+"')")
	}
	must(t, owner, postgres.Attach("cell", "{key...}", "default"))

	pruned := make(chan int64, 1)
	finished := make(chan struct{})
	pruner := connect(t, dsn)
	go func() {
		var total int64
		defer func() { pruned <- total }()
		for round := 0; ; round++ {
			var n int64
			key := keys[round%len(keys)]
			if _, err := pruner.Exec(
				t.Context(), "UPDATE interlock.fences SET entered_at = entered_at - interval '1 hour' WHERE key = $1", key,
			); err != nil {
				t.Error(err)
				return
			}
			if err := pruner.QueryRow(t.Context(), "SELECT interlock.prune('1 minute')").Scan(&n); err != nil {
				t.Error(err)
				return
			}
			total += n
			select {
			case <-finished:
				return
			default:
			}
		}
	}()

	const writers, rounds = 6, 150
	var newest atomic.Int64
	outcomes := make([]map[string]int, writers)
	reads := make([][]read, writers)
	var group sync.WaitGroup
	for w := range writers {
		conn := connect(t, dsn)
		random := rand.New(rand.NewPCG(1, uint64(w)))
		outcomes[w] = map[string]int{}
		group.Go(func() {
			for range rounds {
				key := keys[random.IntN(len(keys))]
				fence := max(1, newest.Add(random.Int64N(3))-random.Int64N(8))
				level := []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable}[random.IntN(3)]
				var seen []read
				err := pgx.BeginTxFunc(t.Context(), conn, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) (err error) {
					seen, err = visit(t, tx, random, keys, key, fence)
					return err
				})
				outcomes[w][state(err)]++
				if err == nil {
					reads[w] = append(reads[w], seen...)
				} else if state(err) == "" {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	close(finished)
	if n := <-pruned; n < 10 {
		t.Errorf("%d fences were pruned: too few to show anything", n)
	}

	total := map[string]int{}
	for _, o := range outcomes {
		for code, n := range o {
			total[code] += n
		}
	}
	t.Logf("outcomes by SQLSTATE: %v", total)
	expected := []string{
		"", postgres.StaleFence,
		postgres.Malformed, // a key with others below it, under an isolation level that does not do
		"40001",            // the snapshot is too old
		"57014",            // given up
	}
	for code, n := range total {
		if !slices.Contains(expected, code) {
			t.Errorf("%d transactions ended with %s", n, code)
		}
	}
	if total[""] < 50 || total[postgres.StaleFence] < 50 {
		t.Errorf("too few were accepted or refused to show anything: %v", total)
	}
	cells := contents(t, owner)
	for key, fences := range cells {
		if !slices.IsSorted(fences) {
			t.Errorf("the fences of %s go down: %v", key, fences)
		}
	}
	for _, r := range slices.Concat(reads...) {
		for _, later := range cells[r.key][r.length:] {
			if later < r.fence {
				t.Errorf(
					"%s was read under fence %d when it had %d entries, and then written under %d: %v", r.key, r.fence, r.length,
					later, cells[r.key],
				)
			}
		}
	}
}

// read is how many entries a row had when it was read under a fence.
type read struct {
	key    string
	fence  int64
	length int
}

// visit enters a key, reads documents at or below it, and writes some of them. Now and then it
// takes its snapshot before it enters, or rolls back in the end.
func visit(
	t *testing.T, tx pgx.Tx, random *rand.Rand, keys []string, key string, fence int64,
) (seen []read, err error) {
	if random.IntN(3) == 0 {
		if _, err := tx.Exec(t.Context(), "SELECT count(*) FROM cell"); err != nil {
			return nil, err
		}
	}
	if _, err := tx.Exec(t.Context(), postgres.Enter, "default", key, fence); err != nil {
		return nil, err
	}
	below := slices.DeleteFunc(
		slices.Clone(keys), func(k string) bool { return k != key && !strings.HasPrefix(k, key+"/") },
	)
	for _, k := range below {
		r := read{key: k, fence: fence}
		if err := tx.QueryRow(
			t.Context(), "SELECT cardinality(fences) FROM cell WHERE key = $1", k,
		).Scan(&r.length); err != nil {
			return nil, err
		}
		seen = append(seen, r)
	}
	for _, k := range below {
		if random.IntN(2) == 0 {
			continue
		}
		if _, err := tx.Exec(
			t.Context(), "UPDATE cell SET fences = fences || $1::bigint WHERE key = $2", fence, k,
		); err != nil {
			return nil, err
		}
	}
	if random.IntN(10) == 0 {
		_, err = tx.Exec(t.Context(), "DO $$ BEGIN RAISE query_canceled; END $$")
	}
	return seen, err
}

func contents(t *testing.T, conn *pgx.Conn) map[string][]int64 {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT key, fences FROM cell")
	if err != nil {
		t.Fatal(err)
	}
	cells := map[string][]int64{}
	var key string
	var fences []int64
	if _, err := pgx.ForEachRow(rows, []any{&key, &fences}, func() error {
		if cells[key] != nil {
			return fmt.Errorf("%s is there twice", key)
		}
		cells[key] = slices.Clone(fences)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return cells
}
