package engine

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// What is in a table is found, and nothing else, while it grows and shrinks.
func TestTable(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s := &space{}
	s.season([16]byte{3, 9: 4})
	known := map[string]*node{}
	for range 60_000 {
		key := "key:" + strconv.Itoa(random.IntN(5000))
		switch n := s.nodeAt(key); {
		case n != known[key]:
			t.Fatalf("key %s is %p, want %p", key, n, known[key])
		case n == nil:
			n = &node{key: key, hashed: s.salt.hash(key)}
			s.nodes.enter(n)
			known[key] = n
		case random.IntN(3) > 0:
			s.nodes.leave(n)
			delete(known, key)
		}
	}
	all := s.nodes.all()
	for _, n := range all {
		if known[n.key] != n {
			t.Fatalf("%s is in the table", n.key)
		}
	}
	if len(all) != len(known) || s.nodes.n != len(known) {
		t.Fatalf("the table has %d members and says %d, want %d", len(all), s.nodes.n, len(known))
	}
}

// Chains stay short, whatever the keys have in common, and each namespace has other
// hashes.
func TestHash(t *testing.T) {
	salts := []salt{{}, {0, 1}, saltOf([16]byte{15: 1}), saltOf([16]byte{1, 2, 3, 8: 9})}
	for _, shape := range []func(i int) string{
		strconv.Itoa,
		func(i int) string { return "account:" + strconv.Itoa(i) },
		func(i int) string { return "repo:web/src/components/" + strconv.Itoa(i) + "/index.ts" },
		func(i int) string { return string(slices.Repeat([]byte{'a'}, i%500)) + strconv.Itoa(i/500) },
	} {
		for _, salt := range salts {
			const keys = 1 << 14
			var chains [keys]int
			longest, same := 0, 0
			for i := range keys {
				h := salt.hash(shape(i))
				c := &chains[h%keys]
				*c++
				longest = max(longest, *c)
				if h == saltOf([16]byte{7, 8: 7}).hash(shape(i)) {
					same++
				}
			}
			if longest > 10 || same > 1 {
				t.Errorf("keys like %s, salt %v: a chain of %d, and %d hashes as with another", shape(4711), salt, longest, same)
			}
		}
	}
}
