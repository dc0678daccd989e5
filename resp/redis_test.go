package resp

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/lockscript"
	"github.com/interlockdev/interlock/internal/test/redisserver"
)

var programs = flag.Int("programs", 60, "how many random programs run at the door and at Redis")

// program is a random program of agents with pools of connections. It runs at the door and at a real Redis.
type program struct {
	*rig
	random *rand.Rand
	addr   string // of Redis
	redis  map[string]*peer
	pools  [][]string        // the connections of each agent
	alone  bool              // all agents are one client, as the door sees them
	many   bool              // some scripts take several keys; at the door these have one ttl, the longest
	keys   map[string]string // what GET answers at Redis
	lapsed map[string]bool   // keys with a lock that has run out
	began  time.Time
	log    []string
	tally  map[string]int
}

// TestProgramsAtRedis: random programs have the same answers and the same keys at the door and at a real Redis. What
// the door refuses it does not do, and it refuses only scripts of no known form, and commands without a value about a
// key that may be another's.
func TestProgramsAtRedis(t *testing.T) {
	server := redisserver.Start(t, redisserver.Redis)
	first, runs := uint64(1), *programs
	if *modelSeed > 0 {
		first, runs = *modelSeed, 1
	}
	tally := map[string]int{}
	for seed := first; seed < first+uint64(runs) && !t.Failed(); seed++ {
		server.Do(t, "FLUSHALL")
		r := &rig{T: t}
		r.start()
		p := &program{
			rig: r, addr: server.Addr, random: rand.New(rand.NewPCG(seed, 3)), redis: map[string]*peer{},
			keys: map[string]string{"k0": "nil", "k1": "nil", "k2": "nil"}, lapsed: map[string]bool{}, tally: tally,
			began: time.Now(),
		}
		p.begin()
		// No ttl but those of lapses may end meanwhile, at one of them before the other.
		for n := 0; n < 100 && !t.Failed() && time.Since(p.began) < 30*time.Second; n++ {
			p.step()
		}
		if t.Failed() {
			t.Logf("seed %d:\n%s", seed, strings.Join(p.log[max(0, len(p.log)-25):], "\n"))
		}
		p.stop()
		for _, c := range p.redis {
			_ = c.conn.Close()
		}
	}
	if *modelSeed == 0 {
		for _, what := range []string{"same", "refused script", "refused owner", "changed script", "lapse"} {
			if tally[what] < runs/2 {
				t.Errorf("%s: only %d times", what, tally[what])
			}
		}
	}
}

func (p *program) one(of ...string) string { return of[p.random.IntN(len(of))] }

func (p *program) begin() {
	p.alone, p.many = p.random.IntN(2) == 0, p.random.IntN(4) == 0
	for i := range 1 + p.random.IntN(3) {
		p.pools = append(p.pools, nil)
		for j := range 1 + p.random.IntN(3) {
			name := fmt.Sprintf("%d.%d", i, j)
			p.pools[i] = append(p.pools[i], name)
			conn, err := net.Dial("tcp", p.addr)
			if err != nil {
				p.Fatal(err)
			}
			p.redis[name] = newPeer(conn)
			if !p.alone {
				p.both(name, "CLIENT", "SETNAME", fmt.Sprint("agent-", i))
			}
		}
	}
}

// there sends a command to Redis alone.
func (p *program) there(client string, words ...string) string {
	p.Helper()
	c := p.redis[client]
	if _, err := c.conn.Write(encode(words)); err != nil {
		p.Fatal(err)
	}
	return p.answer(c)
}

// both sends a command to the door, and to Redis unless the door may refuse it and does.
func (p *program) both(client string, words ...string) (done bool) {
	p.Helper()
	here := p.do(client, words...)
	p.log = append(p.log, fmt.Sprintf("%s> %.200q\n\t%s", client, words, here))
	if what := p.refused(words, here); what != "" {
		p.tally["refused "+what]++
		return false
	}
	there := p.there(client, words...)
	if strings.Contains(there, "ERR ") && strings.Contains(there, " script: ") && strings.HasPrefix(here, "-") {
		there = here // both fail, in their words
	}
	if here != there && !p.near(here, there) {
		p.Errorf("%q: %s, at Redis %s", words, here, there)
	}
	p.tally["same"]++
	return true
}

// near reports whether two answers are ttls of a key that was set at the one a little later than at the other.
func (p *program) near(here, there string) bool {
	a, errA := strconv.ParseInt(strings.TrimPrefix(here, ":"), 10, 64)
	b, errB := strconv.ParseInt(strings.TrimPrefix(there, ":"), 10, 64)
	unit := time.Millisecond
	if max(a, b) < 1000 { // none has so few left but in seconds
		unit = time.Second
	}
	return errA == nil && errB == nil && min(a, b) > 10 &&
		(p.many && a > b || time.Duration(max(a-b, b-a))*unit <= time.Since(p.began)+time.Second)
}

// refused names the reason why the door may refuse a command, if it does.
func (p *program) refused(words []string, got string) string {
	if words[0] == "EVAL" {
		for _, text := range []string{
			"interlock runs no Lua", "the script uses a key and ARGV", errNotInteger.text, "invalid expire time",
		} {
			if strings.HasPrefix(got, "-ERR "+text) {
				return "script"
			}
		}
	}
	key := words[1]
	plain := words[0] == "SET" && !slices.Contains(words, "NX")
	if strings.Contains(got, " that were taken together, ") && p.many {
		return "shorter ttl"
	}
	switch valueless := slices.Contains(
		[]string{"DEL", "UNLINK", "GETDEL", "EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"}, words[0],
	); {
	case !plain && !valueless:
	case strings.HasPrefix(got, "-ERR it is not clear whose key") && p.lapsed[key]:
		return "unclear"
	case strings.HasPrefix(got, "-ERR key "+key+" is held by ") && (plain || !p.alone || p.lapsed[key]):
		return "owner"
	case (got == ":0" || got == "nil") && p.lapsed[key] && !p.alone && p.keys[key] != "nil":
		return "late" // it had the key before, and another client has it
	}
	return ""
}

const (
	ttlA = "70000" // as milliseconds and as seconds below the longest ttl
	ttlB = "80000"
)

func (p *program) step() {
	pool := p.pools[p.random.IntN(len(p.pools))]
	client := pool[p.random.IntN(len(pool))]
	key := p.one("k0", "k1", "k2")
	value := p.one("LOCKED", "tok-a", "tok-b", strings.TrimPrefix(p.keys[key], "$"))
	ttl := p.one(ttlA, ttlB)
	unit := p.one("EX", "PX")
	switch p.random.IntN(16) {
	case 0, 1, 2:
		p.both(client, slices.Concat([]string{"SET", key, value}, p.shuffled([]string{"NX"}, []string{unit, ttl}))...)
	case 3:
		p.both(client, "SETNX", key, value)
	case 4:
		p.both(client, slices.Concat([]string{"SET", key, value}, p.shuffled([]string{"XX"}, []string{unit, ttl}))...)
	case 5:
		p.both(client, slices.Concat([]string{"SET", key, value}, p.shuffled([]string{"GET"}, []string{unit, ttl}))...)
	case 6, 7:
		p.both(client, p.one("DEL", "UNLINK", "GETDEL"), key)
	case 8:
		if p.alone && len(p.lapsed) == 0 {
			p.both(client, "DEL", "k0", "k1", key)
		} else {
			p.both(client, "EXISTS", "k0", "k1", key)
		}
	case 9:
		p.both(client, p.one("EXPIRE", "PEXPIRE"), key, p.one(ttl, ttl, ttl, "0", "-1", "soon"))
	case 10:
		at := time.Now().Add(70 * time.Second)
		if p.random.IntN(3) == 0 {
			at = time.Unix(1, 0)
		}
		if p.random.IntN(2) == 0 {
			p.both(client, "EXPIREAT", key, fmt.Sprint(at.Unix()))
		} else {
			p.both(client, "PEXPIREAT", key, fmt.Sprint(at.UnixMilli()))
		}
	case 11:
		p.lapse(client, key, value)
	default:
		p.script(client, key, value)
	}
	for _, key := range []string{"k0", "k1", "k2"} {
		p.both(client, "GET", key)
		p.both(client, "PTTL", key)
		p.keys[key] = p.there(client, "GET", key)
	}
}

// shuffled joins options in some order.
func (p *program) shuffled(options ...[]string) []string {
	p.random.Shuffle(len(options), func(i, j int) { options[i], options[j] = options[j], options[i] })
	return slices.Concat(options...)
}

// lapse takes a lock that runs out.
func (p *program) lapse(client, key, value string) {
	if !p.both(client, "SET", key, value, "NX", "PX", "20") || p.keys[key] != "nil" {
		return
	}
	p.tally["lapse"]++
	p.lapsed[key] = true
	for wait := busy.Context(p.T); p.do(client, "EXISTS", key) != ":0" || p.there(client, "EXISTS", key) != ":0"; {
		if wait.Err() != nil {
			p.Fatalf("%s has not run out", key)
		}
	}
}

// script sends a script: one of the generator, or of a kind, some with changes.
func (p *program) script(client, key, value string) {
	ttl := p.one(ttlA, ttlB)
	argv := []string{value, ttl, ttl}
	keys := []string{key}
	var text string
	if p.random.IntN(2) == 0 {
		generated, means := lockscript.Write(p.random)
		if text = generated; means.Value == 2 {
			argv = []string{ttl, value, ttl}
		}
	} else {
		files, err := filepath.Glob("script/testdata/kinds/*.lua")
		if err != nil {
			p.Fatal(err)
		}
		file := p.one(files...)
		b, err := os.ReadFile(file)
		if err != nil {
			p.Fatal(err)
		}
		text = lockscript.Spell(p.random, string(b))
		switch name := filepath.Base(file); {
		case name == "obtain.lua":
			argv[1] = "3"
		case name == "extend.lua":
			argv[2] = p.one("0", "1")
		case name == "renew-seconds.lua":
			argv = []string{ttl, value, ttl}
		case strings.HasSuffix(name, "-all.lua"):
			if p.many {
				keys = []string{"k0", "k1", "k2"}[:1+p.random.IntN(3)]
			}
		}
	}
	changes := max(0, p.random.IntN(5)-2)
	for range changes {
		text = lockscript.Change(p.random, text)
	}
	words := slices.Concat([]string{"EVAL", text, fmt.Sprint(len(keys))}, keys, argv)
	switch done := p.both(client, words...); {
	case !done && changes == 0 && !p.many:
		p.Errorf("it is refused, and nothing was changed:\n%s", text)
	case done && changes > 0:
		p.tally["changed script"]++
	}
}
