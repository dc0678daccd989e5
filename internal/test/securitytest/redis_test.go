package securitytest

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/server"
)

var redisAttacks = []attack{
	{
		86, "No credential at the Redis port",
		"sends every command without one, and with the wrong ones of case 10",
		"NOAUTH and WRONGPASS, whatever is wrong; the commands that need none show nothing of any tenant", redisStrangers,
		[]string{"resp.TestCredentials"},
	},
	{
		87, "Another tenant at the Redis port",
		"names another tenant's namespace as its user in any spelling, and uses the name and the value of another " +
			"tenant's key in every command and script",
		"NOPERM, and the same answers as for a key that was never used; the other tenant sees no change", redisTenants, nil,
	},
	{
		88, "Leases of others at the Redis port",
		"knows the name, the value, the holder and the lease id of a key of another door and of another credential of its " +
			"tenant, and deletes, extends and overwrites it with every command and script",
		"nothing is ended, extended or taken, and no answer has the lease's id", redisOthers,
		[]string{"resp.TestForeignLease", "resp.TestOtherCredential", "resp.TestOwner"},
	},
	{
		89, "Rights at the Redis port",
		"takes, releases and reads keys, INTERLOCK.WHY and INTERLOCK.FENCE among them, with a credential of each role, " +
			"and after its role or its line was taken away",
		"NOPERM without the right; a withdrawn credential ends its connections at their next command",
		redisRights,
		[]string{"resp.TestCredentials"},
	},
	{
		90, "Another protocol at the Redis port",
		"has a browser send HTTP with commands in its body, speaks plain text to TLS, TLS to plain text, and the Redis " +
			"protocol to the other ports",
		"the connection ends, and nothing is carried out", redisOtherProtocols,
		[]string{"resp.TestHostileClients", "resp.TestTLS"},
	},
	{
		91, "Forged names at the Redis port",
		"writes line breaks, answers of the protocol, ANSI and invisible characters into keys, values, users, names and " +
			"commands, and into an agent's name of another door",
		"each answer is one, without those characters except in the value itself; such keys are refused", redisNames,
		[]string{"resp.TestErrorLine", "resp.TestValues"},
	},
	{
		92, "Too large commands at the Redis port",
		"sends too many arguments, too long ones, too long lines, nested lists, and lengths that are none, before and " +
			"after AUTH, and after RESET",
		"an error of the protocol and the end of the connection, with smaller limits for clients without a credential",
		redisOversize,
		[]string{"resp.TestParse", "resp.FuzzParse", "resp.TestStrangers"},
	},
	{
		93, "Half commands at the Redis port",
		"opens 200 connections and sends half a command on each, with and without a credential, or one byte at a time; " +
			"announces the largest command and sends one byte",
		"others are answered as before; each connection is cut off after ten seconds, and memory grows with what came",
		redisHalves,
		[]string{"resp.TestHostileClients"},
	},
	{
		94, "Clients of the Redis port that never read", "sends large commands as fast as it can, and reads no answer",
		"others are not delayed, and memory stays bounded", redisNeverReading,
		[]string{"resp.TestHostileClients"},
	},
	{
		95, "Connections without end at the Redis port", "opens more connections than there are, and sends nothing",
		"clients with a credential come in and stay", redisCrowd,
		[]string{"server.TestGateAnonymous", "server.TestGateFull"},
	},
}

// free are the commands that need no credential.
var free = []string{
	"AUTH", "CLIENT", "COMMAND", "ECHO", "HELLO", "INFO", "PING", "QUIT", "RESET", "SELECT",
}

func redisStrangers(t *testing.T, s *site) {
	commands, open := respCommands(t, s.wire(t, "", "")), []string(nil)
	for _, words := range append(commands, []string{"HELLO", "3"}, []string{"CONFIG", "GET", "*"}, []string{"NOTHING"}) {
		got := s.wire(t, "", "").do(words...)
		if strings.Contains(got, acme) || strings.Contains(got, mark) {
			t.Errorf("%v shows a tenant: %s", words, got)
		}
		if slices.Contains(free, words[0]) && len(words) < 3 && words[0]+words[len(words)-1] != "HELLO3" {
			open = append(open, words[0])
			continue
		}
		if !strings.HasPrefix(got, "-NOAUTH ") {
			t.Errorf("%v: %s", words, got)
		}
	}
	if slices.Sort(open); !slices.Equal(open, free) {
		t.Errorf("these need no credential: %v", open)
	}
	good := s.secrets[rival]
	for _, bad := range []string{
		good[:len(good)-1], good + "0", strings.ToUpper(good), "ilk_", "", good[:20], good + " " + good, good + "\x00",
		good + "\r\n", "Bearer " + good, strings.Repeat("a", 4000), "*", "ilk_" + strings.Repeat("0", 64),
	} {
		for _, words := range [][]string{{"AUTH", bad}, {"AUTH", "agent", bad}, {"HELLO", "3", "AUTH", "default", bad}} {
			w := s.wire(t, "", "")
			w.want("-WRONGPASS unauthenticated: ", words...)
			w.want("-NOAUTH ", "GET", "k")
		}
	}
	s.wire(t, "", "").want("+OK", "AUTH", good)
}

func redisTenants(t *testing.T, s *site) {
	held := s.agent(t, acme, "POST", "/v1/leases", `{"ttl_ms":600000,"claims":[{"key":"redis:held"}]}`).want(200)
	owner := s.wire(t, "owner", s.secrets[acme])
	owner.want("+OK", "SET", "redis:locked", "the-value", "NX", "EX", "600")
	for _, namespace := range []string{"acme", "ACME", "acme\u200b", "*", "default", "acm acme", "acme-2", " acme"} {
		got := s.wire(t, "", "").do("AUTH", namespace+"/owner", s.secrets[rival])
		if !strings.HasPrefix(got, "-NOPERM ") && !strings.HasPrefix(got, "-ERR invalid_namespace") {
			t.Errorf("%q: %s", namespace, got)
		}
	}
	thief := s.wire(t, "owner", s.secrets[rival])
	thief.want("-NOPERM ", "HELLO", "3", "AUTH", "acme/owner", s.secrets[rival])
	for _, known := range []string{"redis:held", "redis:locked"} {
		never := strings.NewReplacer("held", "herd", "locked", "lacked").Replace(known)
		for _, words := range respCommands(t, thief) {
			if slices.Contains(free, words[0]) || len(words) < 2 {
				continue
			}
			words[1] = known
			got := thief.do(words...)
			words[1] = never
			if other := thief.do(words...); strings.ReplaceAll(other, never, known) != got {
				t.Errorf("%v:\n%s\n%s", words, got, other)
			}
			for _, key := range []string{known, never} {
				_ = thief.do("DEL", key) // what SET has taken
			}
		}
		for name, text := range scripts(t) {
			arguments := []string{known, "the-value", "600000", "600000", "600000"}
			got := thief.do(append([]string{"EVAL", text, "1"}, arguments...)...)
			arguments[0] = never
			if other := thief.do(append([]string{"EVAL", text, "1"}, arguments...)...); other != got {
				t.Errorf("%s:\n%s\n%s", name, got, other)
			}
			for _, key := range []string{known, never} {
				_ = thief.do("DEL", key)
			}
		}
	}
	thief.want(":0", "DEL", "acme/redis:locked")
	for _, key := range []string{"/redis:locked", "../acme/redis:locked"} {
		thief.want("-ERR invalid_key: ", "DEL", key)
	}
	owner.want("$the-value", "GET", "redis:locked")
	s.agent(t, acme, "GET", "/v1/leases/"+held.must("lease.id"), "").want(200)
}

func redisOthers(t *testing.T, s *site) {
	post := func(path, body string) *answer { return s.agent(t, acme, "POST", path, body).want(200) }
	session := post("/v1/sessions", `{"agent":"the-holder","ttl_ms":600000}`).must("session.id")
	leases := map[string]string{
		"others:session": post(
			"/v1/leases", `{"session":"`+session+`","ttl_ms":600000,"claims":[{"key":"others:session"}]}`,
		).must("lease.id"),
		"others:guest": post(
			"/v1/leases", `{"agent":"the-holder","ttl_ms":600000,"claims":[{"key":"others:guest"}]}`,
		).must("lease.id"),
	}
	const value, locked = "the-value", "others:locked"
	owner := s.wire(t, "the-holder", s.secrets[acme])
	owner.want("+OK", "SET", locked, value, "NX", "EX", "600")
	before := owner.do("INTERLOCK.FENCE", locked, value)

	thief := s.wire(t, "the-holder", s.operators[acme])
	thief.want("+OK", "CLIENT", "SETNAME", "the-holder")
	for _, key := range []string{locked, "others:session", "others:guest"} {
		id := cmp.Or(leases[key], "none")
		for _, command := range []string{
			"DEL K", "UNLINK K", "EXPIRE K 0", "PEXPIRE K 1", "EXPIREAT K 1", "PEXPIREAT K 1", "SET K V", "SET K V PX 1000",
			"SET K V XX PX 1000", "SET K other GET", "SET K V NX PX 1000", "SETNX K V", "FLUSHDB", "FLUSHALL", "GET K",
			"INTERLOCK.FENCE K V", "INTERLOCK.WHY K",
		} {
			words := strings.Fields(strings.NewReplacer(" K", " "+key, " V", " "+value).Replace(command))
			got := thief.do(words...)
			if got == "+OK" || got == ":1" || got == "$"+value {
				t.Errorf("%v: %s", words, got)
			}
			if strings.Contains(got, strings.TrimPrefix(id, "l_")) {
				t.Errorf("%v shows the lease's id: %s", words, got)
			}
		}
		for name, text := range scripts(t) {
			for _, proof := range []string{value, "the-holder", "interlock:the-holder", id, ""} {
				for _, rest := range [][]string{{"1000", "1"}, {"1", "1000"}, {"0", "0"}, {"1", "1", "1"}} {
					got := thief.do(append([]string{"EVAL", text, "1", key, proof}, rest...)...)
					if got == "+OK" || got == ":1" {
						t.Errorf("%s with %q %v: %s", name, proof, rest, got)
					}
				}
			}
		}
	}
	for key, id := range leases {
		s.agent(t, acme, "GET", "/v1/leases/"+id, "").want(200)
		if got := owner.do("TTL", key); len(got) != len(":600") {
			t.Errorf("%s has a ttl of %s", key, got)
		}
	}
	owner.want("$"+value, "GET", locked)
	if after := owner.do("INTERLOCK.FENCE", locked, value); after != before {
		t.Errorf("the fence was %s and is %s", before, after)
	}
	if got := owner.do("TTL", locked); len(got) != len(":600") {
		t.Errorf("the ttl is %s", got)
	}
}

func redisRights(t *testing.T, s *site) {
	lines, err := os.ReadFile(s.credentials)
	if err != nil {
		t.Fatal(err)
	}
	text := scripts(t)
	reads := func(key string) [][]string {
		return [][]string{
			{"GET", key},
			{"EXISTS", key},
			{"TTL", key},
			{"PTTL", key},
			{"INTERLOCK.FENCE", key, "x"},
			{"INTERLOCK.WHY", key},
			{"EVAL", text["left-or-error"], "1", key, "x"},
		}
	}
	takes := func(key string) [][]string {
		return [][]string{
			{"SET", key + "1", "x", "NX", "PX", "5000"},
			{"SET", key + "2", "x"},
			{"SETNX", key + "3", "x"},
			{"EVAL", text["take-all"], "1", key + "4", "x", "5000"},
			{"EVAL", text["take-all"], "1", key + "5", "x", "5000"},
			{"EVAL", text["obtain"], "1", key + "6", "x", "1", "5000"},
			{"EVAL", text["take-or-renew"], "1", key + "7", "x", "5000"},
			{"EVAL", text["take-or-error"], "1", key + "8", "x", "5000"},
		}
	}
	for _, c := range s.callers(t) {
		if c.role == "" {
			continue // cases 86 and 87
		}
		w, key := s.wire(t, "", c.secret), "rights-"+c.role+":"
		check := func(list [][]string, allowed bool) {
			for _, words := range list {
				if got := w.do(words...); strings.HasPrefix(got, "-NOPERM forbidden: ") == allowed {
					t.Errorf("%.60q by %s: %s", words, c.role, got)
				}
			}
		}
		check(reads(key+"1"), c.role != "metrics")
		check(takes(key), c.role == "agent" || c.role == "merger")
	}
	// A holder that may hold no more, and one that is known no more.
	secret, line, err := server.NewCredential(interlock.Principal{Name: "demoted"}, acme)
	if err != nil {
		t.Fatal(err)
	}
	s.reload(t, string(lines)+line+"\n")
	w := s.wire(t, "", secret)
	w.want("+OK", "SET", "rights:9", "x", "NX", "EX", "600")
	viewer, ok := strings.CutSuffix(line, " agent")
	if !ok {
		t.Fatalf("the line is %s", line)
	}
	s.reload(t, string(lines)+viewer+" viewer\n")
	w.want("$x", "GET", "rights:9")
	for _, words := range [][]string{
		{"DEL", "rights:9"},
		{"EXPIRE", "rights:9", "1"},
		{"EVAL", text["release"], "1", "rights:9", "x"},
		{"EVAL", text["renew-early"], "1", "rights:9", "x", "1000"},
	} {
		w.want("-NOPERM forbidden: ", words...)
	}
	w.want("$x", "GET", "rights:9")
	s.reload(t, string(lines))
	w.want("-WRONGPASS ", "GET", "rights:9")
	w.want("closed", "PING")
}
