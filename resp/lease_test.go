package resp

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/server"
)

// TestPair: an agent over HTTP and a program of Redis exclude each other, on the same key.
func TestPair(t *testing.T) {
	inBubble(t, Config{Strip: "lock:"}, func(r *rig) {
		r.wants("a", "SET lock:account:1 one NX EX 30", "+OK")
		status, body := r.http(http.MethodPost, "/v1/leases", `{"claims": [{"key": "account:1"}], "agent": "billing-7"}`)
		if status != http.StatusConflict || !strings.Contains(body, `"agent":"redis:pipe"`) {
			t.Errorf("over HTTP: %d %s", status, body)
		}
		fence := strings.TrimPrefix(r.do("a", "INTERLOCK.FENCE", "lock:account:1", "one"), "$")
		check := func(fence string) int {
			status, _ := r.http(http.MethodPost, "/v1/fences/check", fmt.Sprintf(`{"key": "account:1", "fence": %q}`, fence))
			return status
		}
		if got := check(fence); got != http.StatusOK {
			t.Errorf("the fence %s is refused: %d", fence, got)
		}
		r.wants("a", "DEL lock:account:1", ":1")
		if got := check(fence); got == http.StatusOK {
			t.Errorf("the fence %s is good after the release", fence)
		}

		lease := part(r.hold("account:1", "billing-7"), "id")
		r.wants("a", "SET lock:account:1 one NX EX 30", "nil")
		r.wants("a", "GET lock:account:1", "$interlock:billing-7")
		r.wants("a", "EXISTS lock:account:1", ":1")
		r.wants("a", "SET lock:account:1 one", "-ERR key account:1 is held by billing-7*")
		r.wants("a", "SET lock:account:1 one XX", "-ERR key account:1 is held by billing-7*")
		r.wants("a", "INTERLOCK.FENCE lock:account:1 interlock:billing-7", "nil")
		r.wants("a", "INTERLOCK.WHY lock:account:1", `$account:1 is held by billing-7 *`)
		if status, body := r.http(http.MethodPost, "/v1/leases/"+lease+"/release", `{}`); status != http.StatusOK {
			t.Errorf("%d %s", status, body)
		}
		r.wants("a", "SET lock:account:1 one NX EX 30", "+OK")
		r.wants("a", "GET account:1", "$one")
	})
}

// TestForeignLease: a lease of another door cannot be deleted or extended, whatever a client knows of it.
func TestForeignLease(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		lease := part(r.hold("account:1", "billing-7"), "id")
		for _, value := range []string{"billing-7", "interlock:billing-7", "", "main", lease} {
			for _, script := range []string{
				"release", "release-early", "release-or-gone", "release-all", "release-or-error",
			} {
				if got := r.do("a", "EVAL", kindText(t, script), "1", "account:1", value); got != ":0" && got != "-ERR OTHER" {
					t.Errorf("%s with %q: %s", script, value, got)
				}
			}
			for _, script := range []string{"renew-early", "renew", "renew-all"} {
				if got := r.do("a", "EVAL", kindText(t, script), "1", "account:1", value, "5000"); got != ":0" {
					t.Errorf("%s with %q: %s", script, value, got)
				}
			}
		}
		for _, command := range []string{"DEL account:1", "EXPIRE account:1 0", "PEXPIRE account:1 1", "GETDEL account:1"} {
			r.wants("a", command, "-ERR key account:1 is held by billing-7 (under another credential, or *")
		}
		r.wants("a", "DELEX account:1 IFEQ interlock:billing-7", ":0")
		r.wants("a", "SET account:1 one IFEQ interlock:billing-7", "nil")
		if status, body := r.http(http.MethodGet, "/v1/leases/"+lease, ""); status != http.StatusOK {
			t.Errorf("the lease is gone: %d %s", status, body)
		}
	})
}

// TestOwner: DEL, EXPIRE and SET without a proof count for keys of the same client: over any connection of one host and
// library, or under one user and name. Others are refused in words.
func TestOwner(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		r.wants("a", "SET k LOCKED NX EX 30", "+OK")
		r.wants("b", "PEXPIRE k 40000", ":1")
		r.wants("b", "SET k mine", "-ERR key k is held by redis:pipe*")
		r.wants("b", "SET k LOCKED EX 60", "+OK") // what was taken with NX is renewed
		r.wants("b", "SET k LOCKED XX EX 50", "+OK")
		r.wants("a", "TTL k", ":50")
		r.wants("b", "DEL k", ":1")
		r.wants("a", "SET k mine EX 30", "+OK")
		r.wants("b", "SET k mine EX 30", "-ERR key k is held by redis:pipe*") // both would believe that they have it
		r.wants("b", "GETDEL k", "$mine")
		r.wants("b", "GETDEL k", "nil")
		for _, client := range []string{"c", "d"} {
			r.wants(client, "AUTH agent-7 any", "+OK")
		}
		r.wants("c", "SET k LOCKED NX EX 30", "+OK")
		r.wants("a", "INTERLOCK.WHY k", `$k is held by redis:agent-7 *`)
		for _, command := range []string{"DEL k", "EXPIRE k 1", "GETDEL k", "DELEX k", "SET k other XX"} {
			r.wants("b", command, "-ERR key k is held by redis:agent-7*")
		}
		r.wants("d", "DEL k free", ":1")
		for client, command := range map[string]string{
			"e": "CLIENT SETINFO LIB-NAME other", "f": "CLIENT FORWARDED 10.0.0.7:51200", "g": "CLIENT SETNAME worker-1",
		} {
			r.wants("a", "SET k LOCKED NX EX 30", "+OK")
			r.wants(client, command, "+OK")
			r.wants(client, "DEL k", "-ERR key k is held by redis:pipe*")
			r.wants("a", "DEL k", ":1")
		}
		r.wants("f", "SET a LOCKED NX EX 30", "+OK")
		r.wants("a", "DEL k a b", "-ERR key a is held by redis:10.0.0.7, and not by this client, redis:pipe*")
		r.wants("a", "SET b LOCKED NX EX 30", "+OK")
		if got := r.do("a", "DEL", "a", "b"); !strings.HasSuffix(got, "(1 of the keys were deleted)") {
			t.Error(got)
		}
	})
}

// TestLate: the DEL of a client with a lock that has run out never ends the lock of the next one, and never answers as
// if. If it may be that of either, nothing happens, and the answer tells what to do.
func TestLate(t *testing.T) {
	const unclear = "-ERR it is not clear whose key k is, so it stays until its ttl ends: a lock of redis:"
	for _, user := range []string{"", "workers"} {
		inBubble(t, Config{}, func(r *rig) {
			for _, client := range []string{"a", "b", "c"} {
				if user != "" {
					r.wants(client, "AUTH workers any", "+OK")
				}
			}
			take := func(client string, seconds int) {
				r.Helper()
				r.wants(client, fmt.Sprintf("SET k LOCKED NX EX %d", seconds), "+OK")
			}
			stays := func() {
				r.Helper()
				r.wants("c", "SET k LOCKED NX EX 30", "nil")
			}
			take("a", 1)
			r.pass(1600 * time.Millisecond)
			take("b", 30)
			for _, command := range []string{"DEL k", "PEXPIRE k 60000", "GETDEL k", "SET k LOCKED XX EX 60"} {
				r.wants("a", command, unclear+"*")
				r.wants("b", command, unclear+"*")
			}
			stays()
			r.wants("b", "EVAL "+"x 0", "-ERR interlock runs no Lua*")
			if got := r.do("b", "EVAL", kindText(t, "release"), "1", "k", "LOCKED"); got != ":1" {
				t.Error(got)
			}
			// Both were refused, so none is expected any more.
			r.pass(10 * time.Minute)
			take("b", 30)
			r.wants("c", "DEL k", ":1")
			// A DEL that comes while the key is free is that of the former holder.
			take("a", 1)
			r.pass(1600 * time.Millisecond)
			r.wants("c", "DEL k", ":0")
			take("b", 30)
			r.wants("c", "DEL k", ":1")
			// So is a release with the former holder's value.
			r.wants("a", "SET k one NX EX 1", "+OK")
			r.pass(1600 * time.Millisecond)
			take("b", 30)
			r.wants("a", "DELEX k IFEQ one", ":0")
			r.wants("c", "DEL k", ":1")
			// A ttl that the door keeps itself is no exception.
			r.wants("a", "SET k LOCKED NX PX 100", "+OK")
			r.pass(101 * time.Millisecond)
			take("b", 30)
			r.wants("a", "DEL k", unclear+"*")
			stays()
			// Holders with names differ: one has nothing to delete, the other its own.
			for _, client := range []string{"x", "y"} {
				r.wants(client, "CLIENT SETNAME "+client, "+OK")
			}
			r.pass(time.Hour)
			take("x", 1)
			r.pass(1600 * time.Millisecond)
			take("y", 30)
			r.wants("x", "PEXPIRE k 60000", ":0")
			r.wants("x", "SET k LOCKED XX EX 60", "nil")
			r.wants("x", "DEL k", ":0")
			r.wants("x", "DEL k", "-ERR key k is held by redis:y, *")
			stays()
			r.wants("y", "DEL k", ":1")
			if told := r.metric("interlock_resp_refused_total", `reason="unclear_owner"`); told < 9 {
				t.Errorf("the metric counts %v", told)
			}
		})
	}
}

// TestTurns: programs that ask again and again for one key, and release it by a script without else, have their turns
// one after the other.
func TestTurns(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		const script = "if redis.call('get', KEYS[1]) == ARGV[1] then\n\treturn redis.call('del', KEYS[1])\nend\nreturn 0"
		began, waiting := time.Now(), map[string]string{}
		for i := range 10 {
			waiting[fmt.Sprint("caller-", i)] = fmt.Sprint("token-", i)
		}
		for len(waiting) > 0 && time.Since(began) < 2*time.Second {
			for caller, token := range waiting {
				if r.do(caller, "SET", "admission:acme", token, "NX", "PX", "10000") == "+OK" {
					delete(waiting, caller)
					r.pass(20 * time.Millisecond)
					if got := r.do(caller, "EVAL", script, "1", "admission:acme", token); got != ":1" {
						t.Errorf("the release answers %s", got)
					}
				}
			}
			r.pass(25 * time.Millisecond)
		}
		if len(waiting) > 0 {
			t.Errorf("%d of 10 had no turn", len(waiting))
		}
	})
}

// TestRefusedScript: the caller, the log and the metric name a script that is refused, the log once.
func TestRefusedScript(t *testing.T) {
	var log bytes.Buffer
	const reason = "line 2: it calls incr, which no lock's script calls so"
	inBubble(t, Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, func(r *rig) {
		r.wants("a", "SET k one NX EX 30", "+OK")
		const script = "\nif redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('incr', KEYS[1]) end"
		for range 3 {
			got := r.do("a", "EVAL", script, "1", "k", "one")
			if !strings.HasPrefix(got, "-ERR interlock runs no Lua") || !strings.Contains(got, reason) {
				t.Error(got)
			}
		}
		r.wants("a", "GET k", "$one")
		if counted := r.metric("interlock_resp_refused_total", `reason="script"`); counted != 3 {
			t.Errorf("the metric counts %v", counted)
		}
	})
	if strings.Count(log.String(), reason) != 1 || !strings.Contains(log.String(), "client=redis:pipe") {
		t.Errorf("the log has %s", log.String())
	}
}

// TestConditional: SET IFEQ, DELEX and DELIFEQ are those of Redis 8.4 and Valkey 9.
func TestConditional(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		for _, step := range [][2]string{
			{"SET k two IFEQ one EX 30", "nil"},
			{"SET k one NX EX 30", "+OK"},
			{"SET k two IFEQ other EX 30", "nil"},
			{"SET k two IFEQ other GET EX 30", "$one"},
			{"SET k two IFEQ one GET EX 60", "$one"},
			{"TTL k", ":60"},
			{"SET k two IFEQ two", "+OK"},
			{"TTL k", ":-1"},
			{"DELEX k IFEQ one", ":0"},
			{"DELEX k IFEQ", "-ERR syntax error"},
			{"DELEX k IFNE one", "-ERR DELEX with IFNE is not answered: *"},
			{"SET k two IFNE one", "-ERR SET with IFNE is not answered: *"},
			{"SET k two IFEQ one NX", "-ERR syntax error"},
			{"SET k two IFEQ", "-ERR syntax error"},
			{"DELEX k ifeq two", ":1"},
			{"DELIFEQ k two", ":0"},
			{"SET k one NX EX 30", "+OK"},
			{"DELIFEQ k one", ":1"},
			{"DELEX k", ":0"},
		} {
			r.wants("a", step[0], step[1])
		}
	})
}

// TestZombie: a holder that slept through its ttl releases nothing, and its fence is refused.
func TestZombie(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		for _, client := range []string{"zombie", "next"} {
			r.wants(client, "AUTH "+client+" any", "+OK")
		}
		r.wants("zombie", "SET k one NX PX 5000", "+OK")
		old := strings.TrimPrefix(r.do("zombie", "INTERLOCK.FENCE", "k", "one"), "$")
		r.pass(5001 * time.Millisecond)
		r.wants("next", "SET k two NX PX 30000", "+OK")
		for _, script := range []string{"release", "release-early", "release-or-gone"} {
			if got := r.do("zombie", "EVAL", kindText(t, script), "1", "k", "one"); got != ":0" {
				t.Errorf("%s of the zombie: %s", script, got)
			}
		}
		r.wants("zombie", "DEL k", "-ERR key k is held by redis:next, *") // once more
		r.wants("zombie", "INTERLOCK.FENCE k one", "nil")
		r.wants("next", "GET k", "$two")
		body := fmt.Sprintf(`{"key": "k", "fence": %q}`, old)
		if status, answer := r.http(http.MethodPost, "/v1/fences/check", body); status != http.StatusConflict {
			t.Errorf("the zombie's fence: %d %s", status, answer)
		}
		// The same value as before, as with a constant one, is another holder's all the same.
		r.wants("next", "DEL k", ":1")
		r.wants("zombie", "SET k LOCKED NX PX 5000", "+OK")
		r.pass(5001 * time.Millisecond)
		r.wants("next", "SET k LOCKED NX PX 30000", "+OK")
		r.wants("zombie", "DEL k", ":0")
		r.wants("next", "EXISTS k", ":1")
	})
}

// TestShortTTL: a ttl below the server's minimum ends in time, and again after it was changed.
func TestShortTTL(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		for _, client := range []string{"a", "b"} {
			r.wants(client, "AUTH "+client+" any", "+OK")
		}
		r.wants("a", "SET k one NX PX 100", "+OK")
		r.wants("a", "PTTL k", ":100")
		r.pass(99 * time.Millisecond)
		r.wants("b", "SET k two NX PX 100", "nil")
		r.pass(2 * time.Millisecond)
		r.wants("b", "SET k two NX PX 100", "+OK")
		r.wants("a", "DEL k", ":0")
		if got := r.do("b", "EVAL", kindText(t, "renew"), "1", "k", "two", "5000"); got != ":1" {
			t.Error(got)
		}
		r.pass(4 * time.Second)
		r.wants("a", "SET k one NX PX 100", "nil")
		r.wants("b", "PEXPIRE k 50", ":1")
		r.pass(51 * time.Millisecond)
		r.wants("a", "GET k", "nil")
		// The agents of other doors need not look for it to end.
		r.wants("a", "SET k one NX PX 100", "+OK")
		r.pass(101 * time.Millisecond)
		r.hold("k", "billing-7")
	})
}

// TestRenewalAtTheEnd: a short ttl that is renewed at its end is not ended, and one that is being ended is not
// renewed.
func TestRenewalAtTheEnd(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		r.wants("a", "SET k one NX PX 100", "+OK")
		x := r.door.grants.get(nameOf(interlock.DefaultNamespace, "k"))
		if !r.door.grants.beginRenewal(x) {
			t.Fatal("it cannot be renewed")
		}
		r.pass(101 * time.Millisecond)
		if r.door.grants.beginEnd(x) {
			t.Error("it ends while it is renewed")
		}
		r.wants("b", "SET k two NX PX 100", "nil")
		r.door.grants.endRenewal(x)
		if !r.door.grants.beginEnd(x) {
			t.Error("it does not end")
		}
		if got := r.do("a", "EVAL", kindText(t, "renew"), "1", "k", "one", "5000"); got != ":0" {
			t.Errorf("it is renewed while it ends: %s", got)
		}
	})
}

// TestRestart: the value and the ttl survive a restart, and a compare finds them. A ttl below the minimum
// becomes longer.
func TestRestart(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		binary := "\x00\xff\"\n one"
		r.do("a", "SET", "k", binary, "NX", "PX", "30000")
		r.wants("a", "SET permanent one", "+OK")
		r.wants("a", "SETNX timed one", ":1")
		r.wants("a", "EXPIRE timed 30", ":1")
		r.wants("a", "SET short one NX PX 100", "+OK")
		if got := r.do("a", "EVAL", kindText(t, "take-all"), "2", "m", "n", "one", "30000"); got != ":2" {
			t.Error(got)
		}
		r.restart()
		if got := r.do("b", "GET", "k"); got != "$"+binary {
			t.Errorf("GET k: %q", got)
		}
		r.wants("b", "TTL permanent", ":-1")
		r.wants("b", "TTL timed", ":3*")
		r.wants("c", "CLIENT SETNAME c", "+OK")
		r.wants("c", "DEL permanent", "-ERR key permanent is held by redis:pipe, *")
		r.wants("b", "DEL permanent", ":1")
		r.wants("b", "SET short two NX PX 100", "nil")
		release := kindText(t, "release")
		if got := r.do("b", "EVAL", release, "1", "k", "other"); got != ":0" {
			t.Error(got)
		}
		if got := r.do("b", "EVAL", kindText(t, "renew-early"), "1", "k", binary, "20000"); got != ":1" {
			t.Error(got)
		}
		r.wants("b", "TTL k", ":20")
		if got := r.do("b", "EVAL", release, "1", "k", binary); got != ":1" {
			t.Error(got)
		}
		if got := r.do("b", "EVAL", kindText(t, "release-all"), "2", "m", "n", "one"); got != ":2" {
			t.Error(got)
		}
		r.pass(1200 * time.Millisecond)
		r.wants("b", "SET short two NX PX 100", "+OK")
	})
}

// TestValues: a value that does not fit is refused in words; so is a ttl that a pattern would shorten.
func TestValues(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		r.wants("a", "SET k "+strings.Repeat("x", 480)+" NX EX 30", "+OK")
		r.wants("a", "SET l "+strings.Repeat("x", 600)+" NX EX 30", "-ERR the value is too long*")
		r.wants("a", "SET l one NX EX 90000", "-ERR invalid_ttl: *")
		r.wants("a", "SET a//b one NX EX 30", "-ERR invalid_key: *")
		status, body := r.http(http.MethodPut, "/v1/patterns/accounts", `{"pattern": "account:{id}", "max_ttl_ms": 10000}`)
		if status != http.StatusOK {
			t.Fatal(status, body)
		}
		r.wants("a", "SET account:1 one NX EX 30", "-ERR the pattern of the key allows a ttl of 10s at most*")
		r.wants("a", "EXISTS account:1", ":0")
		r.wants("a", "SET account:1 one NX EX 10", "+OK")
		r.wants("a", "EXPIRE account:1 30", "-ERR the pattern of the key allows a ttl of 10s at most*")
		r.wants("a", "TTL account:1", ":10")
	})
}

// TestUnknownCommands: what is not answered is refused with what to use instead.
func TestUnknownCommands(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		for command, want := range map[string]string{
			"ZADD q 1 a":                    "-ERR unsupported command ZADD: *",
			"lpush q a":                     "-ERR unsupported command LPUSH: *",
			"PUBLISH c m":                   "-ERR unsupported command PUBLISH: *",
			"MULTI":                         "-ERR unsupported command MULTI: *",
			"SADD s a":                      "-ERR unsupported command SADD: *",
			"FROBNICATE":                    "-ERR unknown command 'FROBNICATE': *",
			"FLUSHDB":                       "-ERR FLUSHDB would end the leases of others*",
			"FLUSHALL":                      "-ERR FLUSHDB would end the leases of others*",
			"SELECT 1":                      "-ERR DB index is out of range: *",
			"EVAL return_1 0":               "-ERR interlock runs no Lua: *",
			"SCRIPT LOAD return_1":          "-ERR interlock runs no Lua: *",
			"CLIENT SETINFO LIB-NAME test":  "+OK",
			"CLIENT TRACKING on":            "-ERR interlock sends no invalidations: *",
			"CLIENT TRACKING ON OPTIN":      "+OK",
			"CLIENT CACHING YES":            "-ERR interlock sends no invalidations: *",
			"HELLO 4":                       "-NOPROTO *",
			"GET":                           "-ERR wrong number of arguments for 'get' command",
			"COMMAND COUNT":                 fmt.Sprintf(":%d", len(commands)),
			"SET k v NX PX 1 EX":            "-ERR syntax error",
			"SCRIPT EXISTS abcd":            "[:0]",
			"INTERLOCK.FENCE k":             "-ERR wrong number of arguments*",
			"CLIENT SETNAME käse":           "-ERR a client's name *",
			"CLIENT MAINT_NOTIFICATIONS ON": "-ERR unknown subcommand of CLIENT: *",
		} {
			r.wants("a", command, want)
		}
		got := r.do("a", "EVAL", kindText(t, "release"), "1", "k")
		if !strings.HasPrefix(got, "-ERR the script uses a key and ARGV[1], and is called with 1 keys and 0 arguments") {
			t.Error(got)
		}
	})
}

// TestCredentials: without a credential a client may greet and nothing more; with one it is in its
// namespace, under its rights.
func TestCredentials(t *testing.T) {
	secret, line, err := server.NewCredential(interlock.Principal{Name: "swarm"}, "acme")
	if err != nil {
		t.Fatal(err)
	}
	looker := interlock.Principal{Name: "looker", Roles: interlock.RoleViewer}
	viewer, viewerLine, err := server.NewCredential(looker, "acme")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(file, []byte(line+"\n"+viewerLine+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	credentials, err := server.LoadCredentials(file)
	if err != nil {
		t.Fatal(err)
	}
	inBubble(t, Config{}, func(r *rig) {
		r.stop()
		r.credentials = credentials
		r.start()
		r.wants("a", "PING", "+PONG")
		for _, command := range []string{"SET k one NX EX 30", "GET k", "HELLO 3", "ZADD q 1 a", "EVAL x 0", "FLUSHDB"} {
			r.wants("a", command, "-NOAUTH Authentication required*")
		}
		r.wants("a", "AUTH wrong", "-WRONGPASS unauthenticated: *")
		r.wants("a", "AUTH other/agent "+secret, "-NOPERM forbidden: *")
		r.wants("a", "GET k", "-NOAUTH *")
		r.wants("a", "HELLO 3 AUTH acme/agent-7 "+secret+" SETNAME w", "[$server *")
		r.wants("a", "SET k one NX EX 30", "+OK")
		r.wants("b", "AUTH "+viewer, "+OK")
		r.wants("b", "GET k", "$interlock:redis:w")
		r.wants("b", "SET l one NX EX 30", "-NOPERM forbidden: *")
		r.wants("a", "RESET", "+RESET")
		r.wants("a", "GET k", "-NOAUTH *")
		r.wants("a", "HELLO 3 AUTH acme/agent-7 "+secret+" SETNAME w", "[$server *")
		r.wants("a", "DEL k", ":1")
		// A credential that is withdrawn ends at once.
		if err := os.WriteFile(file, []byte(viewerLine+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := credentials.Reload(); err != nil {
			t.Fatal(err)
		}
		r.wants("a", "SET k one NX EX 30", "-WRONGPASS *")
		if got := r.ends("a"); got != "" {
			t.Errorf("after the end: %q", got)
		}
	})
}

// TestOtherCredential: the value of a key proves nothing under another credential of the namespace, which
// could read it in a listing; not even after a restart.
func TestOtherCredential(t *testing.T) {
	owner, ownerLine, err := server.NewCredential(interlock.Principal{Name: "owner"}, "acme")
	if err != nil {
		t.Fatal(err)
	}
	other, otherLine, err := server.NewCredential(interlock.Principal{Name: "other"}, "acme")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(file, []byte(ownerLine+"\n"+otherLine+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	credentials, err := server.LoadCredentials(file)
	if err != nil {
		t.Fatal(err)
	}
	inBubble(t, Config{}, func(r *rig) {
		r.credentials = credentials
		for first := true; ; first = false {
			r.restart()
			r.wants("owner", "AUTH agent-7 "+owner, "+OK")
			r.wants("other", "AUTH agent-7 "+other, "+OK")
			if first {
				r.wants("owner", "SET k one NX EX 300", "+OK")
			}
			for _, command := range []string{"DEL k", "EXPIRE k 0", "PEXPIRE k 1"} {
				r.wants("other", command, "-ERR key k is held by redis:agent-7 (under another credential, *")
			}
			for _, script := range []string{"release", "release-early", "release-or-gone"} {
				if got := r.do("other", "EVAL", kindText(t, script), "1", "k", "one"); got != ":0" {
					t.Errorf("%s: %s", script, got)
				}
			}
			if got := r.do("other", "EVAL", kindText(t, "renew-early"), "1", "k", "one", "5000"); got != ":0" {
				t.Errorf("reacquire: %s", got)
			}
			r.wants("other", "GET k", "$interlock:redis:agent-7")
			r.wants("other", "INTERLOCK.FENCE k one", "nil")
			r.wants("other", "SET k one EX 1", "-ERR key k is held by redis:agent-7*")
			r.wants("owner", "GET k", "$one")
			if !first {
				break
			}
			r.wants("owner", "TTL k", ":300")
		}
		if got := r.do("owner", "EVAL", kindText(t, "release"), "1", "k", "one"); got != ":1" {
			t.Errorf("the owner's release: %s", got)
		}
		// A connection that changes its credential does not take its keys along.
		r.wants("owner", "RESET", "+RESET")
		r.wants("owner", "AUTH "+owner, "+OK")
		r.wants("owner", "SET k one NX EX 300", "+OK")
		r.wants("owner", "AUTH "+other, "+OK")
		r.wants("owner", "DEL k", "-ERR key k is held by redis:pipe (under another credential, *")
		r.wants("owner", "AUTH "+owner, "+OK")
		r.wants("owner", "DEL k", ":1")
	})
}

func kindText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("script", "testdata", "kinds", name+".lua"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
