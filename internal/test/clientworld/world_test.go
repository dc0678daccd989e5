package clientworld

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
)

var pipe = flag.Bool("pipe", false, "carry out commands of the standard input")

// With -pipe this is a server for simulated worlds; without, a lease without heartbeats ends in its time.
func TestServe(t *testing.T) {
	if *pipe {
		// Between two commands there is nothing to do at once, and the client runs on the other core.
		runtime.GOMAXPROCS(1)
		debug.SetGCPercent(400)
		synctest.Test(t, func(t *testing.T) {
			random := func(seed uint64) { cryptotest.SetGlobalRandom(t, seed) }
			if err := Serve(os.Stdin, os.Stdout, random); err != nil {
				t.Fatal(err)
			}
		})
		return
	}
	json1 := `"headers":{"Content-Type":"application/json"}`
	acquire := `{"do":"send","id":1,"method":"POST","target":"/v1/leases",` + json1 +
		`,"body":"{\"agent\":\"a\",\"claims\":[{\"key\":\"k\"}],\"ttl_ms\":2000,\"grace_ms\":0}"}`
	wait := `{"do":"send","id":2,"method":"POST","target":"/v1/leases",` + json1 +
		`,"body":"{\"agent\":\"b\",\"claims\":[{\"key\":\"k\"}],\"on_conflict\":\"wait\",\"wait_ms\":50000}"}`
	commands := strings.Join([]string{
		`{"do":"world"}`, acquire, wait, `{"do":"pass","us":1000000}`, `{"do":"pass","us":60000000}`, `{"do":"restart"}`,
		strings.Replace(acquire, `"id":1`, `"id":3`, 1), strings.Replace(wait, `"id":2`, `"id":4`, 1),
		`{"do":"cut","id":4}`, `{"do":"world"}`, strings.Replace(acquire, `"id":1`, `"id":5`, 1),
	}, "\n") + "\n"
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		if err := Serve(strings.NewReader(commands), &out, func(uint64) {}); err != nil {
			t.Fatal(err)
		}
	})
	want := [][]int{{}, {1, 200}, {}, {}, {2, 200}, {}, {3, 409}, {}, {4, 0}, {}, {5, 200}}
	dec := json.NewDecoder(&out)
	for i, w := range want {
		var a Answer
		if err := dec.Decode(&a); err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, d := range a.Done {
			got = append(got, d.ID, d.Status)
		}
		if len(got) != len(w) || len(w) > 0 && (got[0] != w[0] || got[1] != w[1]) {
			t.Errorf("command %d: %v, want %v", i, got, w)
		}
		if i == 4 && (a.Now < 2_000_000 || a.Now > 3_000_000) {
			t.Errorf("the lease of 2 s ended after %d µs", a.Now)
		}
	}
}
