package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/guard/file"
	"github.com/interlockdev/interlock/guard/signed"
	"github.com/interlockdev/interlock/shard"
	"github.com/interlockdev/interlock/webhook"
)

// Shard is the part of *shard.Shard that the APIs need.
type Shard interface {
	// Submit hands commands over; their answers go to each one's Head.From.
	Submit(cmds ...engine.Command) error
	// Execute is Submit for a goroutine that has time: it may carry the commands out itself,
	// and whatever else waits, before it returns.
	Execute(cmds ...engine.Command) error
	// Came counts how often commands have come, of all callers.
	Came() uint64
	// Do submits one command and returns its first answer.
	Do(ctx context.Context, cmd engine.Command) (engine.Effect, interlock.At, error)
	// Read runs a query between two steps, in the turn of a namespace (or "" for the
	// whole shard), and returns when what it saw is durable.
	Read(ctx context.Context, namespace interlock.Namespace, query func(*engine.Engine, engine.Time)) (interlock.At, error)
	// Survey is Read for a query that looks at much: it is called until it is done,
	// and other namespaces have their turns between.
	Survey(
		ctx context.Context, namespace interlock.Namespace, look func(*engine.Engine, engine.Time) (done bool),
	) (interlock.At, error)
	// Head returns the head of the journal's hash chain, of all that was answered before.
	Head(ctx context.Context) (head string, at interlock.At, err error)
	// Backup begins a backup of all that was answered before, which the caller closes.
	Backup(ctx context.Context) (*shard.Backup, error)
	// Follow visits the journal's events of a namespace, and then new ones, at the
	// follower's own pace, until ctx ends or the follower returns an error.
	Follow(ctx context.Context, f shard.Follower) error
	// Condition returns the state of the shard, for operators.
	Condition(ctx context.Context) (shard.Condition, interlock.At, error)
	// Seek returns an index before all entries from a time on, and not far before the first of them.
	Seek(ctx context.Context, t engine.Time) (interlock.Index, error)
	// LookBack is Survey as of an index and a time, Compare looks at two of them, Oldest is the first index that
	// both can answer about, and IndexAt finds the last entry up to a time: see shard.Past.
	LookBack(
		ctx context.Context, past *shard.Past, index interlock.Index, now engine.Time,
		look func(*engine.Engine, engine.Time) (done bool),
	) (interlock.At, error)
	Compare(
		ctx context.Context, past *shard.Past, first, second shard.Moment,
		look func(first, second *engine.Engine) (done bool),
	) (at interlock.At, failed interlock.Index, err error)
	Oldest(ctx context.Context) (interlock.Index, error)
	IndexAt(ctx context.Context, t engine.Time, margin time.Duration) (interlock.Index, error)
	// OnReset registers a function to call when the engine was rebuilt and forgot its listeners.
	OnReset(f func())
	// At is the last durable state, First the oldest entry that is still kept.
	At() interlock.At
	First() interlock.Index
	// Failed is closed when the shard can no longer answer; Err returns why.
	Failed() <-chan struct{}
	Err() error
}

// Config holds the settings of a server. Only Shard is required.
type Config struct {
	// Shard serves every namespace. The server never closes it.
	Shard Shard

	// Observer is the one that was given to the shard as its Observer; /metrics shows what it
	// counts, and it learns of changed quotas. nil means a fresh one: its figures about the journal
	// stay at zero, and quotas of requests and bytes stay as they were when a namespace was first
	// used.
	Observer *Observer

	// Credentials holds the principals that may come in. nil means that every client may, and may
	// choose any namespace: never offer such a server on a public address (see CheckListen).
	Credentials *Credentials

	// Hosts are further names under which browsers and clients may address the
	// server, such as "interlock.example.com"; a port in them is optional and then
	// must match. Loopback names and the address that the connection came in on
	// are always allowed.
	Hosts []string

	// Files are directories that the agents of a namespace share (see guard/file),
	// below /v1/files. The server never closes them. nil means none.
	Files map[interlock.Namespace]*file.Dir

	// MaxEventStreams bounds the readers of /v1/events of one namespace. 0 means
	// 64.
	MaxEventStreams int

	// MaxInFlight bounds the bytes of requests and answers under way. 0 means any number.
	MaxInFlight int64

	// Fences holds the keys with which fences are signed. nil means fresh ones in memory: after a
	// restart nothing that was signed before can be verified.
	Fences *signed.Ring

	// Webhooks is how messages about events are sent. They are sent while SendWebhooks runs.
	Webhooks WebhookConfig

	// JournalKind is what keeps the journal: file, etcd, postgres, firestore, s3, redis or memory. "" means that this
	// is not known.
	JournalKind string

	// Disk returns how many bytes the journal takes and how many are free where it is. nil, or ok
	// false, means that this is not known.
	Disk func() (used, free int64, ok bool)

	// Started is when the process began; zero: now.
	Started time.Time

	// Forward carries the calls of a router to the owners of other shards. nil means that they are refused.
	Forward *Forwarder

	// Shared tells that the journal has several shards, or may have them: ids of events name the shard.
	Shared bool

	// Operations moves namespaces and drains servers, for a router. nil means that there is one shard.
	Operations Operations

	// Process has metrics that the process counts outside of the server, and /metrics shows. nil means none.
	Process prometheus.Gatherer

	// Desk is that of the shard: what is made of the journal takes turns with its readers. nil means one of its own.
	Desk *shard.Desk

	// Past answers about earlier states, for all shards of the process. nil means one of its own.
	Past *shard.Past

	// Version is shown by /openapi.json and as a metric. "" means "dev".
	Version string

	// Logger gets what the server has to say about itself. nil means
	// slog.Default.
	Logger *slog.Logger
}

// Server is the APIs of one process. Its methods may be called by any number of
// goroutines.
type Server struct {
	shard       Shard
	past        *shard.Past
	overviews   overviews
	archive     bool // the journal has no owner, so nothing is to be confirmed
	obs         *Observer
	process     prometheus.Gatherer // nil if there are no metrics but those of obs
	credentials *Credentials
	fences      *signed.Ring
	hosts       hostRule
	streams     streamLimit
	files       map[interlock.Namespace]*sharedFiles
	limiter     *limiter
	flight      *flight
	comparing   *shard.Desk // of bodies, for packets
	reading     *shard.Desk // for answers that are made from the journal
	histories   histories
	pages       histories
	settling    *effectWatch
	sender      *webhook.Sender
	confirmer   confirmer
	version     string
	journalKind string
	disk        func() (used, free int64, ok bool)
	started     time.Time
	log         *slog.Logger
	directory   Directory // of a router; nil for the owner of a shard
	forward     *Forwarder
	operations  Operations
	shared      bool
	metrics     http.Handler
	allMetrics  http.Handler // with the figures by namespace

	links   atomic.Uint64   // the last number given to a connection or a call
	resets  broadcast       // when the engine forgot its listeners
	serving context.Context // ends with Drain
	drain   context.CancelFunc
	openapi []byte
}

// New makes the APIs over an open shard. Nothing listens yet: the caller serves
// HTTPHandler, and registers the gRPC service, on listeners of its own.
func New(cfg Config) (*Server, error) {
	if cfg.Shard == nil {
		return nil, errors.New("server: Config.Shard is required")
	}
	s := &Server{
		shard:       cfg.Shard,
		past:        cfg.Past,
		obs:         cfg.Observer,
		process:     cfg.Process,
		credentials: cfg.Credentials,
		fences:      cfg.Fences,
		streams:     streamLimit{max: cfg.MaxEventStreams},
		histories:   histories{places: historyPlaces},
		pages:       histories{places: pagePlaces},
		files:       newFiles(cfg.Files),
		flight:      newFlight(cfg.MaxInFlight),
		comparing:   shard.NewDesk(0),
		reading:     cfg.Desk,
		version:     cfg.Version,
		journalKind: cfg.JournalKind, shared: cfg.Shared,
		disk:    cfg.Disk,
		started: cfg.Started,
		log:     cfg.Logger,
	}
	s.serving, s.drain = context.WithCancel(context.Background())
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.obs == nil {
		s.obs = NewObserver(nil, nil)
	}
	if s.reading == nil {
		s.reading = shard.NewDesk(0)
	}
	if s.past == nil {
		s.past = shard.NewPast()
	}
	if s.started.IsZero() {
		s.started = time.Now()
	}
	if s.fences == nil {
		s.fences = signed.NewRing()
	}
	if s.version == "" {
		s.version = "dev"
	}
	if s.streams.max <= 0 {
		s.streams.max = 64
	}
	var err error
	if s.hosts, err = newHostRule(cfg.Hosts, cfg.Credentials != nil); err != nil {
		return nil, err
	}
	if err := s.hosts.addURL(cfg.Webhooks.PublicURL); err != nil {
		return nil, err
	}
	if s.openapi, err = openAPIDocument(s.version); err != nil {
		return nil, err
	}
	s.limiter = newLimiter(s.shard)
	s.confirmer.server = s
	s.overviews.server = s
	s.settling = newSettling(s.shard, s.log)
	if s.sender, err = s.newSender(cfg.Webhooks); err != nil {
		return nil, err
	}
	s.obs.watch(s.shard, s.version, s.journalKind, s.limiter, s.flight)
	s.obs.sender.Store(s.sender)
	s.shard.OnReset(s.resets.all)
	s.obs.leavers.add(func(interlock.Namespace) { s.resets.all() })
	s.metrics, s.allMetrics = s.showMetrics()
	return s, nil
}

// Drain tells every call that waits, and every reader of events, to come back
// later (503 shutting_down, the end of the stream), and answers new ones so too.
// Calls that do not wait are still carried out, releases among them.
//
// A process ends in this order: Drain, Shard.Drain (no more grants), then
// http.Server.Shutdown and the end of the gRPC server, then Shard.Close.
func (s *Server) Drain() { s.drain() }

// Draining is closed when Drain was called.
func (s *Server) Draining() <-chan struct{} { return s.serving.Done() }

func (s *Server) isDraining() bool { return s.serving.Err() != nil }

// nextLink numbers a connection or a call, for engine.Head.Link.
func (s *Server) nextLink() uint64 { return s.links.Add(1) }

// insist submits what must not get lost when the shard is overloaded: that a call does not listen
// any more. Without it a wait would be granted to an absent caller. ok is false when the shard is
// gone, and forgets all listeners.
func (s *Server) insist(cmd engine.Command) (ok bool) {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		err := s.shard.Submit(cmd)
		if refusal, ok := errors.AsType[*interlock.Error](err); !ok || refusal.Code != interlock.CodeOverloaded {
			return err == nil
		}
		<-time.After(pause)
	}
}

// HTTPServer is an http.Server around HTTPHandler with the timeouts that a public
// API needs: a client that sends or reads slowly, or never, costs one connection
// and is cut off. The caller sets TLSConfig when it wants TLS, and serves.
//
// ReadTimeout covers header and body; a call that waits longer lifts it for
// itself (see lease.go), and so do long answers with the write timeout.
func (s *Server) HTTPServer() *http.Server { return newHTTPServer(s.HTTPHandler(), s.log) }

func newHTTPServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ConnContext:       withVisitor,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

const (
	readTimeout  = 10 * time.Second // header and body of one request
	writeTimeout = 30 * time.Second // one answer, or one piece of a stream
)
