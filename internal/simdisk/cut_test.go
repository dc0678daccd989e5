package simdisk

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// left collects the states that power cuts of a kind leave, as described by look.
func left(d *Disk, l Loss, look func(*Disk) string) []string {
	seen := map[string]bool{}
	for seed := range uint64(2000) {
		seen[look(d.PowerCut(l, rand.New(rand.NewPCG(seed, 0))))] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

func create(t *testing.T, d *Disk, name string) *handle {
	t.Helper()
	f, err := d.Open(name, os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	return f.(*handle)
}

// Any sectors of writes that were not synced are left, the older of two at the same
// place, too; and a file has any of the sizes that it had meanwhile.
func TestReorderedContent(t *testing.T) {
	d := New()
	f := create(t, d, "f")
	f.Allocate(1536)
	f.Sync()
	d.Sync()
	f.WriteAt(bytes.Repeat([]byte("a"), 1024), 0)
	f.WriteAt(bytes.Repeat([]byte("b"), 1024), 512)
	got := left(d, Reordered, func(d *Disk) string {
		data := d.Files["f"].Data
		return strings.ReplaceAll(string([]byte{data[0], data[512], data[1024]}), "\x00", "-")
	})
	want := []string{"---", "--b", "-a-", "-ab", "-b-", "-bb", "a--", "a-b", "aa-", "aab", "ab-", "abb"}
	if !slices.Equal(got, want) {
		t.Errorf("left is one of %q, want %q", got, want)
	}
}

func TestReorderedSize(t *testing.T) {
	d := New()
	f := create(t, d, "f")
	d.Sync()
	f.Allocate(1024)
	f.WriteAt([]byte("b"), 1024)
	got := left(d, Reordered, func(d *Disk) string {
		data := d.Files["f"].Data
		return strings.Repeat("0", len(data)/512) + strings.Trim(string(data), "\x00")
	})
	if want := []string{"", "00", "00b"}; !slices.Equal(got, want) {
		t.Errorf("left is one of %q, want %q", got, want)
	}
}

// Of names that were not synced any are left; of a rename the new one, the old one,
// both, or none.
func TestReorderedNames(t *testing.T) {
	names := func(d *Disk) string { return strings.Join(slices.Sorted(maps.Keys(d.Files)), " ") }
	d := New()
	create(t, d, "a")
	d.Sync()
	d.Rename("a", "b")
	create(t, d, "c")
	if got, want := left(
		d, Reordered, names,
	), []string{"", "a", "a b", "a b c", "a c", "b", "b c", "c"}; !slices.Equal(got, want) {
		t.Errorf("left is one of %q, want %q", got, want)
	}
	if got, want := left(d, Torn, names), []string{"a", "a c", "b", "b c"}; !slices.Equal(got, want) {
		t.Errorf("torn: left is one of %q, want %q", got, want)
	}
	if got, want := left(d, Prefix, names), []string{"a", "b", "b c"}; !slices.Equal(got, want) {
		t.Errorf("prefix: left is one of %q, want %q", got, want)
	}
	d.Sync()
	if got := left(d, Reordered, names); !slices.Equal(got, []string{"b c"}) {
		t.Errorf("after a sync left is one of %q", got)
	}
}

// Synced data stays, and a copy is independent.
func TestFork(t *testing.T) {
	d := New()
	f := create(t, d, "f")
	f.WriteAt([]byte("old"), 0)
	f.Sync()
	d.Sync()
	f.WriteAt([]byte("new"), 0)
	other := d.Fork()
	f.Sync()
	for which, c := range map[string]struct {
		disk *Disk
		want string
	}{"the disk": {d, "new"}, "its copy": {other, "old"}} {
		if got := string(c.disk.PowerCut(LoseAll, rand.New(rand.NewPCG(1, 1))).Files["f"].Data); got != c.want {
			t.Errorf("%s has %q, want %q", which, got, c.want)
		}
	}
	if got := string(other.Files["f"].Data); got != "new" {
		t.Errorf("programs see %q in the copy", got)
	}
}
