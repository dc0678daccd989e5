package browsertest

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// pages are the views, each with what it shows of the scene.
var pages = []struct{ name, view, shows string }{
	{"now", "", "6 waiters, most at account:12345"},
	{"keys", "keys", "repo:web/src/auth.ts"},
	{"key", "keys/account%3A12345", "answer ticket 4411"},
	{"hostile", "keys/" + url.PathEscape(hostileKey), hostileText},
	{"waits", "waits", "Root blockers"},
	{"agents", "agents", "billing-7"},
	{"work", "work", "Refund 240 EUR to customer 77?"},
	{"journal", "journal", "task attempt failed"},
	{"differences", "journal?against=12", "6 documents (6 new)"},
	{"report", "report?last=1h", "waited for each other at repo:web/src/auth.ts and repo:web/src/session.ts"},
	{"past", "waits?at=12", "You look at the state after entry"},
	{"admin", "admin", "model:{name}"},
}

// findings runs axe-core, and returns what it finds as lines.
const findings = `axe.run(document, {
		runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
	}).then((r) => r.violations.map((v) =>
		v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')).join('\n'))`

func TestPages(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.earlier()
	s.scene()
	axe, err := os.ReadFile("testdata/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	b := s.browse(t)
	b.logIn(operator)
	for _, p := range pages {
		for _, scheme := range []string{"light", "dark"} {
			b.colours(scheme)
			b.open(p.view)
			b.shows(p.shows)
			var found string
			b.run("axe", chromedp.Evaluate(string(axe)+";0", nil), chromedp.Evaluate(findings, &found, await))
			for line := range strings.Lines(found) {
				t.Errorf("%s, %s: axe-core finds %s", p.name, scheme, strings.TrimSpace(line))
			}
			b.calm(p.name)
			if !b.is(`document.querySelectorAll('img, main script').length === 0`) {
				t.Errorf("%s: a name became markup", p.name)
			}
			b.picture(p.name, scheme)
		}
		for _, width := range []int64{320, 800} {
			b.size(width, 800)
			if !b.is(`document.documentElement.scrollWidth <= innerWidth`) {
				t.Errorf("%s is wider than %d pixels", p.name, width)
			}
			if p.name == "now" && !b.is(`(() => {
				const region = document.querySelector('[aria-label="Keys by time lost"]').closest('.card');
				return region.querySelector('td .figure').getBoundingClientRect().right <= region.getBoundingClientRect().right;
			})()`) {
				t.Errorf("at %d pixels the number of waiters is out of sight", width)
			}
		}
		b.size(1280, 800)
		if !b.is(`[...document.querySelectorAll('.scroll, .chart')].every((x) => x.scrollWidth <= x.clientWidth)`) {
			t.Errorf("a table of %s has to be scrolled sideways at 1280 pixels", p.name)
		}
		if !b.is(`[...document.querySelectorAll('td.right')].every((x) => x.scrollWidth <= x.clientWidth)`) {
			t.Errorf("a number of %s is cut off at 1280 pixels", p.name)
		}
		b.size(1440, 900)
	}
}

// picture writes what the page shows, if that was asked for.
func (b *browser) picture(name, scheme string) {
	b.Helper()
	if *screenshots == "" || name == "hostile" || name == "past" || name == "differences" {
		return
	}
	var png []byte
	b.size(1280, 800)
	b.run("a picture", chromedp.CaptureScreenshot(&png))
	b.size(1440, 900)
	file := filepath.Join(*screenshots, "dashboard-"+name+"-"+scheme+".png")
	if len(png) > 150_000 {
		b.Errorf("%s has %d bytes, at most 150000", file, len(png))
	}
	if err := os.WriteFile(file, png, 0o644); err != nil {
		b.Fatal(err)
	}
}

func TestHostileNames(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.scene()
	b := s.browse(t)
	b.logIn(operator)
	for _, view := range []string{"", "keys", "waits", "agents", "journal"} {
		b.open(view)
		b.shows("onerror=alert(1)")
	}
	b.calm("hostile names")
}

func TestLogin(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	b := s.browse(t)
	b.open("keys")
	b.run(
		"a wrong secret", chromedp.WaitVisible(`input[name=secret]`), chromedp.SendKeys(`input[name=secret]`, "ilk_wrong\r"),
	)
	b.shows("unknown credential")
	b.logIn(viewer)
	b.shows("eye")
	if !b.is(`document.cookie === '' && !JSON.stringify(localStorage).includes('ilk_')`) {
		t.Error("a script of the page can read the cookie or the secret")
	}
	b.click("Log out")
	b.run("after the logout", chromedp.WaitVisible(`input[name=secret]`))
	b.open("")
	b.run("after the logout, again", chromedp.WaitVisible(`input[name=secret]`))
	b.calm("login")
}

func TestViewer(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.scene()
	b := s.browse(t)
	b.logIn(viewer)
	for _, p := range pages {
		b.open(p.view)
		b.shows(p.shows)
		if !b.is(`[...document.querySelectorAll('main button')].every((x) =>
			!/^(Revoke|Approve|Deny|Retry.*|Discard|Run now|Cancel task|Pause|Drain|Resume|Set capacity)$/.test(
				x.textContent.trim()))`) {
			t.Errorf("%s offers a viewer something to change", p.name)
		}
	}
	var status int
	b.run("a change", chromedp.Evaluate(`fetch('/v1/queues/mail/pause', {method: 'POST', body: '{}',
		headers: {'Content-Type': 'application/json', 'Interlock-Dashboard': localStorage.getItem('login')}})
		.then((r) => r.status)`, &status, await))
	if status != http.StatusForbidden {
		t.Errorf("a viewer pauses a queue: status %d", status)
	}
}

func TestTenants(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.scene()
	b := s.browse(t)
	b.logIn(stranger)
	b.shows("key-of-beta")
	for _, p := range pages {
		b.open(p.view)
		b.until(`document.querySelector('main h1') && !document.querySelector('[aria-busy]')`, p.name)
		if b.is(`/billing-7|refactor-3|8812|welcome letter/.test(document.body.innerText)`) {
			t.Errorf("%s shows something of another tenant", p.name)
		}
	}
}

// A page recovers by itself when the server comes back.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.scene()
	b := s.browse(t)
	b.logIn(operator)
	b.shows("● live")
	s.stop()
	b.shows("The connection broke off")
	s.start()
	b.shows("● live") // the login is still good
	s.acquire(operator, s.session(operator, "newcomer"), "key-after-restart", "")
	b.shows("key-after-restart")
}

func TestKeyboard(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.scene()
	b := s.browse(t)
	b.logIn(viewer)
	b.run("g k", chromedp.KeyEvent("gk"))
	b.until(`location.pathname === '/ui/keys'`, "the page of keys")
	b.shows("account:12345")
	b.run("j Enter", chromedp.KeyEvent("jj\r"))
	b.until(`location.pathname.startsWith('/ui/keys/')`, "a key")
	b.run("g w", chromedp.KeyEvent("gw"))
	b.shows("Root blockers")
	b.run("?", chromedp.KeyEvent("?"))
	b.until(`document.querySelector('dialog[open]')`, "the list of keys")
	b.run("Escape", chromedp.KeyEvent("\u001b"))
	b.until(`!document.querySelector('dialog[open]')`, "no dialog")
	b.run("[", chromedp.KeyEvent("["))
	b.shows("You look at the state after entry")
	b.run("/", chromedp.KeyEvent("/"))
	b.until(`document.activeElement.type === 'search'`, "the focus in the search")
	b.run("a search", chromedp.SetValue(`input[type=search]`, "repo:"), chromedp.KeyEvent("\r"))
	b.until(`new URL(location).searchParams.get('prefix') === 'repo:'`, "the search")
}

// An incident of the report leads to the waits of that moment, which are long over.
func TestIncident(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.scene()
	b := s.browse(t)
	b.logIn(viewer)
	b.open("report")
	b.shows("1 deadlock")
	b.shows("interlock run repo:web/src/auth.ts repo:web/src/session.ts")
	b.click("Waits at that moment")
	b.shows("You look at the state after entry")
	b.shows("tests-2")
	b.shows("refactor-3")
	b.calm("an incident")
}

// The journal compares two moments: other holders of keys, waiters that have come nearer, documents.
func TestDifferences(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.scene()
	newest := func() string {
		at, _ := s.call(operator, "GET", "/v1/status", nil)["at"].(object)
		return fmt.Sprint(at["index"])
	}
	ask := func(agent, key, kind string) string {
		answer, _ := s.call(operator, "POST", "/v1/leases", object{
			"session": s.session(operator, agent), "claims": []object{{"key": key}}, "on_conflict": "wait", "ttl_ms": 600_000,
		})[kind].(object)
		return fmt.Sprint(answer["id"])
	}
	lease := ask("billing-7", "case:1", "lease")
	ticket := ask("support-8", "account:12345", "ticket")
	ask("support-9", "account:12345", "ticket")
	before := newest()
	s.call(operator, "POST", "/v1/leases/"+lease+"/release", object{})
	ask("refactor-3", "case:1", "lease")
	ask(hostileAgent, "other "+hostileKey, "lease")
	s.call(operator, "DELETE", "/v1/tickets/"+ticket, nil)
	s.call(operator, "PUT", "/v1/state/case:2", object{"balance": 36})
	asker := s.session(operator, "asker-1")
	s.call(operator, "POST", "/v1/waits", object{"session": asker, "on": object{"agent": "tests-2"}, "wait_ms": 0})
	after := newest()

	b := s.browse(t)
	b.logIn(viewer)
	b.open("journal?at=" + after + "&against=" + before)
	b.shows("2 leases (1 new, 1 changed), 3 waiters (1 new, 1 gone, 1 changed), 1 document (1 new)")
	row := func(label, text string) {
		t.Helper()
		b.until(fmt.Sprintf(`[...document.querySelectorAll('[aria-label="Different %s"] tbody tr')].some((r) =>
			[...r.cells].map((c) => c.textContent.trim()).join(' | ').includes(%q))`, label, text), "a row of "+label+": "+text)
	}
	row("leases", "case:1 | ◷ changed | billing-7, fence ")
	row("leases", "| refactor-3, fence ")
	row("leases", "other "+hostileKey+" | ● new | – | evil gnp.exe, fence ")
	row("waiters", "support-8 | account:12345 | ○ gone | position 5 | –")
	row("waiters", "support-9 | account:12345 | ◷ changed | position 6 | position 5")
	row("waiters", "asker-1 | tests-2 | ● new | – | waits")
	b.until(`[...document.querySelectorAll('[aria-label="Events"] tbody tr')].some((r) =>
		r.textContent.includes('asker-1waits for another agent'))`, "the event of a declared wait")
	row("documents", "case:2 | ● new | – | version ")
	b.calm("differences")
	if !b.is(`document.querySelectorAll('main img, main script').length === 0`) {
		t.Error("a name became markup")
	}
	b.open("journal?at=" + after + "&against=" + before + "&prefix=other")
	b.shows("1 lease (1 new) at keys that begin with other.")
	b.open("journal?at=" + after + "&against=" + after)
	b.shows("No lease, waiter, document or task is different.")
	b.click("Entry before")
	b.shows("1 waiter (1 new)")
	b.click("Do not compare")
	b.until(`!document.body.innerText.includes('Differences')`, "no differences")

	b.open("journal?at=" + before + "&against=" + after)
	b.shows("Entry " + after + " is later than entry " + before)
	b.click("Exchange them")
	b.shows("2 leases (1 new, 1 changed)")
	b.click("The present")
	b.until(`new URL(location).searchParams.get('at') === null`, "the present")
	b.shows("No lease, waiter, document or task is different.")
	b.open("journal?against=0s")
	b.until(`/^[0-9]+$/.test(new URL(location).searchParams.get('against'))`, "the entry of that time")
	b.calm("two moments")

	b.open("journal?against=999999")
	b.shows("index 999999 does not exist yet")
	b.shows("Next: name index ")
	b.open("journal?against=" + url.QueryEscape(hostileText))
	b.shows("want the index of an entry, such as 1041")
}

// The page of a key shows how long waits for it and holds of it took: those that ended, and none of other keys.
func TestTimes(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	ask := func(agent, key string) object {
		return s.call(operator, "POST", "/v1/leases", object{
			"session": s.session(operator, agent), "claims": []object{{"key": key}}, "on_conflict": "wait", "ttl_ms": 600_000,
		})
	}
	id := func(answer object, kind string) string {
		found, _ := answer[kind].(object)
		return fmt.Sprint(found["id"])
	}
	b := s.browse(t)
	b.logIn(viewer)
	b.open("keys/case:1")
	b.shows("No wait for this key and no hold of it ended in this time. Choose a longer one.")
	b.shows("The key is free. Fences below ")
	for i := range 3 {
		s.call(operator, "POST", "/v1/leases/"+id(ask(fmt.Sprint("agent-", i), "case:1"), "lease")+"/release", object{})
	}
	s.call(operator, "POST", "/v1/leases/"+id(ask("below", "case:1/below"), "lease")+"/release", object{})
	then, _ := s.call(operator, "GET", "/v1/status", nil)["at"].(object)
	ask("holder", "case:1")
	s.call(operator, "DELETE", "/v1/tickets/"+id(ask("waiter", "case:1"), "ticket"), object{})
	b.open("keys/case:1?last=12h")
	b.shows("1 wait: half took at most ")
	b.shows("1 of them ended without the key.")
	b.shows("3 holds: half took at most ")
	sum := func(column, want int) {
		t.Helper()
		b.until(fmt.Sprintf(`[...document.querySelectorAll('.times tbody tr')].reduce((sum, r) =>
			sum + Number(r.cells[%d].textContent), 0) === %d`, column, want), fmt.Sprint("a column with ", want))
	}
	sum(1, 1)
	sum(2, 3)
	if !b.is(`[...document.querySelectorAll('.times tbody svg')].every((x) => x.getAttribute('aria-hidden') === 'true')`) {
		t.Error("a bar is read to those that hear the table")
	}
	for _, scheme := range []string{"light", "dark"} {
		b.colours(scheme)
		b.accessible("times, " + scheme)
	}
	b.click("7 d")
	b.until(`new URL(location).searchParams.get('last') === '7d'`, "the time in the URL")
	b.open(fmt.Sprint("keys/case:1?at=", then["index"]))
	b.shows("No wait ended. 3 holds: half took at most ")
	b.calm("times")
}
