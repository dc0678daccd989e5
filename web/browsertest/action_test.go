package browsertest

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// because fills in the reason of the open dialog.
func (b *browser) because(reason string) {
	b.Helper()
	b.run("a reason", chromedp.SendKeys(`dialog input[name=reason]`, reason))
}

func TestActions(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.scene()
	b := s.browse(t)
	b.logIn(operator)
	b.open("keys/account%3A12345")
	b.shows("is held by billing-7")
	b.click("Ask to yield")
	b.shows("Nothing is taken from it")
	b.because("a customer waits")
	b.confirm("Ask to yield")
	b.shows("support-1 has asked it to yield")
	b.click("Revoke")
	b.shows("(credential ops) loses account:12345 at once")
	b.shows("Its writes with fence")
	b.shows("The next of 4 waiters may get the key: support-1")
	b.accessible("the dialog of a revocation")
	b.because("it hangs")
	b.confirm("Revoke")
	b.shows("is held by support-1")

	b.open("work")
	b.click("Retry")
	b.shows("with fresh attempts")
	b.because("the mailbox has room")
	b.confirm("Retry")
	b.until(`![...document.querySelectorAll('td')].some((x) => x.textContent.includes('■ dead'))`, "no dead letter")
	b.click("Cancel task")
	b.shows("its submitter is told")
	b.because("not needed")
	b.confirm("Cancel task")
	b.click("Pause")
	b.because("the provider is down")
	b.confirm("Pause")
	b.shows("paused")
	b.click("Resume")
	b.because("it is up again")
	b.confirm("Resume")
	b.click("Drain")
	b.shows("New tasks are refused until the queue is resumed")
	b.because("it moves")
	b.confirm("Drain")
	b.shows("draining")
	b.click("Approve")
	b.because("the customer is right")
	b.confirm("Approve")
	b.shows("No question is open.")

	b.open("admin")
	b.click("Set capacity")
	b.run("a number", chromedp.SetValue(`dialog input[name=value]`, "12"))
	b.because("a second machine")
	b.confirm("Set capacity")
	b.until(`[...document.querySelectorAll('td')].some((x) => x.textContent === '12')`, "the capacity")
	b.calm("actions")

	// The journal names the credential and the reason.
	b.open("journal")
	b.shows("yield requested")
	b.open("journal?event=queue_set")
	b.shows(": paused")
	b.shows("the provider is down")
	b.open("journal?event=pattern_set")
	b.shows("a second machine")
	b.open("journal?event=ended")
	b.shows("revoked")
	b.shows("ops")
}

// The attempt that a revocation ends is named before, with what becomes of its task.
func TestRevokeAttempt(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.call(operator, "PUT", "/v1/queues/mail", object{"max_attempts": 1})
	s.call(operator, "POST", "/v1/tasks", object{
		"queue": "mail", "agent": "planner", "purpose": "welcome letter", "claims": []object{{"key": "letter:1"}},
	})
	s.call(operator, "POST", "/v1/queues/mail/pull", object{
		"session": s.session(operator, "mailer-1"), "max": 1, "ttl_ms": 600_000,
	})
	b := s.browse(t)
	b.logIn(operator)
	b.open("keys/letter%3A1")
	b.click("Revoke")
	b.shows("at the task welcome letter of mail fails")
	b.shows("It was the last one: the task is dead then.")
	b.because("it hangs")
	b.confirm("Revoke")
	b.open("work?state=dead")
	b.shows("welcome letter")
	b.click("Discard")
	b.shows("cannot be retried afterwards")
	b.because("sent by hand")
	b.confirm("Discard")
	b.shows("No task fits the filters.")
	b.calm("a revoked attempt")
}

// A refusal stays in the dialog, with the next step.
func TestRefusedAction(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.scene()
	b := s.browse(t)
	b.logIn(operator)
	b.open("keys/account%3A12345")
	b.click("Revoke")
	b.because("it hangs")
	s.call(operator, "POST", "/v1/revocations", object{"key": "account:12345", "fence": "1", "reason": "faster"})
	b.click("Revoke")
	b.until(`document.querySelector('dialog[open] [role=alert]')?.textContent.length > 20`, "the refusal")
	b.until(`document.querySelector('dialog[open] [role=alert] .next')`, "the next step")
	b.click("Close")
	b.until(`!document.querySelector('dialog[open]')`, "the end of the dialog")
}

// fakeCycles makes the page see two deadlocks that last, with a hostile name in one.
const fakeCycles = `{
	const real = window.fetch;
	const nodes = ['planner', 'coder', 'tester', 'waiter', '"><script>alert(2)</script>', 'other'].map((agent) => ({
		agent, session: 's-' + agent, flow: 'main',
	}));
	const edge = (from, to, key) => ({from, to, key, mode: 'exclusive', ahead: false, waited_ms: 61000});
	window.fetch = (path, options) => {
		if (!String(path).startsWith('/v1/overview')) return real(path, options);
		const data = {
			verdict: '', sums: {}, keys: [], more_keys: 0, nodes, cycles: [[0, 1, 2], [4, 5]],
			edges: [
				edge(0, 1, 'repo:a'), edge(1, 2, 'repo:b'), edge(2, 0, 'repo:c'), edge(3, 0, 'repo:d'),
				edge(4, 5, ''), edge(5, 4, 'x'),
			],
			at: {index: '9'},
		};
		return Promise.resolve(new Response('data: ' + JSON.stringify(data) + '\n\n'));
	};
}`

// Deadlocks are drawn with a ring, numbered edges and the word, and stand before the root blockers.
func TestCycles(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	b := s.browse(t)
	b.logIn(viewer)
	b.run("two deadlocks", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(fakeCycles).Do(ctx)
		return err
	}))
	b.open("waits")
	b.shows("Deadlock 1:")
	b.shows("1. planner waits for repo:a of coder, 2. coder waits for repo:b of tester, 3. tester waits for")
	b.shows("Deadlock 2:")
	for part, expression := range map[string]string{
		"five rings":     `document.querySelectorAll('.ring').length === 5`,
		"five bad edges": `document.querySelectorAll('path.edge.bad').length === 5`,
		"the word in SVG": `[...document.querySelectorAll('text.word')].every((x) =>
			/^deadlock [12]$/.test(x.textContent))`,
		"the cycle first": `document.querySelector('.tree > li').textContent.startsWith('planner') &&
			document.querySelector('.tree > li').textContent.includes('deadlock')`,
		"no root": `document.querySelector('.node.root') === null`,
	} {
		if !b.is(expression) {
			t.Errorf("the graph of two deadlocks lacks: %s", part)
		}
	}
	b.accessible("two deadlocks")
	b.calm("two deadlocks")
}

// Work shows merge lines, workspaces, writers and runs as they are, with names as text.
func TestWork(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	b := s.browse(t)
	b.logIn(viewer)
	b.open("work")
	for _, empty := range []string{
		"interlock queue set", "interlock task create", "interlock writer set", "interlock workflow start",
		"interlock merge serve", "interlock workspace new",
	} {
		b.shows(empty)
	}
	b.accessible("work without anything")
	s.scene()
	b.open("work")
	for _, text := range []string{
		"2 landings, head 3f9c2a7be1d0", "conflict in src/session.ts", "fix-login-2 of refactor-3", "src/auth.ts",
		hostileKey, hostileText, "workspace:web/fix-login", "ledger:{id}", "triage-1",
	} {
		b.shows(text)
	}
	b.open("keys/ledger%3A1")
	b.shows("No message to this key was decided yet")
	s.call(operator, "POST", "/v1/mailbox/ledger:1", object{"kind": "credit", "body": hostileText, "agent": "support-2"})
	s.settle(s.session(operator, "teller"), "ledger", object{"balance": 2000})
	b.shows(`credit "\"><script>alert(2)</script>"`)
	b.shows(`{"balance":2000}`)
	b.accessible("a mailbox")
	b.open("work")
	b.shows(hostileKey)
	if b.is(`/[\u202a-\u202e]/.test(document.body.innerText)`) {
		t.Error("a document turns text around")
	}
	b.calm("work")
}
