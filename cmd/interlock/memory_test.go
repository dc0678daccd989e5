//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/busy"
)

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
	for deadline := time.Now().Add(busy.Patience()); ; {
		if status, _, code := post("/v1/leases", claims(0)); status == 200 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("all was given back, and a newcomer is refused: %d %s", status, code)
		}
	}
}
