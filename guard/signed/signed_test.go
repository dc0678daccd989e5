package signed

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

var noon = time.Unix(1_790_000_000, 250_000_000)

func example() *Statement {
	return &Statement{
		Namespace: "acme",
		Claims: []interlock.Claim{
			{Key: "account:12345", Mode: interlock.Exclusive},
			{Key: "ledger:2026/q1", Mode: interlock.Shared},
			{Key: "repo:web/src", Mode: interlock.Exclusive},
		},
		Fence:  1<<64 - 1,
		Holder: Holder{Agent: `<billing> "7"`, Session: "swift-otter", Flow: "main"},
	}
}

func signedExample(t testing.TB, r *Ring) string {
	t.Helper()
	text, _, err := r.Sign(example(), noon, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSignAndVerify(t *testing.T) {
	r := NewRing()
	want := example()
	text, id, err := r.Sign(want, noon, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	ks := r.KeySet(noon)
	if _, ok := ks[id]; !ok || len(ks) != 1 {
		t.Errorf("the key set has %d keys; the one that signed is in it: %v", len(ks), ok)
	}
	got, err := ks.Verify(text, noon, Want{Namespace: "acme", Key: "account:12345", Fence: want.Fence})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v came back as %+v", want, got)
	}
	if got.Expires.Sub(got.Issued) != 30*time.Second {
		t.Errorf("it holds from %v to %v", got.Issued, got.Expires)
	}
	long, _, err := r.Sign(example(), noon, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ks.Verify(long, noon.Add(MaxTTL), Want{Namespace: "acme"}); !isCode(err, interlock.CodeInvalidStatement) {
		t.Errorf("a statement holds for longer than %v: %v", MaxTTL, err)
	}
}

func isCode(err error, code interlock.Code) bool {
	return errors.Is(err, &interlock.Error{Code: code})
}

func TestCovers(t *testing.T) {
	s := example()
	for key, want := range map[interlock.Key]bool{
		"account:12345":        true,
		"account:12345/fees":   true,
		"account:123456":       false,
		"account:1234":         false,
		"account:":             false,
		"":                     false,
		"ledger:2026/q1":       false, // shared
		"repo:web":             false, // an ancestor
		"repo:web/src":         true,
		"repo:web/src/auth.ts": true,
		"repo:web/src.old":     false,
	} {
		if got := s.Covers(key); got != want {
			t.Errorf("%q is covered: %v, want %v", key, got, want)
		}
	}
}

func TestWanted(t *testing.T) {
	r := NewRing()
	text := signedExample(t, r)
	for name, c := range map[string]struct {
		after time.Duration
		want  Want
		code  interlock.Code
	}{
		"all of it":           {0, Want{"acme", "account:12345", 1<<64 - 1}, ""},
		"no key":              {0, Want{Namespace: "acme"}, ""},
		"the last moment":     {30*time.Second - 1, Want{Namespace: "acme"}, ""},
		"at its end":          {30 * time.Second, Want{Namespace: "acme"}, interlock.CodeInvalidStatement},
		"a clock behind":      {-Leeway, Want{Namespace: "acme"}, ""},
		"a clock far behind":  {-Leeway - 1, Want{Namespace: "acme"}, interlock.CodeInvalidStatement},
		"another namespace":   {0, Want{"acme2", "account:12345", 0}, interlock.CodeForeignFence},
		"no namespace":        {0, Want{"", "account:12345", 0}, interlock.CodeForeignFence},
		"another key":         {0, Want{"acme", "account:9", 0}, interlock.CodeForeignFence},
		"a key that it reads": {0, Want{"acme", "ledger:2026/q1", 0}, interlock.CodeForeignFence},
	} {
		_, err := r.KeySet(noon).Verify(text, noon.Add(c.after), c.want)
		if c.code == "" && err != nil || c.code != "" && !isCode(err, c.code) {
			t.Errorf("%s: %v, want %q", name, err, c.code)
		}
	}
	low := example()
	low.Fence = 16
	text, _, _ = r.Sign(low, noon, time.Minute)
	if _, err := r.KeySet(noon).Verify(text, noon, Want{"acme", "account:12345", 17}); !isCode(err, interlock.CodeFenced) {
		t.Errorf("a fence below the highest seen: %v", err)
	}
}

// forge signs any header and payload with the ring's own key: what is wrong is not
// the signature.
func forge(r *Ring, header, payload string) string {
	text := encoding.EncodeToString([]byte(header)) + "." + encoding.EncodeToString([]byte(payload))
	return text + "." + encoding.EncodeToString(r.keys[len(r.keys)-1].sign([]byte(text)))
}

func TestMalformed(t *testing.T) {
	r := NewRing()
	ks := r.KeySet(noon)
	id := r.keys[0].id
	good := signedExample(t, r)
	head, rest, _ := strings.Cut(good, ".")
	body, tail, _ := strings.Cut(rest, ".")
	fine := string(header(id))
	const content = `{"iss":"interlock","ns":"acme","claims":[],"fence":"1","holder":{},"iat":1790000000,"exp":1790000030}`
	if _, err := ks.Verify(forge(r, fine, content), noon, Want{Namespace: "acme"}); err != nil {
		t.Fatal("what the others are variations of:", err)
	}
	for name, text := range map[string]string{
		"nothing":             "",
		"dots":                "..",
		"a line break inside": head + "." + body + "." + tail[:9] + "\r\n" + tail[9:],
		"two parts":           head + "." + body,
		"four parts":          good + ".",
		"padding":             good + "=",
		"a line break":        good + "\n",
		"no signature":        head + "." + body + ".",
		"too long":            good + strings.Repeat("A", MaxBytes),
		"parts exchanged":     body + "." + head + "." + tail,
		"standard base64":     head + "." + body + "." + strings.Repeat("+/", 43),
		"alg none": encoding.EncodeToString([]byte(`{"alg":"none","kid":"`+id+`","typ":"`+Type+`"}`)) + "." +
			body + ".",
		"another alg":           forge(r, `{"alg":"HS256","kid":"`+id+`","typ":"`+Type+`"}`, content),
		"another typ":           forge(r, `{"alg":"EdDSA","kid":"`+id+`","typ":"JWT"}`, content),
		"no typ":                forge(r, `{"alg":"EdDSA","kid":"`+id+`"}`, content),
		"no kid":                forge(r, `{"alg":"EdDSA","typ":"`+Type+`"}`, content),
		"crit":                  forge(r, `{"alg":"EdDSA","crit":["x"],"kid":"`+id+`","typ":"`+Type+`"}`, content),
		"a key in the header":   forge(r, `{"alg":"EdDSA","jwk":{},"kid":"`+id+`","typ":"`+Type+`"}`, content),
		"alg twice":             forge(r, `{"alg":"none","alg":"EdDSA","kid":"`+id+`","typ":"`+Type+`"}`, content),
		"other case":            forge(r, `{"ALG":"EdDSA","kid":"`+id+`","typ":"`+Type+`"}`, content),
		"space in the header":   forge(r, fine+" ", content),
		"a long header":         forge(r, fine+strings.Repeat(" ", 300), content),
		"no JSON":               forge(r, fine, "x"),
		"another issuer":        forge(r, fine, strings.Replace(content, `"interlock"`, `"elsewhere"`, 1)),
		"fence no string":       forge(r, fine, strings.Replace(content, `"1"`, `1`, 1)),
		"fence too large":       forge(r, fine, strings.Replace(content, `"1"`, `"18446744073709551616"`, 1)),
		"fence negative":        forge(r, fine, strings.Replace(content, `"1"`, `"-1"`, 1)),
		"a time as text":        forge(r, fine, strings.Replace(content, `1790000030`, `"1790000030"`, 1)),
		"a time without end":    forge(r, fine, strings.Replace(content, `1790000030`, `1e400`, 1)),
		"no exp":                forge(r, fine, strings.Replace(content, `,"exp":1790000030`, ``, 1)),
		"too long from iat on":  forge(r, fine, strings.Replace(content, `1790000030`, `1790000301`, 1)),
		"signed by another key": signedExample(t, NewRing()),
		"another's signature":   head + "." + body + signedExample(t, NewRing())[len(head)+len(body)+1:],
	} {
		if s, err := ks.Verify(text, noon, Want{Namespace: "acme"}); s != nil || !isCode(err, interlock.CodeInvalidStatement) {
			t.Errorf("%s: %v, %v; want invalid_statement", name, s, err)
		}
	}
}

// Whatever is changed in a statement, it holds no longer.
func TestEveryByteCounts(t *testing.T) {
	r := NewRing()
	ks := r.KeySet(noon)
	good := []byte(signedExample(t, r))
	for i := range good {
		for _, b := range []byte("A-_.=Bz \n\x00") {
			if good[i] == b {
				continue
			}
			changed := bytes.Clone(good)
			changed[i] = b
			if _, err := ks.Verify(
				string(changed), noon, Want{Namespace: "acme"},
			); !isCode(err, interlock.CodeInvalidStatement) {
				t.Fatalf("byte %d changed to %q: %v", i, b, err)
			}
		}
		if _, err := ks.Verify(
			string(good[:i]), noon, Want{Namespace: "acme"},
		); !isCode(err, interlock.CodeInvalidStatement) {
			t.Fatalf("cut at byte %d: %v", i, err)
		}
	}
}

// Accepted statements are exactly those that a key of the set has signed.
func FuzzVerify(f *testing.F) {
	r := NewRing()
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	r.keys = []*key{keyOf(private, noon)}
	ks := r.KeySet(noon)
	good := signedExample(f, r)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add("..")
	f.Add(forge(r, `{"alg":"none"}`, "{}"))
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ks.Verify(text, noon, Want{Namespace: "acme"})
		if (s == nil) != (err != nil) {
			t.Fatalf("%v, %v", s, err)
		}
		if err == nil && text != good {
			t.Fatalf("accepted: %q", text)
		}
		if err != nil && !isCode(err, interlock.CodeInvalidStatement) && !isCode(err, interlock.CodeForeignFence) {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

// Whatever payload is signed is read without trouble, and what is read comes back.
func FuzzPayload(f *testing.F) {
	good, err := encodePayload(example())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"iss":"interlock","claims":[{"key":"a","mode":"later"}],"fence":"1","iat":0,"exp":0.001,"more":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodePayload(b)
		if err != nil {
			return
		}
		again, err := encodePayload(s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodePayload(again)
		if err != nil || !reflect.DeepEqual(back, s) {
			t.Fatalf("%+v became %+v, %v", s, back, err)
		}
	})
}

func TestKeySet(t *testing.T) {
	r := NewRing()
	b, err := json.Marshal(r.KeySet(noon))
	if err != nil {
		t.Fatal(err)
	}
	ks, err := ParseKeySet(b)
	if err != nil || !reflect.DeepEqual(ks, r.KeySet(noon)) {
		t.Errorf("%s became %v, %v", b, ks, err)
	}
	// The example of RFC 8037, appendix A.3.
	const x, id = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
	key := func(kty, x, id, more string) string {
		return fmt.Sprintf(`{"kty":%q,"crv":"Ed25519","x":%q,"kid":%q%s}`, kty, x, id, more)
	}
	for _, c := range []struct {
		name string
		set  string
		ok   bool
	}{
		{"the standard's example", `{"keys":[` + key("OKP", x, id, "") + `]}`, true},
		{
			"with what we do not know",
			`{"keys":[{"kty":"RSA"},` + key("OKP", x, id, `,"alg":"EdDSA","use":"sig","x5c":[]`) + `],"more":1}`, true,
		},
		{"for encryption", `{"keys":[` + key("OKP", x, id, `,"use":"enc"`) + `]}`, false},
		{"with another id", `{"keys":[` + key("OKP", x, "a", "") + `]}`, false},
		{"cut", `{"keys":[` + key("OKP", x[:40], id, "") + `]}`, false},
		{"empty", `{"keys":[]}`, false},
		{"no JSON", `keys`, false},
		{"with two lists", `{"keys":[{"kty":"RSA"}],"keys":[` + key("OKP", x, id, "") + `]}`, false},
		{"with two keys in one", `{"keys":[` + key("OKP", x, id, `,"X":"`+x+`"`) + `]}`, false},
		{"too large", `{"keys":[` + key("OKP", x, id, "") + `]}` + strings.Repeat(" ", maxKeySetBytes), false},
	} {
		ks, err := ParseKeySet([]byte(c.set))
		if (err == nil) != c.ok || c.ok && len(ks[id]) != ed25519.PublicKeySize {
			t.Errorf("%s: %v, %v", c.name, ks, err)
		}
	}
}

// The largest lease there can be has a statement.
func TestLargest(t *testing.T) {
	s := example()
	s.Claims = nil
	for i := range interlock.MaxClaims {
		key := fmt.Sprintf("%03d", i) + strings.Repeat(`"`, interlock.MaxKeyBytes-3)
		s.Claims = append(s.Claims, interlock.Claim{Key: interlock.Key(key), Mode: interlock.SharedIntentExclusive})
	}
	s.Holder = Holder{
		strings.Repeat(`"`, interlock.MaxNameBytes), strings.Repeat("x", interlock.MaxNameBytes),
		strings.Repeat(`"`, interlock.MaxNameBytes),
	}
	s.Namespace = interlock.Namespace(strings.Repeat(`"`, interlock.MaxNamespaceBytes))
	r := NewRing()
	text, _, err := r.Sign(s, noon, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.KeySet(noon).Verify(text, noon, Want{Namespace: s.Namespace}); err != nil {
		t.Errorf("%d bytes: %v", len(text), err)
	}
}
