package securitytest

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/signed"
)

var fenceAttacks = []attack{
	{
		64, "Algorithms",
		"presents a signed fence with algorithm none, or signed by HMAC with the public key as its secret",
		"invalid_statement", fenceAlgorithms,
		[]string{"signed.TestMalformed"},
	},
	{
		65, "Other keys",
		"signs a fence itself, under the server's key id, its own key id, or with the key in the header (jwk, jku, x5c)",
		"invalid_statement", fenceKeys,
		[]string{"signed.TestKeySet"},
	},
	{
		66, "Changed fences",
		"changes the fence, the key, the namespace or the end of a signed fence, or writes it in another form",
		"invalid_statement", changedFences,
		[]string{"signed.TestEveryByteCounts"},
	},
	{
		67, "Other times", "shows a signed fence after its end, before its beginning, or asks for one that holds for a year",
		"invalid_statement; the server signs for five minutes at most", fenceTimes,
		[]string{"proxy.TestStatementsOfAnotherTime"},
	},
	{
		68, "Other audiences",
		"shows a good signed fence for another key, another tenant's namespace, after a newer fence, or a token that was " +
			"made for something else",
		"foreign_fence, fenced or invalid_statement", fenceAudiences,
		[]string{"proxy.TestStatements", "signed.TestCovers"},
	},
	{
		69, "Fences of others",
		"revokes, or has checked, a fence by guessing, with the fence of another key or of another tenant",
		"409 fenced, and the holder keeps what it has", guessedFences, nil,
	},
}

// evidence is a signed fence, and the keys with which a guard checks it.
type evidence struct {
	statement string
	at        time.Time // just after it was signed: it holds for seconds, which a busy machine takes for a case
	keys      signed.KeySet
	fence     interlock.Fence
	lease     string
}

const fenced = "signed:1"

func (s *site) evidence(t *testing.T) *evidence {
	t.Helper()
	if s.shown == nil {
		keys, err := signed.ParseKeySet([]byte(s.send(t, ask{method: "GET", path: "/v1/fences/keys"}).want(200).raw))
		if err != nil {
			t.Fatal(err)
		}
		e := &evidence{keys: keys}
		got := s.agent(t, rival, "POST", "/v1/leases", `{"ttl_ms":600000,"claims":[{"key":"`+fenced+`"}]}`).want(200)
		e.lease = got.must("lease.id")
		if _, err := fmt.Sscan(got.must("lease.fence"), &e.fence); err != nil {
			t.Fatal(err)
		}
		e.statement = s.agent(t, rival, "POST", "/v1/leases/"+e.lease+"/statement", `{}`).want(200).must("statement")
		e.at = time.Now()
		s.shown = e
	}
	// The real one is good: the refusals below are due to the changes made to it.
	if err := s.shown.check(
		s.shown.statement, s.shown.at, signed.Want{Namespace: rival, Key: fenced, Fence: s.shown.fence},
	); err != "" {
		t.Fatal(err)
	}
	return s.shown
}

func (e *evidence) check(statement string, now time.Time, want signed.Want) interlock.Code {
	_, err := e.keys.Verify(statement, now, want)
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		return refusal.Code
	} else if err != nil {
		return interlock.Code(err.Error())
	}
	return ""
}

// refuses checks that a guard takes none of some forgeries.
func (e *evidence) refuses(t *testing.T, forgeries map[string]string) {
	t.Helper()
	for name, text := range forgeries {
		if text == e.statement {
			t.Errorf("%s: nothing was changed", name)
		}
		if code := e.check(text, e.at, signed.Want{Namespace: rival}); code != interlock.CodeInvalidStatement {
			t.Errorf("%s: %q", name, code)
		}
	}
}

func (e *evidence) parts() (head, body, signature string) {
	head, rest, _ := strings.Cut(e.statement, ".")
	body, signature, _ = strings.Cut(rest, ".")
	return head, body, signature
}

func encoded(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func decoded(text string) string {
	b, _ := base64.RawURLEncoding.DecodeString(text)
	return string(b)
}

func fenceAlgorithms(t *testing.T, s *site) {
	e := s.evidence(t)
	head, body, signature := e.parts()
	header := decoded(head)
	forgeries := map[string]string{}
	for _, algorithm := range []string{"none", "None", "NONE", "", "HS256", "RS256", "ES256", "EdDSA ", "eddsa"} {
		h := encoded(strings.Replace(header, `"EdDSA"`, `"`+algorithm+`"`, 1))
		forgeries[algorithm+" with its signature"] = h + "." + body + "." + signature
		forgeries[algorithm+" without"] = h + "." + body + "."
		for id, public := range e.keys {
			mac := hmac.New(sha256.New, public)
			mac.Write([]byte(h + "." + body))
			forgeries[algorithm+" by HMAC of "+id] = h + "." + body + "." + encoded(string(mac.Sum(nil)))
		}
	}
	forgeries["no signature"] = head + "." + body + "."
	forgeries["no part for it"] = head + "." + body
	forgeries["zeros"] = head + "." + body + "." + encoded(strings.Repeat("\x00", 64))
	e.refuses(t, forgeries)
}

func fenceKeys(t *testing.T, s *site) {
	e := s.evidence(t)
	head, body, _ := e.parts()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(header string) string {
		text := encoded(header) + "." + body
		return text + "." + encoded(string(ed25519.Sign(private, []byte(text))))
	}
	var h struct{ Alg, Kid, Typ string }
	if err := json.Unmarshal([]byte(decoded(head)), &h); err != nil || e.keys[h.Kid] == nil {
		t.Fatal(decoded(head), err)
	}
	jwk := `{"kty":"OKP","crv":"Ed25519","x":"` + encoded(string(public)) + `"}`
	own := signed.NewRing()
	other, _, err := own.Sign(
		&signed.Statement{
			Namespace: rival, Claims: []interlock.Claim{{Key: fenced, Mode: interlock.Exclusive}}, Fence: e.fence,
		},
		e.at, time.Minute,
	)
	if err != nil {
		t.Fatal(err)
	}
	e.refuses(t, map[string]string{
		"its own key under the server's id": sign(decoded(head)),
		"a key in the header": sign(fmt.Sprintf(
			`{"alg":"EdDSA","kid":%q,"typ":%q,"jwk":%s}`, h.Kid, h.Typ, jwk,
		)),
		"a key set elsewhere": sign(fmt.Sprintf(
			`{"alg":"EdDSA","kid":%q,"typ":%q,"jku":"https://evil.example/keys"}`, h.Kid, h.Typ,
		)),
		"a certificate":    sign(fmt.Sprintf(`{"alg":"EdDSA","kid":%q,"typ":%q,"x5c":["x"]}`, h.Kid, h.Typ)),
		"a path for an id": sign(fmt.Sprintf(`{"alg":"EdDSA","kid":"../../dev/null","typ":%q}`, h.Typ)),
		"no id":            sign(fmt.Sprintf(`{"alg":"EdDSA","kid":"","typ":%q}`, h.Typ)),
		"another ring's":   other,
	})
	// A key set in which a stranger's key has the server's id is no key set.
	if _, err := signed.ParseKeySet(fmt.Appendf(
		nil, `{"keys":[{"kty":"OKP","crv":"Ed25519","x":%q,"kid":%q}]}`, encoded(string(public)), h.Kid,
	)); err == nil {
		t.Error("a key may have another one's id")
	}
}

func changedFences(t *testing.T, s *site) {
	e := s.evidence(t)
	head, body, signature := e.parts()
	payload := decoded(body)
	forgeries := map[string]string{}
	for from, to := range map[string]string{
		fmt.Sprintf(`"fence":"%d"`, e.fence): `"fence":"18446744073709551615"`, fenced: "signed:2",
		`"ns":"acm"`: `"ns":"acme"`, `"exp":1`: `"exp":9`, "exclusive": "shared",
	} {
		changed := strings.Replace(payload, from, to, 1)
		if changed == payload {
			t.Fatalf("there is no %s in %s", from, payload)
		}
		forgeries[from] = head + "." + encoded(changed) + "." + signature
	}
	forgeries["padding"] = head + "." + body + "." + signature + "="
	forgeries["a line break"] = head + "." + body[:9] + "\n" + body[9:] + "." + signature
	forgeries["another part"] = e.statement + ".x"
	forgeries["as JSON"] = fmt.Sprintf(`{"payload":%q,"protected":%q,"signature":%q}`, body, head, signature)
	forgeries["too long"] = head + "." + body + strings.Repeat("A", signed.MaxBytes) + "." + signature
	forgeries["spaces"] = " " + e.statement
	e.refuses(t, forgeries)
}

func fenceTimes(t *testing.T, s *site) {
	e := s.evidence(t)
	want := signed.Want{Namespace: rival, Key: fenced, Fence: e.fence}
	for name, at := range map[string]time.Time{
		"after its end": e.at.Add(signed.DefaultTTL + signed.Leeway), "long after": e.at.Add(1000 * time.Hour),
		"before": e.at.Add(-time.Hour),
	} {
		if code := e.check(e.statement, at, want); code != interlock.CodeInvalidStatement {
			t.Errorf("%s: %q", name, code)
		}
	}
	for _, ttl := range []string{"31536000000", "300001", "0", "-1"} {
		got := s.agent(t, rival, "POST", "/v1/leases/"+e.lease+"/statement", `{"ttl_ms":`+ttl+`}`)
		if got.status == 200 {
			if code := e.check(
				got.must("statement"), time.Now().Add(signed.MaxTTL+time.Second), want,
			); code != interlock.CodeInvalidStatement {
				t.Errorf("ttl_ms %s: it still holds: %q", ttl, code)
			}
		} else if got.status != 400 {
			t.Errorf("ttl_ms %s: %d %s", ttl, got.status, got.raw)
		}
	}
}

func fenceAudiences(t *testing.T, s *site) {
	e := s.evidence(t)
	for name, c := range map[string]struct {
		want signed.Want
		code interlock.Code
	}{
		"another key":        {signed.Want{Namespace: rival, Key: "signed:2"}, interlock.CodeForeignFence},
		"a longer name":      {signed.Want{Namespace: rival, Key: "signed:11"}, interlock.CodeForeignFence},
		"an ancestor":        {signed.Want{Namespace: rival, Key: "signed"}, interlock.CodeForeignFence},
		"another namespace":  {signed.Want{Namespace: acme, Key: fenced}, interlock.CodeForeignFence},
		"no namespace":       {signed.Want{Key: fenced}, interlock.CodeForeignFence},
		"a newer fence seen": {signed.Want{Namespace: rival, Key: fenced, Fence: e.fence + 1}, interlock.CodeFenced},
	} {
		if code := e.check(e.statement, e.at, c.want); code != c.code {
			t.Errorf("%s: %q, want %q", name, code, c.code)
		}
	}
	head, body, signature := e.parts()
	header := decoded(head)
	e.refuses(t, map[string]string{
		"a token of another type": encoded(strings.Replace(header, signed.Type, "JWT", 1)) + "." + body + "." + signature,
		"no type":                 encoded(strings.Replace(header, signed.Type, "", 1)) + "." + body + "." + signature,
	})
	// Only the holder gets one: the tries of another tenant are among the ids of case 20, and a
	// reader of the same tenant has no id of the lease.
	s.agent(t, acme, "POST", "/v1/leases/"+e.lease+"/statement", `{}`).want(404, "unknown_lease")
}

func guessedFences(t *testing.T, s *site) {
	e := s.evidence(t)
	for _, fence := range []interlock.Fence{0, 1, e.fence - 1, e.fence + 1, 1 << 53, 1<<64 - 1} {
		for _, path := range []string{"/v1/revocations", "/v1/fences/check"} {
			if got := s.operator(
				t, rival, "POST", path, fmt.Sprintf(`{"key":%q,"fence":"%d"}`, fenced, uint64(fence)),
			); got.status == 200 &&
				path == "/v1/revocations" {
				t.Errorf("%s %d: %s", path, uint64(fence), got.raw)
			}
		}
		s.operator(t, acme, "POST", "/v1/revocations", fmt.Sprintf(`{"key":%q,"fence":"%d"}`, fenced, uint64(e.fence))).want(
			409, "fenced",
		)
		s.operator(
			t, rival, "POST", "/v1/revocations", fmt.Sprintf(`{"key":"signed:other","fence":"%d"}`, uint64(e.fence)),
		).want(409, "fenced")
	}
	s.agent(t, rival, "GET", "/v1/leases/"+e.lease, "").want(200)
}
