package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

func TestBodiesAreReadStrictly(t *testing.T) {
	const head = `{"claims":[{"key":"a"}],`
	for body, want := range map[string]string{
		``:                                     "invalid_request: field claims is missing",
		`{}`:                                   "invalid_request: field claims is missing",
		`[]`:                                   "invalid_request: the body: want an object at byte 0, found an array",
		`null`:                                 "found null",
		`{"claims":[]}`:                        "",
		`{"claims":[{"key":"a"}]`:              "found the end of the body",
		`{"claims":[{"key":"a"}]}{}`:           "want nothing more at byte 24, found an object",
		`{"claims":[{"key":"a"}]} x`:           "want nothing more",
		`{"claims":[{"key":"a"}],}`:            "want a string",
		`{"claims":[{"key":"a"},]}`:            "field claims[1]: want an object",
		`{"claims":{"key":"a"}}`:               "field claims: want an array at byte 10, found an object",
		`{"claims":[{"key":1}]}`:               "field claims[0].key: want a string at byte 18, found a number",
		`{"claims":[{"key":null}]}`:            "null: leave the field out instead",
		`{"claims":[{"kee":"a"}]}`:             `unknown field claims[0]."kee": known are key, mode, permits`,
		`{"claims":[{"key":"a","mode":"X"}]}`:  `invalid_mode: field claims[0].mode: no mode "X"`,
		`{"claims":[{"key":"a","key":"b"}]}`:   "field claims[0].key occurs twice",
		head + `"Agent":"a"}`:                  `unknown field "Agent"`,
		head + `"agent":"a","agent":"b"}`:      "field agent occurs twice",
		head + `"agent":"a` + "\xff" + `"}`:    "field agent: not valid UTF-8",
		head + `"agent":"\n` + "\xff" + `"}`:   "field agent: not valid UTF-8",
		head + `"agent":"a` + "\n" + `"}`:      "field agent: want a control character written as",
		head + `"agent":"\ud800"}`:             "half of a surrogate pair",
		head + `"agent":"\ud83d\u0041"}`:       "half of a surrogate pair",
		head + `"agent":"\u12"}`:               "want four hexadecimal digits",
		head + `"agent":"\x41"}`:               "one of the letters that may follow a backslash",
		head + `"agent":"\ud83d\ude00"}`:       "",
		head + `"ttl_ms":1.5}`:                 "want a whole number within 64 bits, found 1.5",
		head + `"ttl_ms":1e3}`:                 "want a whole number",
		head + `"ttl_ms":"30s"}`:               "field ttl_ms: want a whole number",
		head + `"ttl_ms":01}`:                  "want ',' or '}'",
		head + `"ttl_ms":-1}`:                  "invalid_ttl: field ttl_ms: a duration cannot be negative",
		head + `"ttl_ms":9223372036854775808}`: "want a whole number within 64 bits",
		head + `"ttl_ms":9223372036854775807}`: "",
		head + `"wait_ms":-1}`:                 "invalid_ttl: field wait_ms",
		head + `"priority":101}`:               "invalid_priority: field priority: a priority must be from -100 to 100",
		head + `"priority":-9999999999}`:       "invalid_priority",
		head + `"stall_ms":0}`:                 "",
		head + `"preempt":true}`:               `unknown field "preempt"`,
		head + `"on_conflict":"preempt"}`:      "",
		head + `"session":"s_1"}`:              "invalid_id: invalid id of a session",
		head + `"session":"s_00000000000000000000000000000000"}`:             "invalid_id",
		head + `"session":"l_00000000000000000000000000000001"}`:             "invalid_id",
		`{"claims":[` + strings.Repeat(`{"key":"a"},`, 64) + `{"key":"a"}]}`: "too_many_claims: more than 64 claims",
		strings.Repeat("[", 100_000):                                         "want an object",
	} {
		cmd := &engine.Acquire{}
		content := []byte(body)
		if len(content) == 0 {
			content = []byte("{}")
		}
		d := jsonIn{b: content}
		decodeAcquire(&d, cmd)
		if d.err == nil {
			d.end()
		}
		switch {
		case want == "" && d.err != nil:
			t.Errorf("%.80s: %v", body, d.err)
		case want != "" && (d.err == nil || !strings.Contains(d.err.Error(), want)):
			t.Errorf("%.80s: %v, want %q", body, d.err, want)
		}
	}
}

// A name occurs once in each object, also within a value that is kept as it is, however many there are and however it
// is escaped.
func TestNamesOccurOnce(t *testing.T) {
	many := ""
	for i := range 100 {
		many += fmt.Sprintf(`"n%d":%d,`, i, i)
	}
	for value, good := range map[string]bool{
		`{"a":1,"b":{"a":1},"c":[{"a":1},{"a":2}]}`: true, `{"a":1,"A":2}`: true, `{"":1}`: true,
		`{` + many + `"x":1}`: true,
		`{"a":1,"a":1}`:       false, `{"a":1,"\u0061":1}`: false, `[{"b":{"a":1,"a":2}}]`: false, `{"":1,"":2}`: false,
		`{` + many + `"n3":1}`: false, `{` + many + `"n99":1}`: false, `{"a":{},"b":1,"a":[]}`: false,
	} {
		d := jsonIn{b: []byte(value)}
		d.any(maxDocumentDepth)
		if d.end(); (d.err == nil) != good || !good && !strings.Contains(d.err.Message, "occurs twice") {
			t.Errorf("%.60s: %v", value, d.err)
		}
	}
}

func TestBodyMeansWhatItSays(t *testing.T) {
	cmd := &engine.Acquire{}
	d := jsonIn{b: []byte(` { "agent" : "b\u00fcro\/\ud83d\ude00\t\"" , "session":"s_000102030405060708090a0b0c0d0e0f","flow":"f","purpose":"p",
		"claims" : [ {"key":"a/b","mode":"intent-shared"} , {"mode":"shared","key":"c"} ,{"key":"d"}],
		"ttl_ms":1000,"grace_ms":0,"max_hold_ms":9223372036854775807,"stall_ms":0,"priority":-7,"wait_ms":60000,"on_conflict":"wait"}  `)}
	wait := decodeAcquire(&d, cmd)
	d.end()
	if d.err != nil {
		t.Fatal(d.err)
	}
	if wait != interlock.MaxLongPoll || cmd.Agent != "büro/😀\t\"" || cmd.Flow != "f" || cmd.Purpose != "p" ||
		cmd.TTL != time.Second ||
		cmd.Grace != engine.NoGrace || cmd.MaxHold != math.MaxInt64 || cmd.Priority != -7 || cmd.OnConflict != interlock.Wait ||
		cmd.Session.String() != "s_000102030405060708090a0b0c0d0e0f" || len(cmd.Claims) != 3 ||
		cmd.Claims[0] != (interlock.Claim{Key: "a/b", Mode: interlock.IntentShared}) || cmd.Claims[1] != (interlock.Claim{
		Key: "c", Mode: interlock.Shared,
	}) {
		t.Errorf("%v %+v", wait, cmd)
	}
}

func TestProgressIsTextOrObject(t *testing.T) {
	for body, want := range map[string]string{
		`{"progress":"3/5"}`: "3/5",
		`{"progress":{"step": 3, "of":[5,null,true,-1.5e3,"x"]}}`: `{"step": 3, "of":[5,null,true,-1.5e3,"x"]}`,
		`{"progress":{}}`:        "{}",
		`{"progress":3}`:         "!want a string",
		`{"progress":{"a":}}`:    "!want a value",
		`{"progress":{"a":tru}}`: "!want a value",
		`{"progress":{"a":1,}}`:  "!want a string",
		`{"progress":` + strings.Repeat(`{"a":`, 20) + `1` + strings.Repeat(`}`, 20) + `}`: "!nested deeper than 16",
	} {
		var cmd engine.Heartbeat
		d := jsonIn{b: []byte(body)}
		d.heartbeatRequest(&cmd)
		got := cmd.Progress
		if failure, fails := strings.CutPrefix(want, "!"); fails {
			if d.err == nil || !strings.Contains(d.err.Error(), failure) {
				t.Errorf("%s: %v, want %q", body, d.err, failure)
			}
		} else if d.err != nil || got != want {
			t.Errorf("%s: %q %v", body, got, d.err)
		}
	}
}

// The bodies that every decoder must survive.
var bodySeeds = []string{
	``, `{}`, `null`, `[]`, `"`, `{"`, `{"claims":[{"key":"account:1","mode":"shared"}],"wait_ms":0}`,
	`{"agent":"a\u00e9\ud83d\ude00","claims":[{"key":"a"}],"ttl_ms":30000,"grace_ms":5000,"priority":-3}`,
	`{"outcome":"done","note":"line\nline"}`, `{"progress":{"a":[1,2,{"b":null}]}}`,
	`{"key":"a","fence":"18446744073709551615"}`,
	`{"any":true,"claims":[{"key":"gpu:1","permits":2},{"key":"gpu:2","mode":"permits","permits":1}],"group":"batch"}`,
	`{"any_prefix":"gpu:"}`,
	`{"claims":[{"key":"q","parts":16}],"divide":"load","stall_ms":5,"lock_delay_ms":5,"max_wait_ms":5}`,
	`{"keys":"free","for_ms":5,"reason":"?"}`,
	`{"on":{"session":"s-1","flow":"main"},"wait_ms":5}`,
	`{"pattern":"a:{id}","groups":[{"name":"x","min":1}],"allow":[{"principal":"*","modes":["shared"]}]}`,
	`{"strict_order":true,"quota":{"keys":5}}`,
	`{"as_of":"3","reads":[{"key":"a","version":"1"},{"key":"b","absent":true}],"writes":[{"key":"a","put":{"x":[1]}},{"key":"b","base64":"/w=="},{"key":"c","add":-5,"min":0}]}`,
	`{"leases":["l_00000000000000000000000000000001"],"writes":[{"key":"a","merge":null},{"key":"b","text":"x","content_type":"text/x"},{"key":"c","delete":true}]}`,
	`{"tool":"charge","target":"customer:1","arguments":{"cents":1.2e3,"n":9007199254740993}}`, `{"result":{"a":1}}`,
	`{"happened":false,"reason":"?"}`,
	`{"key":"a","fence":"1","reason":"\u001b[31m"}`, `{"agent":"a","ttl_ms":1000}`, "{\"agent\":\"\xff\"}",
	`{"agent":"\ud800"}`, `{"a":{"a":{"a":{}}}}`,
}

// FuzzAcquireBody compares what is accepted with encoding/json: whatever we take,
// it takes too, and means the same.
func FuzzAcquireBody(f *testing.F) {
	for _, seed := range bodySeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		cmd := &engine.Acquire{}
		d := jsonIn{b: bytes.Clone(body)}
		decodeAcquire(&d, cmd)
		if d.err == nil {
			d.end()
		}
		if !bytes.Equal(d.b, body) {
			t.Fatal("the body was changed")
		}
		if d.err != nil {
			if d.err.Message == "" || !utf8.ValidString(d.err.Message) {
				t.Fatalf("message %q", d.err.Message)
			}
			return
		}
		var std struct {
			Agent, Flow, Purpose string
			Claims               []struct {
				Key, Mode               string
				Permits, Parties, Parts uint32
			}
			Any        *bool
			Prefix     *string `json:"any_prefix"`
			Group      string
			Divide     string
			TTL        int64 `json:"ttl_ms"`
			Priority   int
			Session    string
			Grace      *int64 `json:"grace_ms"`
			MaxHold    int64  `json:"max_hold_ms"`
			Stall      int64  `json:"stall_ms"`
			LockDelay  int64  `json:"lock_delay_ms"`
			MaxWait    int64  `json:"max_wait_ms"`
			Wait       *int64 `json:"wait_ms"`
			OnConflict string `json:"on_conflict"`
		}
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&std); err != nil {
			t.Fatalf("we take %q, encoding/json does not: %v", body, err)
		}
		if std.Agent != cmd.Agent || std.Flow != cmd.Flow || std.Purpose != cmd.Purpose ||
			len(std.Claims) != len(cmd.Claims) || std.Priority != cmd.Priority {
			t.Fatalf("%q: %+v, encoding/json has %+v", body, cmd, std)
		}
		for i, c := range std.Claims {
			have := cmd.Claims[i]
			if c.Key != string(have.Key) || c.Mode != "" && c.Mode != have.Mode.String() ||
				c.Permits+c.Parties+c.Parts != have.Count {
				t.Fatalf("%q: claim %+v, encoding/json has %+v", body, cmd.Claims[i], c)
			}
		}
		if any := std.Any != nil && *std.Any || std.Prefix != nil; any != cmd.Any || std.Group != cmd.Group {
			t.Fatalf("%q: any %v, group %q", body, cmd.Any, cmd.Group)
		}
		if std.TTL < math.MaxInt64/1_000_000 && time.Duration(std.TTL)*time.Millisecond != cmd.TTL {
			t.Fatalf("%q: ttl %v", body, cmd.TTL)
		}
	})
}

// FuzzOtherBodies: no body may make a decoder panic, and what is accepted is JSON.
func FuzzOtherBodies(f *testing.F) {
	for _, seed := range bodySeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for name, decode := range map[string]func(*jsonIn){
			"release": func(d *jsonIn) { d.releaseRequest(&engine.Release{}) },
			"renew":   func(d *jsonIn) { d.renewRequest(&engine.Renew{}) },
			"session": func(d *jsonIn) { d.openSessionRequest(&engine.OpenSession{}) },
			"check":   func(d *jsonIn) { decodeCheckFence(d, &engine.CheckFence{}) },
			"revoke":  func(d *jsonIn) { decodeRevoke(d, &engine.Revoke{}) },
			"convert": func(d *jsonIn) { decodeConvert(d, &engine.Convert{}) },
			"arrive":  func(d *jsonIn) { decodeArrive(d, &engine.Arrive{}) },
			"park":    func(d *jsonIn) { decodePark(d, &engine.Park{}) },
			"resume":  func(d *jsonIn) { decodeResume(d, &engine.Resume{}) },
			"declare": func(d *jsonIn) { decodeDeclare(d, &engine.Declare{}) },
			"pattern": func(d *jsonIn) { decodePattern(d, &engine.SetPattern{}) },
			"setting": func(d *jsonIn) { d.settingsRequest(&interlock.Settings{}) },
			"commit":  func(d *jsonIn) { decodeCommit(d, &engine.Commit{}) },
			"effect":  func(d *jsonIn) { decodeClaimEffect(d, &engine.ClaimEffect{}) },
			"done":    func(d *jsonIn) { decodeDone(d, &engine.SettleEffect{}) },
			"reason":  func(d *jsonIn) { d.reasonRequest(&engine.SettleEffect{}) },
			"outcome": func(d *jsonIn) { decodeReconcile(d, &engine.SettleEffect{}) },
		} {
			d := jsonIn{b: body}
			if decode(&d); d.err == nil {
				d.end()
			}
			if d.err == nil && !json.Valid(body) {
				t.Fatalf("%s takes %q, which is not JSON", name, body)
			}
		}
	})
}

// FuzzKeyPath: no path makes the door panic or answer for another key.
func FuzzKeyPath(f *testing.F) {
	for _, seed := range []string{
		"a", "a/b", "a%2Fb", "%", "%zz", "a//b", "../../healthz", "a?b", "\x00", "ä", "%25", strings.Repeat("a/", 20),
	} {
		f.Add(seed)
	}
	d := newDoor(f)
	d.loose = true
	f.Fuzz(func(t *testing.T, path string) {
		d := *d
		d.TB = t
		r := d.request("GET", "/v1/keys/x", "")
		u, err := r.URL.Parse("http://localhost/v1/keys/x")
		if err != nil {
			t.Fatal(err)
		}
		u.Path, u.RawPath = "/v1/keys/"+path, ""
		r.URL = u
		got := d.send(r)
		if got.status == 200 && got.str("key") != path {
			t.Fatalf("asked for %q, answered for %q", path, got.str("key"))
		}
		if got.status != 200 && got.status != 400 {
			t.Fatalf("%q: %d %s", path, got.status, got.raw)
		}
	})
}

// FuzzText: any text of agents goes out as valid JSON, unchanged except for invisible
// characters.
func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"plain", "a\x1b[31mred", "\u202eevil", "<script>&", "\xff\xfe", "line\nline\ttab\r", "\u2028\u2029", "😀", "\u200b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var j jsonOut
		j.open("")
		j.text("text", s)
		j.note("note", s)
		j.str("raw", s)
		j.close()
		var back map[string]string
		if err := json.Unmarshal(j.b, &back); err != nil {
			t.Fatalf("%q: %v in %s", s, err, j.b)
		}
		if back["raw"] != strings.ToValidUTF8(s, "\ufffd") && utf8.ValidString(s) {
			t.Fatalf("%q became %q", s, back["raw"])
		}
		if back["text"] != cleanText(s) || back["note"] != cleanNote(s) || cleanText(back["text"]) != back["text"] {
			t.Fatalf("%q: %q", s, back)
		}
		for _, r := range back["text"] {
			if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e {
				t.Fatalf("%q lets %U through", s, r)
			}
		}
	})
}

// BenchmarkAcquireBody decodes an ordinary request for a lease.
func BenchmarkAcquireBody(b *testing.B) {
	body := []byte(`{"agent":"billing-7","session":"s_000102030405060708090a0b0c0d0e0f","flow":"main","purpose":"apply late fee",` +
		`"claims":[{"key":"account:12345","mode":"exclusive"},{"key":"org:acme/runs","permits":1}],"ttl_ms":30000,"grace_ms":5000,` +
		`"priority":0,"wait_ms":10000,"on_conflict":"wait"}`)
	b.ReportAllocs()
	for b.Loop() {
		var cmd engine.Acquire
		d := jsonIn{b: body}
		decodeAcquire(&d, &cmd)
		if d.end(); d.err != nil {
			b.Fatal(d.err)
		}
	}
}
