package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
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

// One client that asks for more and more is refused before the server has used up its memory,
// and held leases can be renewed and released; then newcomers are welcome again.
func TestMemoryIsBounded(t *testing.T) {
	p := serving(t, nil, "--data-dir", t.TempDir(), "--max-memory", fmt.Sprint(64<<20), "--log-level", "warn")
	address, _ := p.ready()
	post := func(path, body string) (status int, lease, code string) {
		t.Helper()
		res, err := http.Post("http://"+address+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var answer struct {
			Code  string
			Lease struct{ ID string }
		}
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, answer.Lease.ID, answer.Code
	}
	claims := func(i int) string {
		keys := make([]string, 64)
		for j := range keys {
			keys[j] = fmt.Sprintf(`{"key":"%d/%d/c/d/e/f/g/h/i/j/k/l/m/n"}`, i, j)
		}
		return `{"ttl_ms":600000,"claims":[` + strings.Join(keys, ",") + `]}`
	}
	var held []string
	for i := 0; ; i++ {
		status, lease, code := post("/v1/leases", claims(i))
		if status == 200 {
			held = append(held, lease)
		} else if status == 503 && code == "overloaded" {
			break
		} else {
			t.Fatalf("request %d: %d %s", i, status, code)
		}
		if i > 4000 {
			t.Fatal("nobody was ever refused")
		}
	}
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)); err == nil {
		_, peak, _ := strings.Cut(string(text), "VmHWM:")
		peak, _, _ = strings.Cut(peak, "\n")
		t.Logf("%d leases, at most %s in memory", len(held), strings.TrimSpace(peak))
	}
	if len(held) < 10 {
		t.Errorf("refused after %d leases", len(held))
	}
	for i, id := range held {
		if i == 0 {
			if status, _, code := post("/v1/leases/"+id+"/renew", `{}`); status != 200 {
				t.Errorf("renewing: %d %s", status, code)
			}
		}
		if status, _, code := post("/v1/leases/"+id+"/release", `{}`); status != 200 {
			t.Fatalf("releasing: %d %s", status, code)
		}
	}
	for deadline := time.Now().Add(patience); ; {
		if status, _, code := post("/v1/leases", claims(0)); status == 200 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("all was given back, and a newcomer is refused: %d %s", status, code)
		}
	}
}
