package proxy

import (
	"strings"
	"testing"
)

// A caller's claims about itself in the name of a proxy do not reach the API.
func TestCallersDoNotSpeakAsProxies(t *testing.T) {
	r := newRig(t, routes)
	forged := []string{
		"X-Forwarded-For", "X-Forwarded-User", "X-Forwarded-Method", "X-Forwarded-Uri", "X-Original-Url",
		"X-Original-Method", "X-Rewrite-Url",
		"X-Remote-User", "X-Real-Ip", "Forwarded",
	}
	headers := []string{}
	for _, name := range forged {
		headers = append(headers, name, "forged")
	}
	if a := r.call("GET", "/accounts/1", "", headers...); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	for _, name := range forged {
		if got := strings.Join(r.api.seen[0].header.Values(name), ","); strings.Contains(got, "forged") {
			t.Errorf("the API saw %s: %s", name, got)
		}
	}
}

// A record stays short whatever the caller sends.
func TestRecordIsBounded(t *testing.T) {
	r := newRig(t, routes)
	r.call("PUT", "/files/web/"+strings.Repeat("x", 50_000), "")
	r.front.Close()
	if n := len(r.log.text()); n == 0 || n > 3*maxRecorded {
		t.Errorf("recorded %d bytes", n)
	}
}
