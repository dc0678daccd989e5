package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// isolateResults is the result of the scene, as JSON.
type isolateResults struct {
	Agents int           `json:"agents"`
	Push   isolateResult `json:"direct_pushes"`
	Queue  isolateResult `json:"merge_queue"`
	// Verified is what merge verify printed.
	Verified  string          `json:"verified"`
	Migration migrationResult `json:"migrations"`
	Problems  []string        `json:"problems,omitempty"`
}

// Isolate plays the scene and prints what was lost. It returns an error that is ErrClaim when a change is lost or a
// commit does not build with workspaces and the merge queue, or everything is well without.
func Isolate(ctx context.Context, cfg Config) (err error) {
	cfg.Speed = orDefault(cfg.Speed, 1)
	if cfg.Server != "" {
		return invalid("the scene needs a server of its own: leave the server out, and it starts one")
	}
	if cfg, err = cfg.complete(); err != nil {
		return err
	}
	dir, err := makeDir(cfg.Dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 4*time.Minute, errors.New("the scene was not over after four minutes"))
	defer cancel()
	think := codingThought / time.Duration(cfg.Speed)
	result := isolateResults{Agents: len(isolateTasks())}
	if !cfg.JSON {
		fmt.Fprintf(cfg.Out, "%d coding agents change one program at the same time, each in a folder of its own\n  %s\n",
			result.Agents, dir)
	}
	push, err := newIsolateRun(ctx, filepath.Join(dir, "push"), think)
	if err == nil {
		err = push.play(push.push)
	}
	if err != nil {
		return fmt.Errorf("direct pushes: %w", err)
	}
	result.Push = push.result
	server, err := startServer(ctx, cfg.Binary, dir)
	if err != nil {
		return err
	}
	cfg.ready(server, "")
	defer func() { err = cfg.stopServer(ctx, server, err) }()
	run, err := newIsolateRun(ctx, filepath.Join(dir, "queue"), think)
	if err != nil {
		return err
	}
	q := &queue{isolateRun: run, binary: cfg.Binary, server: "http://" + server.HTTP, streams: server.GRPC}
	stop, err := q.startMerger(ctx, "shop/main", "build="+shellQuote(cfg.Binary)+" demo build", 4)
	if err != nil {
		return err
	}
	err = q.play(q.work)
	q.ctx = ctx
	if err = errors.Join(err, q.deleteWorkspaces(), stop()); err != nil {
		return fmt.Errorf("workspaces and a merge queue: %w", err)
	}
	if result.Verified, err = q.must("founder", dir, "merge", "verify", "--repo", q.origin); err != nil {
		return err
	}
	result.Queue = q.result
	if result.Migration, err = q.migrate(filepath.Join(dir, "migrations")); err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	return result.conclude(cfg, push, run)
}

// conclude prints what came of both runs, and checks what the scene claims.
func (r *isolateResults) conclude(cfg Config, push, queue *isolateRun) error {
	if r.Push.Lost == 0 || r.Push.Red == 0 {
		r.Problems = append(r.Problems, "with direct pushes, no change was lost or every commit builds")
	}
	if r.Queue.Lost > 0 || r.Queue.Red > 0 || r.Queue.LastBroken {
		r.Problems = append(r.Problems, fmt.Sprintf(
			"with the merge queue, %d changes were lost and %d commits do not build", r.Queue.Lost, r.Queue.Red,
		))
	}
	r.Problems = append(r.Problems, r.Migration.problems()...)
	if cfg.JSON {
		encoder := json.NewEncoder(cfg.Out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(r); err != nil {
			return err
		}
	} else {
		r.tell(cfg, push, queue)
	}
	if len(r.Problems) > 0 {
		return fmt.Errorf("%w: %s", ErrClaim, strings.Join(r.Problems, "; "))
	}
	return nil
}

// shownMoments is how many events of each run are printed.
const shownMoments = 6

func (r *isolateResults) tell(cfg Config, push, queue *isolateRun) {
	for i, run := range []*isolateRun{push, queue} {
		fmt.Fprintf(cfg.Out, "\n%s\n", []string{
			"1. Direct pushes: clone, think, edit, build, pull with a rebase, push",
			"2. Workspaces and a merge queue: workspace new, think, edit, build, workspace submit",
		}[i])
		for j, m := range run.told {
			if j == shownMoments {
				fmt.Fprintf(cfg.Out, "          and %d more\n", len(run.told)-j)
				break
			}
			fmt.Fprintf(cfg.Out, "  %4.1f s  %s\n", m.at.Seconds(), m.text)
		}
	}
	row := func(what string, cell func(isolateResult) string) {
		fmt.Fprintf(cfg.Out, "  %-40s %18s %18s\n", what, cell(r.Push), cell(r.Queue))
	}
	fmt.Fprintf(cfg.Out, "\n  %-40s %18s %18s\n", "", "direct pushes", "merge queue")
	row("changes lost", func(c isolateResult) string { return fmt.Sprintf("%d of %d", c.Lost, c.Changes) })
	row("commits on main that do not build", func(c isolateResult) string {
		return fmt.Sprintf("%d of %d", c.Red, c.Commits)
	})
	row("the program builds in the end", func(c isolateResult) string {
		if c.LastBroken {
			return "no"
		}
		return "yes"
	})
	row("files of others overwritten in a conflict", func(c isolateResult) string {
		return fmt.Sprint(c.Overwrote)
	})
	row("changes returned and decided again", func(c isolateResult) string { return fmt.Sprint(c.Returned) })
	row("all done after", func(c isolateResult) string { return seconds(c.TookMS) })
	fmt.Fprintf(cfg.Out, "\n%s\n", r.Verified)
	r.Migration.tell(cfg.Out)
	fmt.Fprintln(cfg.Out)
	fmt.Fprint(cfg.Out, `No agent knew of another one. In a conflict the first run keeps the version of the agent that
resolves it; in the second one the author gets the change back, with what landed meanwhile.
docs/workspaces.md and docs/merge.md show the commands.
`)
}

// BuildHere type-checks the program in this folder. It is the check of the scene's merge queue.
func BuildHere() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	return build(dir)
}
