package browsertest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var (
	screenshots = flag.String("screenshots", "", "write pictures of the pages into this `directory`")
	binary      string // of the server
)

const patience = time.Minute

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "browsertest")
	if err == nil {
		binary = filepath.Join(dir, "interlock")
		build := exec.Command("go", "build", "-o", binary, "./cmd/interlock")
		build.Dir = "../.."
		if text, bad := build.CombinedOutput(); bad != nil {
			err = fmt.Errorf("%w: %s", bad, text)
		}
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, "browsertest:", err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// The secrets of the credentials: of no use anywhere else.
const (
	operator = "ilk_operator-of-acme"
	planner  = "ilk_agent-of-acme"
	viewer   = "ilk_viewer-of-acme"
	stranger = "ilk_operator-of-beta"
)

// rig is a server with two tenants, or what stands before several.
type rig struct {
	*testing.T
	dir     string
	base    string // of the address in a browser, without a path
	process *exec.Cmd
	serve   []string // arguments
	client  *http.Client
}

func newRig(t *testing.T) *rig {
	t.Helper()
	s := bareRig(t)
	addr := freeAddr(t)
	s.base, s.serve = "http://"+addr, []string{"--data-dir", filepath.Join(s.dir, "data"), "--http", addr}
	s.start()
	t.Cleanup(s.stop)
	return s
}

// bareRig has the credentials, and no server.
func bareRig(t *testing.T) *rig {
	t.Helper()
	s := &rig{T: t, dir: t.TempDir(), client: http.DefaultClient}
	var lines strings.Builder
	for _, c := range [][2]string{
		{operator, "ops acme sha256:%x operator agent approver merger worker=*"},
		{planner, "swarm acme sha256:%x agent"},
		{viewer, "eye acme sha256:%x viewer"},
		{stranger, "ops-beta beta sha256:%x operator agent"},
	} {
		fmt.Fprintf(&lines, c[1]+"\n", sha256.Sum256([]byte(c[0])))
	}
	if err := os.WriteFile(filepath.Join(s.dir, "credentials"), []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// freeAddr is an address of this machine that is free. It is below the ports that outgoing connections take: a server
// that is started again finds it still free.
func freeAddr(t *testing.T) string {
	t.Helper()
	var refused error
	for range 1000 {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(12_000+rand.IntN(20_000))))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
		refused = err
	}
	t.Fatalf("there is no free port: %v", refused)
	return ""
}

// start starts the server, and waits until it is ready.
func (s *rig) start() {
	s.Helper()
	s.process = s.launch(s.serve...)
	s.ready(s.base + "/readyz")
}

// launch starts a server.
func (s *rig) launch(args ...string) *exec.Cmd {
	s.Helper()
	c := exec.Command(binary, append(
		[]string{"serve", "--grpc", "127.0.0.1:0", "--credentials", filepath.Join(s.dir, "credentials")}, args...,
	)...)
	out, err := c.StderrPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := c.Start(); err != nil {
		s.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return c
}

// ready waits until a probe answers.
func (s *rig) ready(probe string) {
	s.Helper()
	for begin := time.Now(); ; {
		r, err := s.client.Get(probe)
		if err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Since(begin) > patience {
			s.Fatalf("the server is not ready: %v", err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func (s *rig) stop() {
	_ = s.process.Process.Signal(os.Interrupt)
	_ = s.process.Wait()
}

// call makes a call of the API, and returns its answer.
func (s *rig) call(secret, method, path string, body any) (answer map[string]any) {
	s.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.Fatal(err)
	}
	r, err := http.NewRequest(method, s.base+path, bytes.NewReader(text))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+secret)
	if method == "PUT" && strings.HasPrefix(path, "/v1/state/") {
		r.Header.Set("If-None-Match", "*")
	}
	got, err := s.client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer got.Body.Close()
	if err := json.NewDecoder(got.Body).Decode(&answer); err != nil {
		s.Fatal(err)
	}
	return answer
}

type object = map[string]any

// acquire lets an agent take a key, or wait for it.
func (s *rig) acquire(secret, session, key, purpose string) {
	s.Helper()
	s.call(secret, "POST", "/v1/leases", object{
		"session": session, "claims": []object{{"key": key, "mode": "exclusive"}}, "purpose": purpose, "ttl_ms": 600_000,
		"max_wait_ms": 600_000, "on_conflict": "wait",
	})
}

func (s *rig) session(secret, agent string) string {
	s.Helper()
	a := s.call(secret, "POST", "/v1/sessions", object{"agent": agent, "ttl_ms": 600_000})
	session, _ := a["session"].(object)
	id, _ := session["id"].(string)
	if id == "" {
		s.Fatalf("no session: %v", a)
	}
	return id
}

// The hostile names: markup, and characters that turn the direction of text around.
const (
	hostileKey   = `<img src=x onerror=alert(1)>`
	hostileAgent = "evil \u202egnp.exe"
	hostileText  = `"><script>alert(2)</script>`
)

// earlier has agents wait for a key and hold it before the scene, for times of different lengths.
func (s *rig) earlier() {
	s.Helper()
	ask := func(agent, purpose string) (id func(kind string) string) {
		answer := s.call(operator, "POST", "/v1/leases", object{
			"session": s.session(operator, agent), "claims": []object{{"key": "account:12345"}}, "purpose": purpose,
			"on_conflict": "wait", "ttl_ms": 600_000,
		})
		return func(kind string) string {
			found, _ := answer[kind].(object)
			return fmt.Sprint(found["id"])
		}
	}
	release := func(lease string) { s.call(operator, "POST", "/v1/leases/"+lease+"/release", object{}) }
	for i := range 3 {
		release(ask(fmt.Sprintf("audit-%d", i+1), "read the balance")("lease"))
	}
	for i, ms := range []int{40, 130, 300, 700, 1100} {
		holder := ask(fmt.Sprintf("billing-%d", i+1), "monthly fee")("lease")
		ticket := ask("support-5", "answer ticket 4405")("ticket")
		// The call ends without a grant after that time.
		s.call(operator, "GET", fmt.Sprintf("/v1/tickets/%s?wait_ms=%d", ticket, ms), nil)
		release(holder)
		granted, _ := s.call(operator, "GET", "/v1/tickets/"+ticket, nil)["lease"].(object)
		release(fmt.Sprint(granted["id"]))
	}
}

// scene has agents hold keys and wait, tasks fail, a question, a deadlock, and hostile names.
func (s *rig) scene() {
	s.Helper()
	s.call(operator, "PUT", "/v1/patterns/model", object{"pattern": "model:{name}", "capacity": 8})
	billing := s.session(operator, "billing-7")
	s.acquire(operator, billing, "account:12345", "refund of order 8812")
	for i := range 4 {
		one := s.session(operator, fmt.Sprintf("support-%d", i+1))
		s.acquire(operator, one, "account:12345", fmt.Sprintf("answer ticket %d", 4410+i))
	}
	refactor, tests := s.session(operator, "refactor-3"), s.session(operator, "tests-2")
	s.acquire(operator, refactor, "repo:web/src/auth.ts", "rename the type of sessions")
	s.acquire(operator, tests, "repo:web/src/session.ts", "tests of the login")
	s.acquire(operator, tests, "repo:web/src/auth.ts", "tests of the login")
	s.acquire(operator, refactor, "repo:web/src/session.ts", "rename the type of sessions") // a deadlock
	evil, other := s.session(operator, hostileAgent), s.session(operator, hostileText)
	s.acquire(operator, evil, hostileKey, hostileText)
	s.acquire(operator, other, hostileKey, hostileText)

	s.call(operator, "PUT", "/v1/queues/mail", object{"max_attempts": 1})
	s.call(operator, "PUT", "/v1/queues/refunds", object{"max_attempts": 3})
	for i := range 4 {
		s.call(operator, "POST", "/v1/tasks", object{
			"queue": "mail", "agent": "planner", "purpose": fmt.Sprintf("welcome letter %d", i+1),
		})
	}
	s.call(planner, "POST", "/v1/tasks", object{
		"queue": "refunds", "agent": "planner", "purpose": "refund of order 8812", "payload": object{"order": 8812},
		"approval": object{"question": "Refund 240 EUR to customer 77?"},
	})
	s.fail(s.session(operator, "mailer-1"))
	s.merges()
	s.acquire(stranger, s.session(stranger, "agent-of-beta"), "key-of-beta", "a secret of beta")
}

// merges has a merge line with a submission that waits and one that came back, a workspace, a single writer, and a run,
// as the commands leave them.
func (s *rig) merges() {
	s.Helper()
	s.call(operator, "PUT", "/v1/queues/merge.web.main", object{})
	for key, value := range map[string]object{
		"merge:web/main": {"ref": "refs/heads/main", "head": "3f9c2a7be1d04c5f", "seq": 2, "profile": "p1"},
		"merge:web/main/landing/00000001": {
			"seq": 1, "submission": "fix-login-1", "commit": "9a1b2c3d4e5f", "agent": "refactor-3",
			"purpose": "fix the login", "paths": []string{"src/auth.ts"}, "checks": []string{"unit"},
			"at_ms": time.Now().UnixMilli(),
		},
		"merge:web/main/landing/00000002": {
			"seq": 2, "submission": "hostile-1", "commit": "3f9c2a7be1d0", "agent": hostileAgent,
			"purpose": hostileText, "paths": []string{hostileKey}, "checks": []string{"unit"},
		},
		"merge:web/main/submission/fix-cart-1": {
			"id": "fix-cart-1", "head": "77aa88bb99cc", "state": "waiting", "place": 3, "agent": "tests-2",
			"purpose": "tests of the cart", "clashes": []object{{"submission": "fix-login-2", "agent": "refactor-3"}},
		},
		"merge:web/main/submission/fix-login-2": {
			"id": "fix-login-2", "head": "55dd66ee77ff", "state": "returned", "place": 2, "tries": 1, "agent": "refactor-3",
			"purpose": "rename the type of sessions", "outcome": object{
				"code": "returned", "reason": "conflict", "conflicts": []object{{"path": "src/session.ts"}},
			},
		},
		"workspace:web/fix-login": {
			"kind": "worktree", "host": "build-1", "path": "/srv/w/fix-login", "target": "main", "branch": "fix-login",
			"purpose": "fix the login",
		},
	} {
		got := s.call(operator, "PUT", "/v1/state/"+url.PathEscape(key), value)
		if got["outcome"] != "committed" {
			s.Fatalf("no document %s: %v", key, got)
		}
	}
	s.call(operator, "PUT", "/v1/queues/ledger", object{})
	s.call(operator, "PUT", "/v1/writers/ledger", object{"queue": "ledger", "pattern": "ledger:{id}"})
	s.call(operator, "POST", "/v1/runs", object{
		"org": "acme", "workflow": "triage", "agent": "triage-1", "ttl_ms": 600_000,
	})
}

// fail lets a worker fail at a task of mail, which dies of it.
func (s *rig) fail(worker string) {
	s.Helper()
	s.call(operator, "POST", s.pull(worker, "mail")+"/nack", object{"reason": "the mailbox is full"})
}

// settle lets a worker do the next task of a queue.
func (s *rig) settle(worker, queue string, result object) {
	s.Helper()
	s.call(operator, "POST", s.pull(worker, queue)+"/ack", object{"result": result})
}

// pull returns the path of the lease of the next task of a queue.
func (s *rig) pull(worker, queue string) string {
	s.Helper()
	pulled := s.call(operator, "POST", "/v1/queues/"+queue+"/pull", object{"session": worker, "max": 1})
	tasks, _ := pulled["tasks"].([]any)
	if len(tasks) == 0 {
		s.Fatalf("no task: %v", pulled)
	}
	task, _ := tasks[0].(object)
	lease, _ := task["lease"].(object)
	return fmt.Sprintf("/v1/leases/%v", lease["id"])
}

// browser is a browser of its own, with what its pages complained about.
type browser struct {
	*testing.T
	ctx context.Context
	s   *rig

	mu         sync.Mutex
	complaints []string
}

func (s *rig) browse(t *testing.T, flags ...chromedp.ExecAllocatorOption) *browser {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Fatal("chromium is missing: make deps installs it")
	}
	options := append(
		chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.NoSandbox,
		chromedp.WindowSize(1440, 900), chromedp.Flag("lang", "en"),
	)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(options, flags...)...)
	t.Cleanup(cancel)
	return (&browser{T: t, ctx: ctx, s: s}).tab(chromedp.WithErrorf(func(string, ...any) {}))
}

// tab opens another tab, which shares the cookies.
func (b *browser) tab(options ...chromedp.ContextOption) *browser {
	b.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, options...)
	b.Cleanup(cancel)
	b = &browser{T: b.T, ctx: ctx, s: b.s}
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError && !strings.Contains(e.Entry.Text, "status of 401") {
				b.complain(e.Entry.Text + " " + e.Entry.URL)
			}
		case *runtime.EventExceptionThrown:
			b.complain(e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError {
				b.complain(fmt.Sprint("console.error ", e.Args))
			}
		}
	})
	b.run("the start", log.Enable(), runtime.Enable())
	return b
}

func (b *browser) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, text)
}

// calm fails if a page complained since the last time.
func (b *browser) calm(what string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.complaints {
		b.Errorf("%s: the page complains: %s", what, text)
	}
	b.complaints = nil
}

func (b *browser) run(what string, actions ...chromedp.Action) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Run(b.ctx); err != nil {
		b.Fatal(err)
	}
	if err := chromedp.Run(ctx, actions...); err != nil {
		var text string
		_ = chromedp.Run(b.ctx, chromedp.Evaluate(`document.body.innerText`, &text))
		b.Fatalf("%s: %v; the page has: %.600s", what, err, text)
	}
}

// shows waits until the page has a text.
func (b *browser) shows(text string) {
	b.Helper()
	quoted, _ := json.Marshal(text)
	b.until(fmt.Sprintf(`document.body.innerText.includes(%s)`, quoted), "the text "+text)
}

// until waits until an expression is true.
func (b *browser) until(expression, what string) {
	b.Helper()
	poll := chromedp.Poll(expression, nil, chromedp.WithPollingInterval(50*time.Millisecond))
	b.run(what, chromedp.ActionFunc(func(ctx context.Context) error {
		for {
			// The page that was there when it began may be gone by then.
			if err := poll.Do(ctx); err == nil || !strings.Contains(err.Error(), "Cannot find context") {
				return err
			}
		}
	}))
}

// is evaluates an expression.
func (b *browser) is(expression string) (yes bool) {
	b.Helper()
	b.run(expression, chromedp.Evaluate(expression, &yes))
	return yes
}

// open goes to a view.
func (b *browser) open(view string) {
	b.Helper()
	b.run("opening "+view, chromedp.Navigate(b.s.base+"/ui/"+view))
}

func (b *browser) logIn(secret string) {
	b.Helper()
	b.open("")
	b.run(
		"the login", chromedp.WaitVisible(`input[name=secret]`), chromedp.SendKeys(`input[name=secret]`, secret+"\r"),
		chromedp.WaitVisible(`nav`),
	)
}

// click presses a button, or a link of the page, by its name: the first one, or that of an open dialog.
func (b *browser) click(name string) {
	b.Helper()
	b.until(fmt.Sprintf(`(() => {
		const all = [...(document.querySelector('dialog[open]') || document).querySelectorAll('button, main a')];
		const one = all.find((x) => x.textContent.trim() === %q);
		if (one) one.click();
		return !!one;
	})()`, name), "the button "+name)
}

// confirm presses the button of the open dialog, and waits until it has closed.
func (b *browser) confirm(name string) {
	b.Helper()
	b.until(`document.querySelector('dialog[open]')`, "the dialog "+name)
	b.click(name)
	b.until(`!document.querySelector('dialog[open]')`, "the end of the dialog "+name)
}

// colours chooses the colour scheme, at once and not by degrees.
func (b *browser) colours(scheme string) {
	b.Helper()
	b.run("colours", emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}))
}

// size sets the size of the window.
func (b *browser) size(width, height int64) {
	b.Helper()
	b.run("the size", chromedp.EmulateViewport(width, height))
}

// await has an expression wait for its promise.
func await(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
