package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestMemoryIsLow(t *testing.T) {
	live, collections := uint64(0), 0
	m := &memory{most: 1000, live: func() uint64 { return live }, clean: func() { collections++ }}
	now := time.Unix(0, 0)
	for _, step := range []struct {
		live uint64
		low  bool
	}{{400, false}, {500, false}, {501, true}, {480, true}, {437, false}, {480, false}, {900, true}, {0, false}} {
		live, now = step.live, now.Add(memoryEvery)
		if m.look(now); m.low.Load() != step.low {
			t.Errorf("with %d of %d in use: low %v", live, m.most, m.low.Load())
		}
	}
	live, collections = 900, 0
	for range int(10 * cleanEvery / memoryEvery) {
		now = now.Add(memoryEvery)
		m.look(now)
	}
	if collections < 9 || collections > 11 {
		t.Errorf("%d collections in the time of 10", collections)
	}
}

func TestMemoryOfGroups(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self := filepath.Join(root, "self")
	for _, tt := range []struct {
		self string
		want uint64
	}{
		{"0::/a/b\n", 2 << 20},
		{"0::/a\n", 4 << 20},
		{"0::/\n", 0},
		{"0::/gone/b\n", 0},
		{"12:memory:/old\n0::/\n", 3 << 20},
		{"nonsense\n", 0},
	} {
		write("self", tt.self)
		write("fs/memory.max", "max\n")
		write("fs/a/memory.max", fmt.Sprintln(4<<20))
		write("fs/a/b/memory.max", fmt.Sprintln(2<<20))
		write("fs/memory/memory.limit_in_bytes", "9223372036854771712\n")
		write("fs/memory/old/memory.limit_in_bytes", fmt.Sprintln(3<<20))
		if got := groupMemory(self, filepath.Join(root, "fs")); got != tt.want {
			t.Errorf("%q: %d bytes, want %d", tt.self, got, tt.want)
		}
	}
	write("meminfo", "MemFree: 12 kB\nMemTotal:       2048 kB\n")
	if got := machineMemory(filepath.Join(root, "meminfo")); got != 2<<20 {
		t.Errorf("the machine has %d bytes, want %d", got, 2<<20)
	}
}
