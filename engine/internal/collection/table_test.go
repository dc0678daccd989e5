package collection

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

type tableMember struct {
	key  string
	hash uint32
	next *tableMember
}

func (m *tableMember) Hash() uint32             { return m.hash }
func (m *tableMember) TableNext() **tableMember { return &m.next }

// TestTable adds and removes members while the table grows: what is in it is found, and
// nothing else.
func TestTable(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	salt := NewSalt([16]byte{3, 9: 4})
	known := map[string]*tableMember{}
	var table Table[*tableMember]
	for range 60_000 {
		key := "key:" + strconv.Itoa(random.IntN(5000))
		found := table.First(salt.Hash(key))
		for found != nil && found.key != key {
			found = *found.TableNext()
		}
		switch {
		case found != known[key]:
			t.Fatalf("key %s is %p, want %p", key, found, known[key])
		case found == nil:
			m := &tableMember{key: key, hash: salt.Hash(key)}
			table.Add(m)
			known[key] = m
		case random.IntN(3) > 0:
			table.Remove(found)
			delete(known, key)
		}
	}
	all := table.All()
	for _, m := range all {
		if known[m.key] != m {
			t.Fatalf("%s is in the table", m.key)
		}
	}
	if len(all) != len(known) || table.Len() != len(known) {
		t.Fatalf("the table has %d members and Len %d, want %d", len(all), table.Len(), len(known))
	}
}

// TestHash counts collisions: chains stay short for keys with any common parts, and each
// namespace has other hashes.
func TestHash(t *testing.T) {
	salts := []Salt{{}, {0, 1}, NewSalt([16]byte{15: 1}), NewSalt([16]byte{1, 2, 3, 8: 9})}
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
				h := salt.Hash(shape(i))
				c := &chains[h%keys]
				*c++
				longest = max(longest, *c)
				if h == NewSalt([16]byte{7, 8: 7}).Hash(shape(i)) {
					same++
				}
			}
			if longest > 10 || same > 1 {
				t.Errorf("keys like %s, salt %v: a chain of %d, and %d hashes as with another", shape(4711), salt, longest, same)
			}
		}
	}
}
