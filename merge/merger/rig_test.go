package merger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/train"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

var web = Name{Repo: "web", Target: "main"}

// rig is a server in this process, a bare repository with a branch main, and an author.
type rig struct {
	t       *testing.T
	server  *server.Server
	streams *server.Streams
	git     git.Repository
	author  *client.Client
	begin   string // the first commit
	signer  *merge.Signer
}

func newRig(t *testing.T) *rig {
	t.Helper()
	ctx := context.Background()
	j, err := (&memjournal.Store{}).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s, err := shard.Open(ctx, shard.Config{Journal: j})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Config{Shard: s, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, server: srv, streams: server.NewStreams(srv, server.StreamConfig{})}
	t.Cleanup(func() { _ = s.Close(ctx) })
	dir := filepath.Join(t.TempDir(), "web.git")
	r.git = git.Repository{Dir: dir, Config: []string{"core.fsync=none"}}
	if _, err := new(git.Repository).Output(ctx, "init", "--quiet", "--bare", dir); err != nil {
		t.Fatal(err)
	}
	r.begin = r.commit("", files{"README": "one\ntwo\nthree\n"})
	r.run("update-ref", "refs/heads/main", r.begin)
	r.author = r.hire("author")
	if err := Setup(ctx, r.author, web, "check", "unit", "lint"); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) hire(agent string) *client.Client {
	r.t.Helper()
	c, err := client.New(context.Background(), r.streams.Dial, client.Config{Agent: agent})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func (r *rig) run(args ...string) string {
	r.t.Helper()
	out, err := r.git.Output(context.Background(), args...)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// files are contents by path; "-" deletes a file.
type files map[string]string

// commit makes a commit on a parent that changes files.
func (r *rig) commit(parent string, changes files) string {
	r.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "commit refs/tests/x\nmark :1\ncommitter Author <a@example.com> 1700000000 +0000\ndata 6\nchange\n")
	if parent != "" {
		fmt.Fprintf(&b, "from %s\n", parent)
	}
	for path, text := range changes {
		if text == "-" {
			fmt.Fprintf(&b, "D %s\n", path)
			continue
		}
		fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", path, len(text), text)
	}
	marks := filepath.Join(r.t.TempDir(), "marks")
	if _, err := r.git.Feed(
		context.Background(), []byte(b.String()), "fast-import", "--quiet", "--force", "--export-marks="+marks,
	); err != nil {
		r.t.Fatal(err)
	}
	list, err := os.ReadFile(marks)
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Fields(string(list))[1]
}

// withdrawer is a client that can withdraw.
type withdrawer struct{ *client.Client }

func (w withdrawer) Put(ctx context.Context, key interlock.Key, body []byte) error {
	_, err := w.Update(ctx, key, func(interlock.Document) (interlock.Write, error) { return client.Put(key, body), nil })
	return err
}

// submit submits a commit, and returns the task's id.
func (r *rig) submit(s Submission) interlock.TaskID {
	r.t.Helper()
	task, err := Submit(context.Background(), r.author, web, s, "change "+s.ID)
	if err != nil {
		r.t.Fatal(err)
	}
	return task.ID
}

// result waits for a submission's outcome.
func (r *rig) result(id interlock.TaskID) Outcome {
	r.t.Helper()
	task, err := r.author.Await(busy.Context(r.t), id)
	if err != nil {
		r.t.Fatal(err)
	}
	var o Outcome
	if err := json.Unmarshal(task.Result, &o); err != nil {
		r.t.Fatal(err)
	}
	return o
}

// waitFor waits until the record of a submission is there and meets a condition, and returns it.
func (r *rig) waitFor(id string, met func(*Record) bool) Record {
	r.t.Helper()
	ctx := busy.Context(r.t)
	for {
		var record Record
		found, err := read(ctx, r.author, web.RecordKey(id), &record)
		if err != nil {
			r.t.Fatal(err)
		}
		if found && met(&record) {
			return record
		}
	}
}

// config is that of a merger with a client of its own.
func (r *rig) config(agent string) Config {
	r.t.Helper()
	return r.configOf(r.hire(agent), agent)
}

func (r *rig) configOf(c *client.Client, agent string) Config {
	r.t.Helper()
	ctx := context.Background()
	profile, err := merge.NewProfile(ctx, "")
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := merge.Open(ctx, merge.Config{Repository: r.git.Dir, Profile: profile, Signer: r.signer})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = b.Close() })
	return Config{
		Client: c, Name: web, Boundary: b,
		Target: &merge.Target{Repository: r.git, Ref: "refs/heads/main"}, Files: &Repository{r.git},
		Log:     slog.New(slog.NewTextHandler(r.t.Output(), nil)).With("merger", agent),
		Profile: profile.Digest(), Train: train.Config{Runners: 4}, Poll: 5 * time.Millisecond, Retry: time.Millisecond,
	}
}

// start runs a merger until stop, which waits for its end and returns its error.
func (r *rig) start(c Config) (stop func() error) {
	r.t.Helper()
	m, err := New(c)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	r.t.Cleanup(func() {
		if err := stop(); err != nil {
			r.t.Errorf("the merger: %v", err)
		}
	})
	return stop
}

// work runs a worker of the checks. passes decides about a tree by its files.
func (r *rig) work(passes func(tree files) bool) {
	ctx, cancel := context.WithCancel(context.Background())
	c := r.hire("runner")
	done := make(chan error, 1)
	go func() {
		done <- c.Work(ctx, client.Worker{
			Queue: web.CheckQueue("check"), Concurrency: 4, Drain: time.Millisecond,
			Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
				var check Check
				if err := job.Decode(&check); err != nil {
					return client.Done{}, err
				}
				tree, err := r.tree(ctx, check.Commit)
				if err != nil {
					return client.Done{}, err
				}
				if !passes(tree) {
					return client.Done{}, errors.New("the tree is bad")
				}
				return client.Done{}, nil
			},
		})
	}()
	r.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("the worker: %v", err)
		}
	})
}

// tree reads all files of a commit.
func (r *rig) tree(ctx context.Context, commit string) (files, error) {
	list, err := r.git.Output(ctx, "ls-tree", "-r", "--name-only", commit)
	if err != nil {
		return nil, err
	}
	tree := files{}
	for _, path := range strings.Fields(list) {
		if tree[path], err = r.git.Output(ctx, "cat-file", "blob", commit+":"+path); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

// head is the commit of the target.
func (r *rig) head() string { return r.run("rev-parse", "refs/heads/main") }

// landings are the submissions on the target, oldest first.
func (r *rig) landings() []string {
	return strings.Fields(r.run(
		"log", "--first-parent", "--reverse", "--format=%(trailers:key=Interlock-Submission,valueonly)",
		r.begin+"..refs/heads/main",
	))
}

// newLine is a line with submissions, and without a server.
func newLine(t *testing.T, list ...Record) *line {
	t.Helper()
	l := &line{Merger: &Merger{}, records: map[train.ID]*entry{}, train: train.New(train.Config{})}
	for _, r := range list {
		l.records[train.ID(r.ID)] = &entry{record: r}
	}
	return l
}
