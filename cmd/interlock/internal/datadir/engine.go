package datadir

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/journal/etcdjournal"
	"github.com/interlockdev/interlock/journal/oncejournal"
	"github.com/interlockdev/interlock/journal/pgjournal"
	"github.com/interlockdev/interlock/journal/redisjournal"
	"github.com/interlockdev/interlock/journal/remote"
)

// engine is a kind of engine that journals are kept in.
type engine struct {
	kind    string   // for programs
	name    string   // for people
	schemes []string // of its URLs
	form    string   // of its URLs, in short
	choose  string   // when to choose it
	secret  string   // where secrets of it belong
	mayLose bool     // it has settings under which it loses what it acknowledged; they are refused without --allow-loss
	parse   func(text string, allowLoss bool) (connect, error)
}

type connect = func() (*remote.Store, error)

// engines are all kinds.
var engines = []engine{
	{
		kind: "etcd", name: "etcd", schemes: []string{"etcd"}, form: "etcd://HOST:PORT/NAME",
		secret: "let etcd know the server by a certificate (cert= and key=)",
		choose: "you run etcd: loses nothing while most members have their disks",
		parse: func(text string, _ bool) (connect, error) {
			at, err := etcdjournal.ParsePlace(text)
			return func() (*remote.Store, error) { return etcdjournal.Connect(at) }, err
		},
	},
	{
		kind: "postgres", name: "PostgreSQL", schemes: []string{"postgres", "postgresql"},
		form:   "postgres://USER@HOST/DATABASE",
		secret: "use PGPASSWORD, PGPASSFILE or ~/.pgpass",
		choose: "the usual choice for several servers; loses nothing if replicated synchronously", mayLose: true,
		parse: func(text string, allowLoss bool) (connect, error) {
			at, err := pgjournal.ParsePlace(text)
			at.AllowLoss = allowLoss
			return func() (*remote.Store, error) { return pgjournal.Connect(at) }, err
		},
	},
	{
		kind: "firestore", name: "Firestore", schemes: []string{"firestore"}, form: "firestore://PROJECT/DATABASE/NAME",
		secret: "use GOOGLE_APPLICATION_CREDENTIALS",
		choose: "on Google Cloud, nothing to run: loses nothing; slower, for agents that think",
		parse: func(text string, _ bool) (connect, error) {
			at, err := oncejournal.ParseFirestore(text)
			return func() (*remote.Store, error) { return oncejournal.ConnectFirestore(at) }, err
		},
	},
	{
		kind: "s3", name: "S3", schemes: []string{"s3"}, form: "s3://BUCKET/PREFIX",
		secret: "use AWS_ACCESS_KEY_ID and its like",
		choose: "a bucket, nothing to run: loses nothing; the slowest, some 15 groups a second",
		parse: func(text string, _ bool) (connect, error) {
			at, err := oncejournal.ParseS3(text)
			return func() (*remote.Store, error) { return oncejournal.ConnectS3(at) }, err
		},
	},
	{
		kind: "redis", name: "Redis", schemes: []string{"redis", "rediss"}, form: "redis://HOST:PORT/DATABASE",
		secret: "use REDISCLI_AUTH",
		choose: "only if you have nothing else: a fail-over of Redis or Valkey may lose answers", mayLose: true,
		parse: func(text string, allowLoss bool) (connect, error) {
			at, err := redisjournal.ParsePlace(text)
			at.AllowLoss = allowLoss
			return func() (*remote.Store, error) { return redisjournal.Connect(at) }, err
		},
	},
}

// find returns the engine of a scheme, or nil.
func find(scheme string) *engine {
	for i := range engines {
		if slices.Contains(engines[i].schemes, scheme) {
			return &engines[i]
		}
	}
	return nil
}

func nameOf(e engine) string { return e.name }

// join lists something of engines, with a word before the last.
func join(list []engine, last string, of func(engine) string) string {
	var all []string
	for _, e := range list {
		all = append(all, of(e))
	}
	n := len(all) - 1
	return strings.Join(all[:n], ", ") + last + all[n]
}

// Engines returns the forms of URLs of journals in engines.
func Engines() string { return join(engines, " or ", func(e engine) string { return e.form }) }

// Choice returns which journal to choose, a line for each.
func Choice() string {
	text := fmt.Sprintf(choiceForm, "file:DIR", "one server on a local disk: the fastest; the same as --data-dir DIR")
	for _, e := range engines {
		text += fmt.Sprintf(choiceForm, e.kind+"://", e.choose)
	}
	return text
}

const choiceForm = "  %-12s %s\n"

// MayLose returns the names of the engines to which --allow-loss means something.
func MayLose() string {
	return join(slices.DeleteFunc(slices.Clone(engines), func(e engine) bool { return !e.mayLose }), " or ", nameOf)
}

// Schemes returns the beginnings of URLs of journals.
func Schemes() string {
	return "file:, " + join(engines, " or ", func(e engine) string { return e.kind + "://" })
}
