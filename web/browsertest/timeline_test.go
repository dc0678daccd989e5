package browsertest

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// focused is the label of the element with the focus.
func (b *browser) focused() (label string) {
	b.Helper()
	b.run("the focus", chromedp.Evaluate(`document.activeElement.getAttribute('aria-label') || ''`, &label))
	return label
}

// keys presses keys, one after the other.
func (b *browser) keys(keys string) {
	b.Helper()
	b.run("keys", chromedp.KeyEvent(keys))
}

// accessible fails if axe-core finds something on the page.
func (b *browser) accessible(what string) {
	b.Helper()
	axe, err := os.ReadFile("testdata/axe.min.js")
	if err != nil {
		b.Fatal(err)
	}
	var found string
	b.run("axe", chromedp.Evaluate(string(axe)+";0", nil), chromedp.Evaluate(findings, &found, await))
	for line := range strings.Lines(found) {
		b.Errorf("%s: axe-core finds %s", what, strings.TrimSpace(line))
	}
}

// The timeline is used by keys alone, and leads to the keys and to earlier states.
func TestTimeline(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.scene()
	b := s.browse(t)
	b.logIn(viewer)
	b.open("agents")
	b.until(`document.querySelectorAll('.item').length > 10`, "the bars")
	if !b.is(`document.querySelectorAll('.item[tabindex="0"]').length === 1`) {
		t.Error("the timeline is not one stop of the Tab key")
	}
	b.run("the first bar", chromedp.Evaluate(`document.querySelector('.item[tabindex="0"]').focus()`, nil))
	seen := map[string]bool{}
	for range 8 {
		b.keys(kb.ArrowRight)
		seen[b.focused()] = true
	}
	if len(seen) != 8 {
		t.Errorf("the right arrow came to %d bars, want 8: %v", len(seen), seen)
	}
	for range 20 {
		if strings.HasPrefix(b.focused(), "billing-7 holds: account:12345") {
			break
		}
		b.keys(kb.ArrowUp)
	}
	b.shows("Kept waiting")
	b.keys(kb.Enter)
	b.until(`document.activeElement.matches('.detail h2')`, "the focus on the details")
	b.keys(kb.Escape)
	b.until(`document.activeElement.matches('.item')`, "the focus back on the bar")
	b.keys(kb.Enter)
	b.run("the key then", chromedp.Evaluate(
		`[...document.querySelectorAll('.detail a')].find((x) => x.textContent === 'the key when it began').click()`, nil,
	))
	b.until(
		`location.pathname === '/ui/keys/account%3A12345' && new URL(location).searchParams.get('at') > 0`, "the key then",
	)
	b.shows("You look at the state after entry")
	b.run("back", chromedp.Evaluate(`history.back()`, nil))
	b.until(`document.querySelector('.item')`, "the timeline again")

	// Zooming and moving change the URL, and g with a letter is still a page.
	b.run("the first bar", chromedp.Evaluate(`document.querySelector('.item[tabindex="0"]').focus()`, nil))
	b.keys("w")
	b.until(`new URL(location).searchParams.get('since')`, "a time in the URL")
	b.until(`document.querySelector('.item')`, "bars of that time")
	b.run("the first bar", chromedp.Evaluate(`document.querySelector('.item[tabindex="0"]').focus()`, nil))
	b.keys("gw")
	b.until(`location.pathname === '/ui/waits'`, "the page of waits")

	// Dragging chooses a time.
	b.open("agents")
	b.until(`document.querySelector('.item')`, "the timeline")
	var x, y float64
	b.run(
		"the place", chromedp.Evaluate(`document.querySelector('.chart').getBoundingClientRect().x + 300`, &x),
		chromedp.Evaluate(`document.querySelector('.chart').getBoundingClientRect().y + 60`, &y),
	)
	b.run(
		"a drag", chromedp.MouseEvent(input.MousePressed, x, y, chromedp.ButtonLeft),
		chromedp.MouseEvent(input.MouseMoved, x+200, y, chromedp.ButtonLeft),
		chromedp.MouseEvent(input.MouseMoved, x+300, y, chromedp.ButtonLeft),
		chromedp.MouseEvent(input.MouseReleased, x+300, y, chromedp.ButtonLeft),
	)
	b.until(`new URL(location).searchParams.get('until')`, "the time in the URL")

	// The deadlock is a mark that leads to the waits just before it.
	b.open("agents?key=" + "repo%3Aweb")
	b.until(`document.querySelectorAll('.item').length >= 4`, "the bars of the repository")
	if b.is(`[...document.querySelectorAll('.item')].some((x) => x.getAttribute('aria-label').includes('billing-7'))`) {
		t.Error("the filter by key lets others through")
	}
	b.run("the mark", chromedp.Evaluate(`[...document.querySelectorAll('.item')].find((x) =>
		x.getAttribute('aria-label').includes('deadlock at')).dispatchEvent(new MouseEvent('click', {bubbles: true}))`, nil))
	b.shows("waited for each other")
	b.run("before it", chromedp.Evaluate(
		`[...document.querySelectorAll('.detail a')].find((x) => x.textContent === 'the waits just before').click()`, nil,
	))
	b.until(`location.pathname === '/ui/waits'`, "the waits")
	b.shows("tests-2")

	// The table has the same, also for screen readers.
	b.open("agents?as=table")
	b.shows("goes on")
	b.shows("deadlock")
	b.shows(hostileText)
	b.accessible("the table of the timeline")
	b.open("agents?agent=" + "billing-7")
	b.until(`document.querySelectorAll('.item').length === 1`, "the bar of the agent")

	// An attempt at a task without keys has the purpose of the task.
	b.open("agents")
	b.until(`[...document.querySelectorAll('.item')].some((x) => /^mailer-1 works on a task, .*welcome letter 1$/.test(
		x.getAttribute('aria-label')))`, "the attempt")
	b.calm("the timeline")
}

// crowd makes the page see a timeline of many agents, twice as many bars as the server answers with.
const crowd = `{
	const real = window.fetch, begin = Date.now() - 3600000;
	const time = (ms) => new Date(begin + ms).toISOString();
	const agents = 10000;
	window.fetch = (path, options) => {
		if (!String(path).startsWith('/v1/timeline')) return real(path, options);
		const data = {
			since: time(0), until: time(3600000), lanes: [], bars: [], marks: [], links: [], more: false, more_bars: 0,
			more_marks: 0,
		};
		const bar = (kind, agent, key, from, to, index) => data.bars.push({
			kind, agent, claims: [{key}], from: time(from), to: time(to), index: String(index), outcome: 'released',
		});
		for (let i = 0; i < agents; i++) {
			data.lanes.push('agent-' + i);
			bar(i % 3 ? 'hold' : 'wait', 'agent-' + i, 'key:' + i, i * 300, i * 300 + 400000, i + 1);
		}
		for (let i = 0; i < 3000; i++) bar('hold', 'agent-0', 'busy', 500000 + i * 1000, 500900 + i * 1000, 20000 + i);
		for (let i = 1; i < agents; i++) data.links.push({kind: 'handed_on', from: i - 1, to: i});
		return Promise.resolve(new Response(JSON.stringify(data)));
	};
}`

func TestTimelineOfManyAgents(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	b := s.browse(t)
	b.logIn(viewer)
	b.run("many agents", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(crowd).Do(ctx)
		return err
	}))
	begin := time.Now()
	b.open("agents")
	b.until(`document.querySelector('.item')`, "the bars")
	t.Logf("10,000 agents are drawn after %v", time.Since(begin).Round(time.Millisecond))
	var elements int
	b.run("elements", chromedp.Evaluate(`document.querySelectorAll('*').length`, &elements))
	if elements > 3000 {
		t.Errorf("the page has %d elements: it draws what is out of sight", elements)
	}
	b.until(`[...document.querySelectorAll('.item')].some((x) =>
		x.getAttribute('aria-label').includes('too close'))`, "a run of bars")
	b.run("the end", chromedp.Evaluate(`document.querySelector('.chart').scrollTop = 1e9`, nil))
	b.shows("agent-9999")
	b.run("a bar there", chromedp.Evaluate(`document.querySelector('.item[tabindex="0"]').focus()`, nil))
	for range 60 { // far enough to leave what is in sight
		b.keys(kb.ArrowUp)
		b.until(`document.activeElement.matches('.item')`, "the focus on a bar")
	}
	var took float64
	b.run("a step", chromedp.Evaluate(`new Promise((done) => {
		const begin = performance.now();
		document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowUp', bubbles: true}));
		requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin)));
	})`, &took, await))
	t.Logf("a step by the keyboard takes %.0f ms", took)
	if took > 1000 {
		t.Errorf("a step by the keyboard takes %.0f ms", took)
	}
	b.calm("many agents")
}
