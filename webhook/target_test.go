package webhook

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// TestURLs: a URL that names a host inside is refused, in each spelling of its address.
func TestURLs(t *testing.T) {
	targets, err := ParseTargets([]string{"10.1.0.0/16", "192.168.7.7", "Hooks.Internal", "fd00:1::/32"})
	if err != nil {
		t.Fatal(err)
	}
	for url, ok := range map[string]bool{
		"https://example.com/hook":         true,
		"http://example.com:8080/hook?a=b": true,
		"https://93.184.216.34/":           true,
		"https://[2606:2800:220:1::1]/":    true,
		"http://10.1.2.3/":                 true, // allowed
		"http://192.168.7.7/":              true,
		"http://hooks.internal/x":          true,
		"http://[::ffff:10.1.2.3]/":        true,
		"http://[fd00:1::5]/":              true,
		"http://10.2.2.3/":                 false,
		"http://192.168.7.8/":              false,
		"http://127.0.0.1/":                false,
		"http://127.9.9.9/":                false,
		"http://localhost/":                false,
		"http://LOCALHOST./":               false,
		"http://a.localhost/":              false,
		"http://0.0.0.0/":                  false,
		"http://0.1.2.3/":                  false,
		"http://169.254.169.254/":          false,
		"http://100.64.0.1/":               false,
		"http://172.16.0.1/":               false,
		"http://192.0.2.1/":                false,
		"http://198.18.0.1/":               false,
		"http://224.0.0.1/":                false,
		"http://255.255.255.255/":          false,
		"http://[::]/":                     false,
		"http://[::1]/":                    false,
		"http://[::ffff:127.0.0.1]/":       false,
		"http://[::ffff:169.254.169.254]/": false,
		"http://[::127.0.0.1]/":            false,
		"http://[64:ff9b::7f00:1]/":        false,
		"http://[2002:7f00:1::]/":          false,
		"http://[2001:0:7f00:1::]/":        false,
		"http://[fe80::1]/":                false,
		"http://[fe80::1%25eth0]/":         false,
		"http://[fec0::1]/":                false,
		"http://[fd00:2::5]/":              false,
		"http://[ff02::1]/":                false,
		"ftp://example.com/":               false,
		"file:///etc/passwd":               false,
		"example.com/hook":                 false,
		"https:///hook":                    false,
		"https:example.com":                false,
		"https://user:secret@example.com/": false,
		"https://example.com/#fragment":    false,
		"https://exa mple.com/":            false,
		"javascript:alert(1)":              false,
	} {
		err := targets.CheckURL(url)
		if (err == nil) != ok {
			t.Errorf("%s: %v, want ok %v", url, err, ok)
		}
		if err != nil && strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: the error shows the credentials: %v", url, err)
		}
	}
	for _, entry := range []string{"", "10.0.0.0/99", "a b", "*.example.com", "http://x", "host:80"} {
		if _, err := ParseTargets([]string{entry}); err == nil {
			t.Errorf("%q is allowed", entry)
		}
	}
}

// TestDial: the address counts that a name resolves to when it is dialled, and neither a proxy nor
// a redirect leads elsewhere.
func TestDial(t *testing.T) {
	reached := 0
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer inside.Close()
	t.Setenv("HTTP_PROXY", inside.URL)
	t.Setenv("http_proxy", inside.URL)
	_, port, err := net.SplitHostPort(inside.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	closed, _ := ParseTargets(nil)
	for _, host := range []string{"localhost", "127.0.0.1", "2130706433", "127.1", "0x7f000001", "localhost."} {
		w := engine.WebhookView{Webhook: interlock.Webhook{URL: "http://" + host + ":" + port + "/"}}
		if a := post(t.Context(), newClient(closed), &w, "id", nil); a.delivered() || reached > 0 {
			t.Errorf("%s was reached: %+v", host, a)
		}
	}
	redirect := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusTemporaryRedirect))
	defer redirect.Close()
	open, _ := ParseTargets([]string{"127.0.0.1"})
	w := engine.WebhookView{Webhook: interlock.Webhook{URL: redirect.URL}}
	if a := post(t.Context(), newClient(open), &w, "id", nil); a.delivered() || a.Status != 307 || reached > 0 {
		t.Errorf("a redirect was followed: %+v", a)
	}
	named, _ := ParseTargets([]string{"localhost"})
	w.URL = "http://localhost:" + port + "/"
	if a := post(t.Context(), newClient(named), &w, "id", nil); !a.delivered() {
		t.Errorf("an allowed host is not reached: %+v", a)
	}
}
