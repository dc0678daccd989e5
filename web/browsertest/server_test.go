package browsertest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Tabs of one browser share a login, and one stream of events: if the tab that reads it is closed, another one does.
func TestTabs(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.scene()
	first := s.browse(t)
	first.logIn(operator)
	first.shows("● live")
	second := first.tab()
	second.open("journal")
	second.shows("● live")
	worker := s.session(operator, "newcomer")
	s.acquire(operator, worker, "key:1", "")
	first.shows("key:1")
	second.shows("key:1")

	third := second.tab()
	third.open("keys")
	third.shows("key:1")
	first.run("the end of a tab", page.Close())
	s.acquire(operator, worker, "key:2", "")
	second.shows("key:2")
	third.shows("key:2")

	third.click("Log out")
	third.run("after the logout", chromedp.WaitVisible(`input[name=secret]`))
	second.run("after the logout in another tab", chromedp.WaitVisible(`input[name=secret]`))

	// Another tenant in the same browser sees nothing that the tabs showed before.
	third.run("the login", chromedp.SendKeys(`input[name=secret]`, stranger+"\r"))
	second.shows("ops-beta")
	for _, b := range []*browser{second, third} {
		b.until(`document.querySelector('main h1') && !document.querySelector('[aria-busy]')`, "the view")
		b.shows("● live")
	}
	s.acquire(operator, worker, "key:3", "")
	s.acquire(stranger, s.session(stranger, "newcomer-of-beta"), "beta:2", "")
	second.shows("beta:2")
	third.shows("beta:2")
	for _, b := range []*browser{second, third} {
		if b.is(`/key:[123]|billing-7|welcome letter/.test(document.body.innerText)`) {
			t.Error("a tab shows something of the tenant before")
		}
	}
	second.calm("tabs")
}

// A refusal of the login before can come after the answer to the new one. It does not end the new one.
func TestLateRefusal(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	first := s.browse(t)
	first.logIn(operator)
	second := first.tab()
	second.open("keys")
	second.shows("● live")
	second.run("the delay", chromedp.Evaluate(`{
		const real = window.fetch;
		window.late = [];
		window.fetch = async (...call) => {
			const answer = await real(...call);
			if (answer.status === 401) await new Promise((done) => late.push(done));
			return answer;
		};
		0
	}`, nil))
	first.click("Log out")
	second.until(`late.length > 0`, "a refusal that is under way")
	first.run("the login", chromedp.SendKeys(`input[name=secret]`, stranger+"\r"))
	second.shows("ops-beta")
	second.run("the refusals", chromedp.Evaluate(`late.splice(0).forEach((done) => done()); 0`, nil))
	s.acquire(stranger, s.session(stranger, "newcomer-of-beta"), "beta:2", "")
	second.shows("beta:2")
	if second.is(`!!document.querySelector('input[name=secret]')`) {
		t.Error("the refusal of the login before ended the new one")
	}
	second.calm("late refusals")
}

// Over TLS the cookie is never sent without it, and no other host can set it.
func TestTLS(t *testing.T) {
	t.Parallel()
	s := bareRig(t)
	cert, key := filepath.Join(s.dir, "cert.pem"), filepath.Join(s.dir, "key.pem")
	roots := selfSigned(t, cert, key)
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	addr := freeAddr(t)
	s.base = "https://" + addr
	s.serve = []string{"--data-dir", filepath.Join(s.dir, "data"), "--http", addr, "--tls-cert", cert, "--tls-key", key}
	s.start()
	t.Cleanup(s.stop)
	s.scene()
	b := s.browse(t, chromedp.Flag("ignore-certificate-errors", true))
	b.logIn(viewer)
	b.shows("● live")
	var cookies []*network.Cookie
	b.run("the cookies", chromedp.ActionFunc(func(ctx context.Context) (err error) {
		cookies, err = network.GetCookies().Do(ctx)
		return err
	}))
	if len(cookies) != 1 || cookies[0].Name != "__Host-interlock" {
		t.Fatalf("the cookies are %+v", cookies)
	}
	if c := cookies[0]; !c.Secure || !c.HTTPOnly || c.SameSite != network.CookieSameSiteStrict || c.Path != "/" {
		t.Errorf("the cookie is %+v", c)
	}
	s.acquire(operator, s.session(operator, "newcomer"), "key-over-tls", "")
	b.open("keys")
	b.shows("key-over-tls")
	b.calm("TLS")
}

// selfSigned writes a certificate for 127.0.0.1 and its key.
func selfSigned(t *testing.T, cert, key string) *x509.CertPool {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(file, kind string, b []byte) {
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(cert, "CERTIFICATE", der)
	write(key, "PRIVATE KEY", secret)
	roots := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(parsed)
	return roots
}

// balancer passes connections on to the server that is active, as a load balancer with a health check does.
type balancer struct {
	net.Listener
	servers []string

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func balance(t *testing.T, servers ...string) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{Listener: l, servers: servers, conns: map[net.Conn]bool{}}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go b.pass(c)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		b.mu.Lock()
		defer b.mu.Unlock()
		for c := range b.conns {
			_ = c.Close()
		}
	})
	return b
}

// active is the address of the server that owns the shard, or "".
func (b *balancer) active() string {
	probe := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, addr := range b.servers {
		r, err := probe.Get("http://" + addr + "/readyz?role=active")
		if err != nil {
			continue
		}
		_ = r.Body.Close()
		if r.StatusCode == http.StatusOK {
			return addr
		}
	}
	return ""
}

func (b *balancer) pass(from net.Conn) {
	defer from.Close()
	addr := b.active()
	if addr == "" {
		return
	}
	to, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer to.Close()
	b.mu.Lock()
	b.conns[from] = true
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.conns, from)
	}()
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(from, to)
}

// A page that looks at one of two servers through a load balancer goes on at the other when the first is killed.
func TestFailover(t *testing.T) {
	t.Parallel()
	s := bareRig(t)
	servers := map[string]*exec.Cmd{}
	journal := "redis://" + s.redis() + "/0?journal=browser"
	addrs := []string{freeAddr(t), freeAddr(t)}
	for _, addr := range addrs {
		c := s.launch("--journal", journal, "--shards", "1", "--http", addr, "--standby-after", "2s")
		t.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		})
		servers[addr] = c
		s.ready("http://" + addr + "/readyz?role=any")
	}
	front := balance(t, addrs...)
	s.base = "http://" + front.Addr().String()
	s.ready(s.base + "/readyz?role=active")
	s.scene()
	b := s.browse(t)
	b.logIn(operator)
	b.shows("6 waiters, most at account:12345")
	watcher := b.tab()
	watcher.open("admin")
	epoch := watcher.epoch()
	watcher.shows("● live")

	dead := servers[front.active()]
	if dead == nil {
		t.Fatal("no server is active")
	}
	killed := time.Now()
	_ = dead.Process.Kill()
	b.shows("The connection broke off")
	b.shows("● live") // the login holds at the other server
	b.shows("6 waiters, most at account:12345")
	t.Logf("the page shows the other server %v after the first was killed", time.Since(killed).Round(100*time.Millisecond))
	s.acquire(operator, s.session(operator, "newcomer"), "key-after-failover", "")
	b.shows("key-after-failover")
	watcher.shows("● live")
	watcher.until(epochOf+fmt.Sprintf(" > %.0f", epoch), "a later epoch in the other tab")
	b.open("admin")
	if later := b.epoch(); later <= epoch {
		t.Errorf("epoch %.0f after the fail-over, %.0f before", later, epoch)
	}
}

// epochOf is the epoch that the page Admin shows.
const epochOf = `(() => {
	const label = [...document.querySelectorAll('dt')].find((x) => x.textContent === 'Epoch');
	return label ? Number(label.nextSibling.textContent.replaceAll(',', '')) : 0;
})()`

func (b *browser) epoch() float64 {
	b.Helper()
	b.until(epochOf+" > 0", "the epoch")
	return b.figure(epochOf)
}

// redis starts a Redis that keeps what it answers, the cheapest place for a journal of two servers.
func (s *rig) redis() (addr string) {
	s.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil { // scripts/server-tools.sh has unpacked it for the tests
		path, err = exec.LookPath("../../dist/servers/redis-server/bin/redis-server")
	}
	if err != nil {
		s.Fatal("redis-server is missing: make deps installs it")
	}
	addr = freeAddr(s.T)
	_, port, _ := net.SplitHostPort(addr)
	c := exec.Command(
		path, "--bind", "127.0.0.1", "--port", port, "--appendonly", "yes", "--appendfsync", "always", "--save", "",
		"--dir", s.TempDir(),
	)
	if err := c.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	for begin := time.Now(); time.Since(begin) < patience; {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
			return addr
		}
		<-time.After(20 * time.Millisecond)
	}
	s.Fatal("redis-server does not listen")
	return ""
}
