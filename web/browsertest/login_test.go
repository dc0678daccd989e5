package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// What a browser sends to a server on another port of the machine, as an agent's `npm run dev` that a person opens,
// opens nothing; and what that server sets does not log the person out.
func TestOtherPort(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.scene()
	b := s.browse(t)
	b.logIn(operator)
	b.shows("● live")

	came := make(chan string, 16)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			came <- r.Header.Get("Cookie")
			http.SetCookie(w, &http.Cookie{Name: "interlock", Value: "planted", Path: "/ui", HttpOnly: true})
			http.SetCookie(w, &http.Cookie{Name: "interlock", Value: "planted", Path: "/v1", HttpOnly: true})
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<h1>the other port</h1>")
		}
	}))
	t.Cleanup(other.Close)
	b.run("the page on another port", chromedp.Navigate(other.URL), chromedp.WaitVisible("h1"))
	cookie := <-came
	if !strings.Contains(cookie, "interlock=") {
		t.Fatalf("the other port has the cookie %q, so nothing is tried", cookie)
	}
	if !b.is("localStorage.length === 0 && sessionStorage.length === 0") {
		t.Error("the other port sees the storage of the dashboard")
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		body := strings.NewReader(`{"claims":[{"key":"a"}]}`)
		r, err := http.NewRequestWithContext(t.Context(), method, s.base+"/v1/leases", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{
			"Cookie": {cookie}, "Sec-Fetch-Site": {"same-origin"}, "Interlock-Dashboard": {"1"}, "Origin": {s.base},
			"Content-Type": {"application/json"},
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s with the cookie: status %d", method, res.StatusCode)
		}
	}

	b.open("keys")
	b.shows("● live")
	b.shows("ops")
	b.click("Log out")
	b.run("after the logout", chromedp.WaitVisible(`input[name=secret]`))
	if !b.is(`localStorage.getItem('login') === null`) {
		t.Error("the key of the login is kept after the logout")
	}
}

// The copied command is one call, whatever a link to the page has in it.
func TestCopyAsCurl(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.scene()
	b := s.browse(t)
	b.logIn(viewer)
	bin := t.TempDir()
	fake := "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "curl"), []byte(fake), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, hostile := range []string{
		"x'; touch PWNED; '", `x"$(touch PWNED)`, "x`touch PWNED`", "$(touch PWNED)", `\'; touch PWNED #`, "'$'x'",
		"!!touch PWNED", "é'; touch PWNED; '", "x\n touch PWNED", "x\x03\ntouch PWNED\n", "x\x1b[201~\ntouch PWNED\n",
		"*?~{a,b}", "x' -o PWNED '", "&& touch PWNED",
	} {
		for _, view := range []string{
			"keys?namespace=" + url.QueryEscape(hostile), "keys/" + url.PathEscape(hostile),
			"keys?prefix=" + url.QueryEscape(hostile), "journal?at=3&key=" + url.QueryEscape(hostile),
		} {
			b.open(view)
			b.until(`document.querySelector('main h1')`, view)
			var command string
			b.run("copying", chromedp.Evaluate(`new Promise((done) => {
				const button = document.querySelector('[data-copy]');
				Object.defineProperty(navigator, 'clipboard',
					{configurable: true, value: {writeText: (text) => { done(text); return Promise.resolve(); }}});
				button.click();
			})`, &command, await))
			for _, shell := range []string{"sh", "bash"} {
				run := exec.CommandContext(t.Context(), shell, "-c", command)
				run.Dir = t.TempDir()
				run.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "INTERLOCK_CREDENTIAL=ilk_x"}
				out, err := run.CombinedOutput()
				left, _ := os.ReadDir(run.Dir)
				lines := strings.Split(strings.TrimSpace(string(out)), "\n")
				want := 4 // curl -s URL -H VALUE
				if strings.Contains(view, "namespace=") {
					want = 6
				}
				if err != nil || len(left) > 0 || lines[0] != fmt.Sprint(want) || len(lines) != 1+want ||
					!strings.HasPrefix(lines[2], s.base+"/v1/") || lines[4] != "Authorization: Bearer ilk_x" {
					t.Errorf("%s: %s: %q runs as %q, %v, and leaves %d files", view, shell, command, lines, err, len(left))
				}
			}
			for _, r := range command {
				if r < ' ' || r > '~' {
					t.Errorf("%s: %q has %q, which a terminal may take for a key", view, command, r)
					break
				}
			}
		}
	}
}

// A link that is no UTF-8 shows its page.
func TestOddPath(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	b := s.browse(t)
	b.logIn(viewer)
	b.open("keys/%FF")
	b.until(`document.querySelector('main h1')`, "the page of a key")
	b.calm("an odd path")
}
