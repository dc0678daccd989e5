//go:build unix

package redistest

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/lockscript"
	"github.com/interlockdev/interlock/internal/test/redisserver"
	"github.com/interlockdev/interlock/resp/script"
)

// TestScriptsAtRedis: a real Redis does with each script that is recognised what its normal form is, in each state of
// the key, and nothing else. Many of the scripts are changed ones.
func TestScriptsAtRedis(t *testing.T) {
	server := redisserver.Start(t, redisserver.Redis)
	conn, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	redis := bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
	do := func(words ...string) string { return ask(t, redis, words) }
	tried, changed := 0, 0
	for seed := range uint64(1500) {
		random := rand.New(rand.NewPCG(seed, 2))
		text, _ := lockscript.Write(random)
		for range seed % 4 {
			text = lockscript.Change(random, text)
		}
		p, err := script.Recognise(text)
		if err != nil {
			continue
		}
		tried++
		if seed%4 > 0 {
			changed++
		}
		const value, px = "token", "20000"
		argv := []string{px, px, px}
		argv[p.Value-1] = value
		cases := p.For([][]byte{[]byte(argv[0]), []byte(argv[1]), []byte(argv[2])})
		for _, c := range []struct {
			before string
			ttl    string // of the key before, in ms
			want   script.Case
		}{
			{"", "", cases.Free},
			{"other", "70000", cases.Other},
			{value, "70000", cases.Equal},
			{value, "", cases.Lasting},
		} {
			do("FLUSHALL")
			do("SET", "bystander", value)
			switch {
			case c.before == "":
			case c.ttl == "":
				do("SET", "key", c.before)
			default:
				do("SET", "key", c.before, "PX", c.ttl)
			}
			answer := do(append([]string{"EVAL", text, "1", "key"}, argv...)...)
			left := do("PTTL", "key")
			got := fmt.Sprint(answer, " ", do("GET", "key"), " ", rounded(t, left), " ", do("GET", "bystander"), do("DBSIZE"))
			if want := predicted(t, &c.want, c.before, c.ttl, value, px); got != want {
				t.Fatalf("seed %d, the key has %q: %s, want %s\n%s", seed, c.before, got, want, text)
			}
		}
	}
	if tried < 400 || changed < 20 {
		t.Errorf("%d scripts were tried, %d of them changed", tried, changed)
	}
}

// rounded returns a ttl in ms, without the time that the test takes.
func rounded(t *testing.T, answer string) string {
	t.Helper()
	ms, err := strconv.ParseInt(strings.TrimPrefix(answer, ":"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if ms > 0 {
		ms = (ms + 9999) / 10000 * 10000
	}
	return fmt.Sprint(":", ms)
}

// predicted returns what a case means: the answer, the value and the ttl of the key, and that of all else.
func predicted(t *testing.T, c *script.Case, before, ttl, value, px string) string {
	t.Helper()
	after, left := before, ttl
	switch c.Op {
	case script.Delete:
		after = ""
	case script.Set, script.Expire:
		if c.Op == script.Set {
			after = value
		}
		if left = px; c.TTL.Unit == time.Second {
			left += "000"
		}
		if c.TTL == (script.Amount{}) {
			left = ""
		}
	}
	answers := map[script.Answer]string{
		script.Null: "nil", script.Int: fmt.Sprint(":", c.N), script.Text: "$" + c.S, script.Status: "+" + c.S,
		script.Error: "-" + c.S,
	}
	answer, known := answers[c.Answer]
	if !known {
		t.Fatalf("the generator writes no script that answers %v", c.Answer)
	}
	key, pttl, size := "$"+after, ":"+left, ":2"
	switch {
	case after == "":
		key, pttl, size = "nil", ":-2", ":1"
	case left == "":
		pttl = ":-1"
	}
	return answer + " " + key + " " + pttl + " $" + value + size
}
