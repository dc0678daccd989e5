package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cluster"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/datadir"
	"github.com/interlockdev/interlock/internal/otlp"
	"github.com/interlockdev/interlock/placement"
	"github.com/interlockdev/interlock/server"
)

// serveConfig is the flags of serve.
type serveConfig struct {
	DataDir, Journal       string
	HTTP, GRPC             string
	RESP, RESPStrip        string
	RESPTest               bool
	Credentials            string
	UI, HookDisk           bool
	TLSCert, TLSKey        string
	Insecure               bool
	WebhookAllow           []string
	PublicURL              string
	Hosts                  []string
	Files                  []string
	LogFormat, LogLevel    string
	OTLPMetrics            string
	OTLPInterval           time.Duration
	SnapshotBytes          int64
	KeepBytes              int64
	SegmentBytes           int64
	Restored               bool
	Restore                string
	ShutdownTimeout        time.Duration
	MaxStreams, MaxWaiting int
	MaxEventStreams        int
	MaxConnections         int
	MaxMemory              int64
	MaxDowntime            time.Duration
	MetricSeries           int
	AdvertiseHTTP          string
	AdvertiseGRPC          string
	StandbyAfter           time.Duration
	AllowLoss              bool
	Shards                 int
	Stores                 []string
	Weight                 int
	PeerCA, PeerName       string

	place  datadir.Place            // of the journal
	stores map[string]datadir.Place // of more shards
	level  slog.Level               // LogLevel, parsed
	otlp   *otlp.Config             // of OTLPMetrics, and of the environment; nil without it
}

// New returns the command serve.
func New(a *cli.App) *cobra.Command {
	var cfg serveConfig
	cmd := &cobra.Command{
		Use:   "serve --data-dir DIR",
		Short: "Start a server",
		Long: `Start a server. It keeps its journal in DIR, which it creates if it is missing, and serves
HTTP/JSON and the session stream. When it is ready it prints one line on standard output,
"ready http=ADDR grpc=ADDR", or with -o json the same as an object; logs go to standard
error. With --resp it also answers programs that take their locks from Redis; the line
then ends in "resp=ADDR".

Which journal to choose (--journal); docs/journals.md compares them:

` + datadir.Choice() + `
Over an engine several servers share the shards of the journal. Any of them answers
every call: it forwards those of another one's shards. When a server dies or stands still,
the others take its shards over. Each prints "ready http=ADDR grpc=ADDR" when it owns a
shard, and "standby ..." when it owns none.

Without credentials it listens on loopback only. Make a credential with
"interlock credential create".

On SIGTERM or SIGINT it shuts down: it grants nothing more, asks its clients to reconnect,
writes everything and exits with 0; a second signal ends it at once. Leases and places in
line are kept either way. The credentials and the certificate are read again when their
files change, and at once on SIGHUP; without either SIGHUP stops a server that was started on
a terminal, since the terminal is gone then, and has no effect on any other.

Exit codes: 0 stopped as asked, 2 wrong flags or configuration, 3 the journal is
damaged, 4 another server holds the journal, 5 a newer version wrote the journal, 6 the
clock is far ahead of the journal, 70 the disk failed, 1 anything else, such as an address in
use.`,
		Example: `  interlock serve --data-dir data
  interlock serve --data-dir data --http 0.0.0.0:7420 --grpc 0.0.0.0:7421 \
      --credentials credentials.txt --tls-cert cert.pem --tls-key key.pem`,
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.Offline: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.check(); err != nil {
				return err
			}
			return serve(cmd.Context(), a, &cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.DataDir, "data-dir", "", "the `directory` of the journal; made when it is missing")
	f.StringVar(
		&cfg.Journal, "journal", "",
		"the journal as a `URL`, in place of --data-dir: "+datadir.Schemes(),
	)
	f.StringArrayVar(
		&cfg.Stores, "store", nil,
		"another engine for shards that interlock admin shards add makes, as `NAME=URL`; may be repeated",
	)
	f.BoolVar(
		&cfg.AllowLoss, "allow-loss", false,
		"accept an engine with settings under which a crash may lose acknowledged entries, such as fsync = off",
	)
	f.StringVar(&cfg.HTTP, "http", cli.DefaultHTTP, "`address` for HTTP/JSON; port 0 picks a free one")
	f.StringVar(
		&cfg.GRPC, "grpc", cli.DefaultGRPC, "`address` for session streams, gRPC among them; port 0 picks a free one",
	)
	f.StringVar(
		&cfg.RESP, "resp", "",
		"`address` for programs that take their locks from Redis, such as 127.0.0.1:6379; off without it",
	)
	f.StringVar(
		&cfg.RESPStrip, "resp-strip", "",
		"`prefix` that is cut off the keys of --resp: with lock: their key lock:account:1 is account:1 for all others",
	)
	f.BoolVar(
		&cfg.RESPTest, "resp-test", false,
		"let any client of --resp delete the keys of others, as test suites of libraries do",
	)
	f.StringVar(&cfg.Credentials, "credentials", "", "`file` of credentials, made by interlock credential create")
	f.BoolVar(&cfg.UI, "ui", true, "offer the dashboard to browsers, at /ui/")
	f.BoolVar(
		&cfg.HookDisk, "hook-disk", false,
		"look at this machine's disk for hooks of callers at its loopback address: keys then tell where links lead "+
			"(always so without credentials, --host, --public-url and --insecure)",
	)
	f.StringVar(&cfg.TLSCert, "tls-cert", "", "`file` with the certificate (PEM); both listeners then accept only TLS")
	f.StringVar(&cfg.TLSKey, "tls-key", "", "`file` with the certificate's key (PEM)")
	f.BoolVar(
		&cfg.Insecure, "insecure", false, "listen on public addresses without credentials: every client may do everything",
	)
	f.StringSliceVar(&cfg.Hosts, "host", nil, "further `names` of the server, such as interlock.example.com")
	f.StringSliceVar(
		&cfg.Files, "files", nil,
		"`directories` that agents share below /v1/files: DIR for the namespace default, or NAMESPACE=DIR",
	)
	f.StringSliceVar(
		&cfg.WebhookAllow, "webhook-allow", nil,
		"`networks`, addresses and hosts that webhooks may call besides public addresses: 10.1.0.0/16, hooks.internal",
	)
	f.StringVar(
		&cfg.PublicURL, "public-url", "",
		"`URL` of this server for people, such as https://interlock.example.com: messages of webhooks then have links",
	)
	f.StringVar(
		&cfg.LogFormat, "log-format", "text",
		"`form` of the logs: text, json, or gcp, which is json with the names of Google Cloud Logging",
	)
	f.StringVar(&cfg.LogLevel, "log-level", "info", "the lowest `level` that is logged: debug, info, warn or error")
	f.StringVar(
		&cfg.OTLPMetrics, "otlp-metrics", "",
		"`URL` of a collector of OpenTelemetry, such as http://127.0.0.1:4318, to push the metrics to, too; off without it",
	)
	cli.DurationVar(f, &cfg.OTLPInterval, "otlp-interval", 30*time.Second, "time from one push to the next")
	f.Int64Var(
		&cfg.SnapshotBytes, "snapshot-bytes", 0,
		"`bytes` of journal, more than the last snapshot has, after which the next one is made; bounds how long a start takes (default 64 MiB, 256 KiB in an engine)",
	)
	f.Int64Var(
		&cfg.KeepBytes, "keep-bytes", 0,
		"about how many `bytes` of journal are kept as history (default 1 GiB; -1: only what a restart needs)",
	)
	f.Int64Var(&cfg.SegmentBytes, "segment-bytes", 0, "size of one file of the journal in `bytes` (default 64 MiB)")
	f.BoolVar(
		&cfg.Restored, "restored", false,
		"the journal was restored from a backup: fences and versions begin far above all earlier ones",
	)
	f.StringVar(
		&cfg.Restore, "restore", "",
		"start from the backup at this `path`, which interlock admin backup has made; the journal must be empty",
	)
	cli.DurationVar(f, &cfg.ShutdownTimeout, "shutdown-timeout", 10*time.Second, "how long a shutdown may take")
	f.IntVar(
		&cfg.MaxConnections, "max-connections", 0,
		"concurrent connections, HTTP and gRPC together (default: the limit of open files less the journal's)",
	)
	cli.DurationVar(
		f, &cfg.MaxDowntime, "max-downtime", 90*24*time.Hour,
		"how far the clock may be ahead of the journal's newest entry at the start before it counts as wrong; 0: any time",
	)
	f.Int64Var(
		&cfg.MaxMemory, "max-memory", 0,
		"`bytes` of memory that the server may use; with half of them in use newcomers are refused (default: GOMEMLIMIT, or 75 % of the machine's or the container's; -1: any)",
	)
	f.IntVar(&cfg.MaxStreams, "max-streams", 0, "session streams at a time (default 10,000)")
	f.IntVar(&cfg.MaxEventStreams, "max-event-streams", 0, "readers of events at a time, a namespace (default 64)")
	f.IntVar(
		&cfg.MaxWaiting, "max-waiting", 0, "commands that may wait for the engine before more are refused (default 65,536)",
	)
	f.IntVar(
		&cfg.MetricSeries, "metric-series", server.DefaultSeries,
		"`label sets` of each metric by namespace, the busiest, besides the one for all others; at most 1,000; 0 turns these metrics off",
	)
	f.StringVar(
		&cfg.AdvertiseHTTP, "advertise-http", "",
		"`URL` under which clients and other servers reach this one (default: where it listens)",
	)
	f.StringVar(&cfg.AdvertiseGRPC, "advertise-grpc", "", "`address` of its session streams, likewise")
	cli.DurationVar(
		f, &cfg.StandbyAfter, "standby-after", cluster.DefaultTTL,
		"how long a server may be silent before others take its shards over; half as long, if it does not answer them "+
			"either: at least 2s",
	)
	f.IntVar(
		&cfg.Shards, "shards", 0,
		"`parts` that a new journal in an engine is made with, which its servers share: 1 to 1024 (default 16)",
	)
	f.IntVar(&cfg.Weight, "weight", 1, "this server's `part` of the shards, relative to the others: 1 to 8")
	f.StringVar(
		&cfg.PeerCA, "peer-ca", "",
		"`file` with the authorities (PEM) that signed the other servers' certificates (default: the system's)",
	)
	f.StringVar(
		&cfg.PeerName, "peer-name", "",
		"`name` that the other servers' certificates have (default: the host of their advertised address)",
	)
	cli.BindAll(cmd)
	return cmd
}

// checkStores reads the engines of more shards.
func (c *serveConfig) checkStores() error {
	c.stores = map[string]datadir.Place{}
	for _, text := range c.Stores {
		name, url, ok := strings.Cut(text, "=")
		if !ok || !placement.ValidStore(name) { // without a name the URL may have stood for it
			return cli.Usagef("--store: want NAME=URL, a name of a-z, 0-9 and -, and an engine")
		}
		place, err := datadir.ParsePlace(url, c.AllowLoss)
		switch {
		case err != nil:
			return cli.Usagef("--store %s=%s: %w", name, datadir.Shown(url), err)
		case !place.Remote():
			return cli.Usagef("--store %s: want NAME=URL, with the URL of an engine", name)
		case !c.place.Remote():
			return cli.Usagef("--store: a journal in a directory has one shard: put it into an engine with --journal")
		}
		c.stores[name] = place
	}
	return nil
}

// check makes sense of the flags before anything is touched.
func (c *serveConfig) check() error {
	switch {
	case c.DataDir != "" && c.Journal != "":
		return cli.Usagef("--journal and --data-dir are two places of the journal: use one of them")
	case c.Journal != "":
		place, err := datadir.ParsePlace(c.Journal, c.AllowLoss)
		if err != nil {
			return cli.Usagef("--journal %s: %w", datadir.Shown(c.Journal), err)
		}
		c.place, c.DataDir = place, place.Dir
	case c.DataDir == "":
		return cli.Usagef("name the place of the journal: interlock serve --data-dir DIR")
	case datadir.IsURL(c.DataDir):
		return cli.Usagef(
			"--data-dir is for a directory, and %s is the URL of a journal: use --journal", datadir.Shown(c.DataDir),
		)
	default:
		c.place = datadir.Place{Kind: "file", Text: c.DataDir, Dir: c.DataDir}
	}
	if err := c.checkStores(); err != nil {
		return err
	}
	if strings.Contains(c.AdvertiseHTTP, "@") || strings.Contains(c.AdvertiseGRPC, "@") {
		return cli.Usagef(
			"--advertise-http and --advertise-grpc are shown to all clients: write them without user and password",
		)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return cli.Usagef("--tls-cert and --tls-key belong together: set both, or neither")
	}
	if c.Shards < 0 || c.Shards > placement.MaxShards {
		return cli.Usagef("--shards %d: want 1 to %d", c.Shards, placement.MaxShards)
	}
	if c.Shards > 1 && !c.place.Remote() {
		return cli.Usagef("--shards: a journal in a directory has one shard: put it into an engine with --journal")
	}
	if c.Weight < 1 || c.Weight > placement.MaxWeight {
		return cli.Usagef("--weight %d: want 1 to %d", c.Weight, placement.MaxWeight)
	}
	if (c.PeerCA != "" || c.PeerName != "") && c.TLSCert == "" {
		return cli.Usagef("--peer-ca and --peer-name are about TLS: set --tls-cert and --tls-key, too")
	}
	if c.RESP == "" && (c.RESPStrip != "" || c.RESPTest) {
		return cli.Usagef("--resp-strip and --resp-test are about --resp: set that, too")
	}
	if c.RESPTest && public(c.RESP) {
		return cli.Usagef(
			"--resp-test lets any client delete the keys of others: listen on loopback, such as --resp 127.0.0.1:6379",
		)
	}
	for flag, addr := range map[string]string{"--http": c.HTTP, "--grpc": c.GRPC, "--resp": c.RESP} {
		if addr == "" && flag == "--resp" {
			continue
		}
		if err := server.CheckListen(addr, c.Credentials != "", c.Insecure); err != nil {
			return cli.Usagef("%s: %w", flag, err)
		}
	}
	if c.MaxDowntime < 0 {
		return cli.Usagef("--max-downtime cannot be negative: 0 means any time")
	}
	if c.ShutdownTimeout <= 0 {
		return cli.Usagef("--shutdown-timeout: want a duration above zero, such as 10s")
	}
	if c.MaxConnections < 0 || c.MaxStreams < 0 || c.MaxEventStreams < 0 || c.MaxWaiting < 0 {
		return cli.Usagef("--max-connections, --max-streams, --max-event-streams and --max-waiting cannot be negative")
	}
	if c.MetricSeries < 0 || c.MetricSeries > server.MaxSeries {
		return cli.Usagef("--metric-series %d: want 0 to %d", c.MetricSeries, server.MaxSeries)
	}
	if c.SegmentBytes != 0 && c.SegmentBytes < leastSegment {
		return cli.Usagef("--segment-bytes %d: want at least %d", c.SegmentBytes, leastSegment)
	}
	if c.place.Remote() && c.SegmentBytes != 0 {
		return cli.Usagef("--segment-bytes is about the files of a directory: leave it out with this --journal")
	}
	if c.place.Remote() && c.SnapshotBytes == 0 {
		c.SnapshotBytes = remoteSnapshotBytes
	}
	if c.AllowLoss && !c.place.MayLose() {
		return cli.Usagef("--allow-loss is about a journal in %s: leave it out with this one", datadir.MayLose())
	}
	if c.StandbyAfter < 2*time.Second {
		return cli.Usagef("--standby-after %v: want at least 2s", c.StandbyAfter)
	}
	if err := c.level.UnmarshalText([]byte(c.LogLevel)); err != nil || strings.ContainsAny(c.LogLevel, "+-") {
		return cli.Usagef("--log-level %s: want debug, info, warn or error", cli.Clean(c.LogLevel))
	}
	if !slices.Contains(logFormats, c.LogFormat) {
		return cli.Usagef("--log-format %s: want text, json or gcp", cli.Clean(c.LogFormat))
	}
	return c.checkOTLP()
}

// leastSegment is the smallest file of a journal that is accepted.
const leastSegment = 4 << 10

// remoteSnapshotBytes is the default of --snapshot-bytes in an engine, from which a server that takes over shards
// reads some thousand entries a second: fewer than in a directory, where it is a hundred times as many.
const remoteSnapshotBytes = 256 << 10

// serve runs a server until ctx ends or the server fails.
func serve(ctx context.Context, a *cli.App, cfg *serveConfig) error {
	every := cfg.logger(os.Stderr) // also what repeats, because an operator has asked for it
	log := slog.New(newQuiet(every.Handler()))
	signals := cli.WatchSignals()
	defer signals.Stop()

	p, err := startProcess(signals.Context(ctx), cfg, log)
	if err != nil {
		if signals.Asked() {
			log.Info("stopped before the server was ready")
			return nil
		}
		return err
	}
	p.startPushing()
	if p.credentials != nil {
		watched, stop := context.WithCancel(ctx)
		defer stop()
		go p.credentials.Watch(watched, every)
	}
	announce := func(role string) { p.announce(a, role) }
	if p.fleet != nil {
		p.fleet.run(ctx, announce)
	} else {
		announce("active")
	}

	for {
		select {
		case <-signals.Stopping():
			log.Info("stopping: nothing is granted any more, a second signal ends the server at once", "signal", signals.Name())
			return p.shutdown(ctx, cfg.ShutdownTimeout)
		case <-signals.Reload:
			switch {
			case p.reload(every):
			case signals.Hangup:
				signals.StopNow("SIGHUP")
			default:
				log.Info("SIGHUP: there are neither credentials nor certificates to read again; going on")
			}
		case err := <-p.failed:
			// An API that fails by itself leaves a server that no client can use.
			return errors.Join(fmt.Errorf("a listener failed: %w", err), p.shutdown(ctx, cfg.ShutdownTimeout))
		case <-p.ended():
			err := p.why()
			p.abandon()
			return err
		}
	}
}

// announce prints to standard output what the server is now: "ready" when it is the one that
// serves, "standby" when it waits for that.
func (p *process) announce(a *cli.App, role string) {
	httpAddr, grpcAddr, respAddr, resp := p.http.Addr().String(), p.grpc.Addr().String(), "", ""
	if p.resp != nil {
		respAddr = p.resp.Addr().String()
		resp = " resp=" + respAddr
	}
	word := "ready"
	if role != "active" {
		word = role
	}
	var err error
	if a.JSON() {
		err = a.Print(struct {
			Ready bool   `json:"ready"`
			Role  string `json:"role"`
			HTTP  string `json:"http"`
			GRPC  string `json:"grpc"`
			RESP  string `json:"resp,omitempty"`
		}{role == "active", role, httpAddr, grpcAddr, respAddr})
	} else {
		_, err = fmt.Fprintf(a.Out, "%s http=%s grpc=%s%s\n", word, httpAddr, grpcAddr, resp)
	}
	if err != nil {
		p.log.Warn("standard output is closed", "error", err)
	}
	if a.OnScreen() && !a.JSON() && role == "active" {
		a.Complain("try: interlock run demo:1 -- sleep 20")
		return // the log would repeat it
	}
	p.log.Info(word, "http", httpAddr, "grpc", grpcAddr, "resp", respAddr, "journal", p.cfg.where(),
		"credentials", p.cfg.Credentials != "", "tls", p.cfg.TLSCert != "", "version", cli.Version())
}
