//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/certtest"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// serving starts serve as it is typed, with free ports.
func serving(t *testing.T, env []string, args ...string) *proc {
	t.Helper()
	return startProc(
		t, append(cleanEnvironment(), env...),
		append([]string{"serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"}, args...)...,
	)
}

// ready waits for the ready line and returns its addresses.
func (p *proc) ready() (http, grpc string) {
	p.t.Helper()
	line := p.expect("ready http=")
	if _, err := fmt.Sscanf(line, "ready http=%s grpc=%s", &http, &grpc); err != nil {
		p.t.Fatalf("%q: %v", line, err)
	}
	return http, grpc
}

func TestServeStops(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		dir := t.TempDir()
		p := serving(t, nil, "--data-dir", dir)
		p.ready()
		p.signal(s)
		if out := p.ends(cli.ExitOK); !strings.Contains(out, "msg=stopped") {
			t.Errorf("%s: it said:\n%s", cli.SignalName(s), out)
		}
		if out, code := startProc(t, cleanEnvironment(), "admin", "journal", "verify", dir).end(); code != 0 ||
			!strings.Contains(out, "closed in order") {
			t.Errorf("%s left this behind: exit code %d\n%s", cli.SignalName(s), code, out)
		}
	}
}

// A server without credentials and certificates has nothing to read again, and continues: it
// may have been sent the signal by a unit's reload.
func TestServeRidesOutHangup(t *testing.T) {
	p := serving(t, nil, "--data-dir", t.TempDir())
	p.ready()
	p.signal(syscall.SIGHUP)
	p.expect("SIGHUP: there are neither credentials nor certificates to read again; going on")
	p.signal(syscall.SIGTERM)
	p.ends(cli.ExitOK)
}

// Waiting calls and streams are asked to come back before the server ends, and their places are
// kept.
func TestServeStopsWithClients(t *testing.T) {
	r := newRig(t)
	holder := r.start("run", "k", "--", "sh", "-c", "echo ready; read x")
	holder.expect("ready")
	byStream := r.start("run", "k", "--", "echo", "its turn")
	byStream.expect("place 1 of 1")
	byHTTP := r.start("lock", "k")
	byHTTP.expect("place 2 of 2")
	events := r.start("log", "--follow", "--from", "oldest", "-o", "json")
	events.expect(`"event":"granted"`)

	ctx, cancel := context.WithTimeout(t.Context(), busy.Patience())
	defer cancel()
	if err := r.server.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	r.restart()
	holder.in.Write([]byte("\n"))
	holder.ends(0)
	byStream.expect("its turn")
	byStream.ends(0)
	byHTTP.expect("INTERLOCK_LEASE=l_")
	byHTTP.ends(0)
	events.expect(`"event":"admitted"`)
	events.signal(syscall.SIGINT)
	events.ends(0)
}

// A second signal ends the server at once, whatever it waits for.
func TestServeSecondSignal(t *testing.T) {
	p := serving(t, nil, "--data-dir", t.TempDir(), "--shutdown-timeout", "10m")
	address, _ := p.ready()
	// A caller that has sent half of its request holds up a stop in order.
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(
		conn,
		"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
	)
	// One that is answered on the same listener shows that the first was accepted.
	res, err := http.Get("http://" + address + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	p.signal(syscall.SIGTERM)
	p.expect("stopping")
	p.signal(syscall.SIGTERM)
	p.ends(cli.ExitSignal + int(syscall.SIGTERM))
}

func TestServeRefusals(t *testing.T) {
	dir := t.TempDir()
	r := &rig{t: t, dir: dir, server: launchtest.Start(t, launch.Config{DataDir: dir})}
	missing := filepath.Join(t.TempDir(), "missing")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("# nobody\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{nil, cli.ExitUsage, "name the place of the journal"},
		{[]string{"--data-dir", dir}, cli.ExitLocked, "stop that server or choose another directory"},
		{[]string{"--data-dir", t.TempDir(), "--http", r.server.HTTP}, cli.ExitFailure, "address already in use"},
		{[]string{"--data-dir", t.TempDir(), "--http", "0.0.0.0:0"}, cli.ExitUsage, "no credentials are set"},
		{[]string{"--data-dir", t.TempDir(), "--grpc", "[::]:0"}, cli.ExitUsage, "no credentials are set"},
		{[]string{"--data-dir", t.TempDir(), "--http", "7420"}, cli.ExitUsage, "want host:port"},
		{[]string{"--data-dir", t.TempDir(), "--credentials", missing}, cli.ExitUsage, "no such file"},
		{[]string{"--data-dir", t.TempDir(), "--credentials", empty}, cli.ExitUsage, "it is empty"},
		{[]string{"--data-dir", t.TempDir(), "--tls-cert", missing}, cli.ExitUsage, "belong together"},
		{[]string{"--data-dir", t.TempDir(), "--tls-cert", missing, "--tls-key", missing}, cli.ExitUsage, "no such file"},
		{[]string{"--data-dir", t.TempDir(), "--log-level", "loud"}, cli.ExitUsage, "want debug, info, warn or error"},
		{[]string{"--data-dir", t.TempDir(), "--log-format", "xml"}, cli.ExitUsage, "want text, json or gcp"},
		{
			[]string{"--data-dir", t.TempDir(), "--peer-name", "interlock.internal"},
			cli.ExitUsage, "--peer-ca and --peer-name are about TLS",
		},
		{
			[]string{"--data-dir", t.TempDir(), "--otlp-metrics", "collector:4318"},
			cli.ExitUsage, "--otlp-metrics: want a URL",
		},
		{
			[]string{"--data-dir", t.TempDir(), "--otlp-metrics", "http://127.0.0.1:4318", "--otlp-interval", "10ms"},
			cli.ExitUsage, "--otlp-interval 10ms: want at least 1s",
		},
		{[]string{"--data-dir", t.TempDir(), "--host", "http://example.com"}, cli.ExitUsage, "without a scheme"},
		{[]string{"--data-dir", t.TempDir(), "--journal", "file:" + dir}, cli.ExitUsage, "use one of them"},
		{[]string{"--journal", "mysql://127.0.0.1"}, cli.ExitUsage, "this version keeps journals in directories"},
		{[]string{"--journal", "etcd://127.0.0.1"}, cli.ExitUsage, "want a name of the journal"},
		{[]string{"--journal", "etcd://127.0.0.1/one", "--shards", "1025"}, cli.ExitUsage, "want 1 to 1024"},
		{[]string{"--journal", "etcd://127.0.0.1/one", "--weight", "9"}, cli.ExitUsage, "want 1 to 8"},
		{[]string{"--journal", "etcd://127.0.0.1/one", "--peer-ca", "ca.pem"}, cli.ExitUsage, "set --tls-cert"},
		{[]string{"--data-dir", t.TempDir(), "--shards", "2"}, cli.ExitUsage, "has one shard"},
		{[]string{"--journal", "etcd://root:secret@127.0.0.1/one"}, cli.ExitUsage, "by a certificate"},
		{[]string{"--journal", "etcd://127.0.0.1/one", "--segment-bytes", "1048576"}, cli.ExitUsage, "leave it out"},
		{[]string{"--journal", "etcd://127.0.0.1/one", "--standby-after", "1500ms"}, cli.ExitUsage, "at least 2s"},
		{[]string{"--journal", "file:" + dir}, cli.ExitLocked, "another server holds it"},
		{[]string{"--data-dir", filepath.Join(empty, "below")}, cli.ExitFailure, "not a directory"},
		{[]string{"--data-dir", t.TempDir(), "--segment-bytes", "1"}, cli.ExitUsage, "at least"},
		{[]string{"--data-dir", t.TempDir(), "--shutdown-timeout", "0"}, cli.ExitUsage, "above zero"},
	} {
		out, code := serving(t, nil, tt.args...).end()
		if code != tt.code || !strings.Contains(out, tt.says) || strings.Contains(out, "ready http") {
			t.Errorf(
				"serve %s: exit code %d, want %d and %q; it said:\n%s", strings.Join(tt.args, " "), code, tt.code, tt.says, out,
			)
		}
	}
}

// Every flag has a variable, and a flag on the command line wins over it.
func TestServeEnvironment(t *testing.T) {
	dir := t.TempDir()
	env := append(cleanEnvironment(), "INTERLOCK_SERVE_DATA_DIR="+dir,
		"INTERLOCK_SERVE_HTTP=127.0.0.1:0", "INTERLOCK_SERVE_GRPC=127.0.0.1:0",
		"INTERLOCK_SERVE_LOG_FORMAT=json", "INTERLOCK_SERVE_LOG_LEVEL=debug", "INTERLOCK_SERVE_SNAPSHOT_BYTES=4096")
	p := startProc(t, env, "serve", "--log-format", "text")
	p.ready()
	p.expect("level=INFO msg=ready")
	p.signal(syscall.SIGTERM)
	p.ends(0)
	if _, err := os.Stat(filepath.Join(dir, "identity")); err != nil {
		t.Error(err)
	}
	p = startProc(t, env, "serve")
	p.ready()
	p.expect(`"level":"INFO","msg":"ready"`)
	p.signal(syscall.SIGTERM)
	p.ends(0)

	if out := startProc(t, append(env, "INTERLOCK_SERVE_SNAPSHOT_BYTES=many"), "serve").ends(cli.ExitUsage); !strings.Contains(
		out, "INTERLOCK_SERVE_SNAPSHOT_BYTES: ",
	) {
		t.Error(out)
	}
	for variable, want := range map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS=secret":            "OTEL_EXPORTER_OTLP_HEADERS: want name=value",
		"OTEL_EXPORTER_OTLP_METRICS_HEADERS=a=%secret": "OTEL_EXPORTER_OTLP_METRICS_HEADERS: the value of a",
		"OTEL_RESOURCE_ATTRIBUTES=secret":              "OTEL_RESOURCE_ATTRIBUTES: want name=value",
	} {
		out := startProc(t, append(env, variable), "serve", "--otlp-metrics", "http://127.0.0.1:1").ends(cli.ExitUsage)
		if !strings.Contains(out, want) || strings.Contains(out, "secret") {
			t.Errorf("%s: %s", variable, out)
		}
	}
	out := startProc(t, append(env, "INTERLOCK_SERVE_INSECURE=perhaps"), "serve").ends(cli.ExitUsage)
	if !strings.Contains(
		out, "INTERLOCK_SERVE_INSECURE: ",
	) {
		t.Error(out)
	}
}

// Credentials and the certificate are read again on SIGHUP, and both doors speak TLS.
func TestServeReloads(t *testing.T) {
	dir := t.TempDir()
	cert, key := certtest.SelfSigned(t, dir, 1)
	file := filepath.Join(dir, "credentials")
	credential := func(name string) string {
		out, code := startProc(t, cleanEnvironment(), "credential", "create", name, "--file", file).end()
		if code != 0 {
			t.Fatal(out)
		}
		secret, _, _ := strings.Cut(out, "\n")
		return secret
	}
	first := credential("first")
	p := serving(t, nil, "--data-dir", t.TempDir(), "--credentials", file, "--tls-cert", cert, "--tls-key", key)
	address, grpc := p.ready()
	try := func(secret string, want int) {
		t.Helper()
		env := append(
			cleanEnvironment(), "INTERLOCK_URL=https://"+address, "INTERLOCK_GRPC="+grpc, "INTERLOCK_TLS_CA="+cert,
			"INTERLOCK_CREDENTIAL="+secret,
		)
		startProc(t, env, "key", "list").ends(want)
		startProc(t, env, "run", "k", "--", "true").ends(want)
	}
	try(first, 0)
	try("ilk_unknown", cli.ExitForbidden)

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	second := credential("second")
	certtest.SelfSigned(t, dir, 2)
	try(first, cli.ExitUnreachable) // the client trusts the new certificate only
	p.signal(syscall.SIGHUP)
	p.expect("credentials were read again")
	p.expect("certificate was read again")
	try(first, cli.ExitForbidden)
	try(second, 0)

	// A file that cannot be used changes nothing.
	for _, name := range []string{file, key} {
		if err := os.WriteFile(name, []byte("nonsense\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.signal(syscall.SIGHUP)
	p.expect("credentials stay as they were")
	p.expect("certificate stays as it was")
	try(second, 0)
	p.signal(syscall.SIGTERM)
	p.ends(0)
}

// A copied data directory hands out fences far above those of its original, once; --restored does
// so whenever it is set. With the fences the keys that sign them are new, so that no copy speaks
// for its original.
func TestServeCopiedJournal(t *testing.T) {
	original := t.TempDir()
	fence := func(dir string, args ...string) (fence uint64, keys string) {
		t.Helper()
		r := &rig{t: t, dir: dir, server: launchtest.Start(t, launch.Config{DataDir: dir, Args: args})}
		r.env = r.environment()
		out := r.must("run", "k", "--", "sh", "-c", `echo "fence=$INTERLOCK_FENCE"`)
		i := strings.Index(out, "fence=")
		if i < 0 {
			t.Fatal(out)
		}
		if _, err := fmt.Sscanf(out[i:], "fence=%d", &fence); err != nil {
			t.Fatal(err)
		}
		keys = r.must("fence", "keys")
		ctx, cancel := context.WithTimeout(t.Context(), busy.Patience())
		defer cancel()
		if err := r.server.Stop(ctx); err != nil {
			t.Fatal(err)
		}
		return fence, keys
	}
	got, keys := fence(original)
	if got != 1 {
		t.Errorf("the first fence is %d", got)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(original)); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	jumped, copiedKeys := fence(copied)
	const jump = 1 << 40 // of the fences of a copied journal
	if jumped <= jump || copiedKeys == keys {
		t.Errorf("the copy's fence is %d, its keys %s", jumped, copiedKeys)
	}
	if got, again := fence(copied); got != jumped+1 || again != copiedKeys {
		t.Errorf("the adopted copy's fence is %d, want %d; its keys %s", got, jumped+1, again)
	}
	if got, again := fence(copied, "--restored"); got <= jumped+jump || again == copiedKeys {
		t.Errorf("the restored journal's fence is %d, its keys %s", got, again)
	}
	if got, again := fence(original); got != 2 || again != keys {
		t.Errorf("the original's second fence is %d, its keys %s", got, again)
	}
}
