package placement

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestMove follows a namespace through a move, back again, and through one that is taken back.
func TestMove(t *testing.T) {
	d := newDirectory(t, 16)
	home := d.Shard("acme")
	away := (home + 5) % 16

	leaving, m, err := d.Begin("acme", away)
	if want := (Move{Number: 1, Namespace: "acme", From: home, To: away, Step: StepLeaving}); err != nil || m != want {
		t.Fatalf("Begin returns %v, %v, want %v", m, err, want)
	}
	if leaving.Version != 2 || leaving.Shard("acme") != home || len(d.Moves) != 0 {
		t.Errorf("after Begin the directory is %+v, and was %+v", leaving, d)
	}
	if same, again, err := leaving.Begin("acme", away); err != nil || again != m || same.Version != 2 {
		t.Errorf("Begin again returns %v, %v and version %d", again, err, same.Version)
	}
	if _, err := leaving.Finish(1); !errors.Is(err, ErrNotSwitched) {
		t.Errorf("Finish before Switch returns %v", err)
	}
	if _, _, err := leaving.Begin("acme", (away+1)%16); !errors.Is(err, ErrMoving) {
		t.Errorf("a second move returns %v", err)
	}

	if _, err := leaving.Switch(1); !errors.Is(err, ErrNotClosed) {
		t.Errorf("Switch before Close returns %v", err)
	}
	closed := check(t)(leaving.Close(1))
	if closed.Moves[0].Step != StepClosed || closed.Shard("acme") != home || closed.Version != 3 {
		t.Errorf("after Close the directory is %+v", closed)
	}
	if same := check(t)(closed.Close(1)); same.Version != 3 {
		t.Errorf("Close again returns version %d", same.Version)
	}
	arrived := check(t)(closed.Switch(1))
	if arrived.Version != 4 || arrived.Shard("acme") != away || leaving.Shard("acme") != home {
		t.Errorf("after Switch the directory is %+v, and was %+v", arrived, leaving)
	}
	if same := check(t)(arrived.Switch(1)); same.Version != 4 {
		t.Errorf("Switch again returns version %d", same.Version)
	}
	if _, err := arrived.TakeBack(1); !errors.Is(err, ErrSwitched) {
		t.Errorf("TakeBack after Switch returns %v", err)
	}

	moved := check(t)(arrived.Finish(1))
	if _, moving := moved.Moving("acme"); moving || moved.Version != 5 || moved.Shard("acme") != away {
		t.Errorf("after Finish the directory is %+v", moved)
	}
	if _, err := moved.Finish(1); !errors.Is(err, ErrUnknownMove) {
		t.Errorf("Finish again returns %v", err)
	}
	if _, _, err := moved.Begin("acme", away); !errors.Is(err, ErrSameShard) {
		t.Errorf("a move to its own shard returns %v", err)
	}

	back, m, err := moved.Begin("acme", home)
	if err != nil || m.Number != 2 || m.From != away {
		t.Fatalf("Begin returns %v, %v", m, err)
	}
	if taken := check(t)(back.TakeBack(2)); taken.Shard("acme") != away || len(taken.Moves) != 0 || taken.LastMove != 2 {
		t.Errorf("after TakeBack the directory is %+v", taken)
	}
	home2 := check(t)(check(t)(check(t)(back.Close(2)).Switch(2)).Finish(2))
	if home2.Shard("acme") != home || len(home2.Exceptions) != 0 {
		t.Errorf("back in the shard of its hash the directory is %+v", home2)
	}
}

// TestRandomMoves carries out random changes. Each is one version, leaves all earlier versions as
// they were, survives encoding, and moves nothing but what Switch moves.
func TestRandomMoves(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		d := newDirectory(t, 1+r.IntN(20))
		names := make([]string, 2+r.IntN(2*MaxExceptions))
		shards := make([]int, len(names))
		for i := range names {
			names[i] = fmt.Sprintf("tenant-%d", i)
			shards[i] = d.Shard(names[i])
		}
		for range 300 {
			before := d.Encode()
			next, i, err := randomChange(r, d, names)
			if !bytes.Equal(before, d.Encode()) {
				t.Fatalf("seed %d: a change of\n%s\nchanged it to\n%s", seed, before, d.Encode())
			}
			if err == nil && i >= 0 {
				shards[i] = next.Shard(names[i])
			}
			decoded, err2 := DecodeDirectory(next.Encode())
			if err2 != nil || !bytes.Equal(decoded.Encode(), next.Encode()) {
				t.Fatalf("seed %d: %v:\n%s\n%s", seed, err2, next.Encode(), decoded.Encode())
			}
			versions := uint64(1)
			if bytes.Equal(before, next.Encode()) {
				versions = 0
			}
			if next.Version != d.Version+versions {
				t.Fatalf("seed %d: version %d after %d:\n%s\n%s", seed, next.Version, d.Version, before, next.Encode())
			}
			for i, name := range names {
				if next.Shard(name) != shards[i] {
					t.Fatalf("seed %d: %s is in shard %d, want %d:\n%s", seed, name, next.Shard(name), shards[i], next.Encode())
				}
			}
			d = next
		}
	}
}

// randomChange returns the next directory, and which of the names it moved, or -1.
func randomChange(r *rand.Rand, d Directory, names []string) (next Directory, moved int, err error) {
	number := d.LastMove - uint64(r.IntN(MaxMoves))%max(d.LastMove, 1)
	if len(d.Moves) > 0 {
		number = d.Moves[r.IntN(len(d.Moves))].Number
	}
	switch r.IntN(6) {
	case 0:
		next, err = d.Finish(number)
	case 1:
		next, err = d.TakeBack(number)
	case 2, 3:
		moved := -1
		if i := slices.IndexFunc(d.Moves, func(m Move) bool { return m.Number == number }); i >= 0 {
			moved = slices.Index(names, d.Moves[i].Namespace)
		}
		next, err = d.Switch(number)
		return next, moved, err
	default:
		next, _, err = d.Begin(names[r.IntN(len(names))], r.IntN(d.Shards+1))
	}
	return next, -1, err
}

// TestFullDirectory begins as many moves as fit: however they end, the directory stays valid.
func TestFullDirectory(t *testing.T) {
	d := newDirectory(t, 2)
	for i := 0; ; i++ {
		name := fmt.Sprintf("tenant-%d", i)
		next, m, err := d.Begin(name, 1-d.Shard(name))
		if errors.Is(err, ErrDirectoryFull) {
			break
		}
		d = check(t)(next, err)
		if i%MaxMoves != 0 {
			d = check(t)(check(t)(check(t)(d.Close(m.Number)).Switch(m.Number)).Finish(m.Number))
		}
	}
	if n := len(d.Exceptions) + len(d.Moves); n != MaxExceptions {
		t.Errorf("%d namespaces are or will be exceptions, want %d", n, MaxExceptions)
	}
	for _, m := range slices.Clone(d.Moves) {
		d = check(t)(check(t)(check(t)(d.Close(m.Number)).Switch(m.Number)).Finish(m.Number))
	}
	if _, _, err := d.Begin("tenant-1", Shard("tenant-1", 2)); err != nil {
		t.Errorf("a move back from a full directory returns %v", err)
	}

	d = newDirectory(t, 2)
	for i := range MaxMoves {
		name := fmt.Sprintf("tenant-%d", i)
		next, _, err := d.Begin(name, 1-d.Shard(name))
		d = check(t)(next, err)
	}
	if _, _, err := d.Begin("acme", 1-d.Shard("acme")); !errors.Is(err, ErrDirectoryFull) {
		t.Errorf("move %d returns %v", MaxMoves+1, err)
	}
}

// TestInvalidDirectories decodes what no server wrote.
func TestInvalidDirectories(t *testing.T) {
	const (
		move    = `"number":1,"namespace":"acme","from":9,"to":3`
		leaving = `{` + move + `,"step":"leaving"}`
	)
	if s := Shard("acme", 16); s != 9 {
		t.Fatalf("acme is in shard %d, and the cases expect 9", s)
	}
	for _, c := range []struct{ text, want string }{
		{``, "cannot be read"},
		{`[]`, "cannot be read"},
		{`{"version":1,"shards":16,"stores":{}}`, `unknown field "stores"`},
		{`{"version":1,"shards":16}{}`, "bytes behind its end"},
		{`{"version":1,"shards":16}]`, "bytes behind its end"},
		{`{"shards":16}`, "version is 0"},
		{`{"version":1}`, "has 0 shards"},
		{`{"version":1,"shards":-1}`, "has -1 shards"},
		{`{"version":1,"shards":1025}`, "has 1025 shards, and not 1 to 1024"},
		{`{"version":1,"shards":1.5}`, "cannot be read"},
		{`{"version":1,"shards":16,"exceptions":{"acme":16}}`, `"acme" is in shard 16, and there are 16`},
		{`{"version":1,"shards":16,"exceptions":{"acme":-1}}`, `"acme" is in shard -1`},
		{`{"version":1,"shards":16,"exceptions":{"acme":9}}`, "in the shard 9 of its hash"},
		{`{"version":1,"shards":16,"exceptions":{"":3}}`, `"" is not the name of a namespace`},
		{`{"version":1,"shards":16,"exceptions":{"` + strings.Repeat("x", 129) + `":3}}`, "is not the name of a namespace"},
		{`{"version":1,"shards":16,"moves":[` + leaving + `]}`, "move 1 is out of order, and the last was 0"},
		{`{"version":1,"shards":16,"last_move":2,"moves":[` + leaving + `,` + leaving + `]}`, "move 1 is out of order"},
		{`{"version":1,"shards":3,"last_move":1,"moves":[` + leaving + `]}`, "from shard 9 to 3, and there are 3"},
		{`{"version":1,"shards":16,"last_move":1,"moves":[{` + move + `,"step":"flying"}]}`, `move 1 has step "flying"`},
		{`{"version":1,"shards":16,"last_move":1,"moves":[{` + move + `}]}`, `move 1 has step ""`},
		{
			`{"version":1,"shards":16,"last_move":1,"moves":[{` + move + `,"step":"arrived"}]}`,
			`move 1 is arrived, and namespace "acme" is in shard 9`,
		},
		{
			`{"version":1,"shards":16,"last_move":1,"exceptions":{"acme":3},"moves":[` + leaving + `]}`,
			`move 1 is leaving, and namespace "acme" is in shard 3`,
		},
		{
			`{"version":1,"shards":16,"last_move":2,"moves":[` + leaving + `,` + strings.Replace(leaving, "1", "2", 1) + `]}`,
			`"acme" has two moves`,
		},
		{`{"version":1,"shards":16,"last_move":1,"moves":[` + strings.Replace(leaving, "acme", "", 1) + `]}`, "not the name"},
	} {
		if d, err := DecodeDirectory([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) || d.Shards != 0 {
			t.Errorf("%s is decoded as %+v, %v, want an error with %q", c.text, d, err, c.want)
		}
	}
}

// TestDirectoryBytes has what other versions read and write.
func TestDirectoryBytes(t *testing.T) {
	const text = `{"version":5,"shards":16,"last_move":3,"exceptions":{"acme":3,"globex":2},"moves":[` +
		`{"number":2,"namespace":"acme","from":9,"to":3,"step":"arrived"},` +
		`{"number":3,"namespace":"default","from":7,"to":0,"step":"leaving"}]}`
	d := check(t)(DecodeDirectory([]byte(text)))
	if got := string(d.Encode()); got != text {
		t.Errorf("a directory is encoded as\n%s, want\n%s", got, text)
	}
}

func newDirectory(t *testing.T, shards int) Directory {
	t.Helper()
	return check(t)(NewDirectory(shards))
}

// check fails the test if there is an error, or if the directory is invalid.
func check(t *testing.T) func(Directory, error) Directory {
	t.Helper()
	return func(d Directory, err error) Directory {
		t.Helper()
		if err == nil {
			err = d.Validate()
		}
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}
