package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"go.etcd.io/etcd/server/v3/etcdmain"

	"github.com/interlockdev/interlock/internal/bench"
)

func main() {
	if os.Getenv(asMember) != "" {
		etcdmain.Main(os.Args)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "peers:", err)
		stop()
		os.Exit(1)
	}
}

// options are the values of the command line.
type options struct {
	cfg    bench.Config
	form   string // in which the report is printed
	binary string
	only   string // part of the names of the peers that take part
	from   string // a file with a report; "" to measure
	names  []string
}

// forms are those of a report.
var forms = map[string]func(*report, io.Writer) error{
	"table":    (*report).writeTables,
	"json":     (*report).writeJSON,
	"markdown": (*report).writeMarkdown,
}

func parse(args []string, errs io.Writer) (o options, err error) {
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	f.SetOutput(errs)
	f.Usage = func() {
		fmt.Fprintf(
			errs, "usage: peers [FLAG...] [SCENARIO...]\n\nScenarios: %s; without one all run, about twenty minutes.\n\n",
			strings.Join(scenarioNames(), ", "),
		)
		f.PrintDefaults()
	}
	f.StringVar(&o.form, "o", "table", "the `form` of what is printed: table, json, or markdown, which has less")
	f.StringVar(
		&o.from, "from", "", "print the report in this `file`, which a run with -o json has written, and measure nothing",
	)
	f.StringVar(&o.binary, "binary", "../../bin/interlock", "the interlock `program` to be measured")
	f.StringVar(
		&o.only, "only", "", "only peers that have one of these in their `names`, between commas: etcd,rueidislock",
	)
	f.DurationVar(&o.cfg.Duration, "duration", 0, "how long each run takes (default 1s; keepalive 30s)")
	f.IntVar(&o.cfg.Repeat, "repeat", 0, "how many `runs` each case has (default 3; keepalive and memory 1)")
	f.Func("agents", "how `many` agents, between commas (default: the scenario's own)", numbers(&o.cfg.Agents))
	f.Func("leases", "how `many` leases, for keepalive and memory (default: the scenario's own)", numbers(&o.cfg.Leases))
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if forms[o.form] == nil {
		return o, fmt.Errorf("-o %s: want table, json or markdown", o.form)
	}
	for _, name := range f.Args() {
		if !slices.Contains(scenarioNames(), name) {
			return o, fmt.Errorf(
				"no scenario with peers is called %q: want some of %s", name, strings.Join(scenarioNames(), ", "),
			)
		}
	}
	o.names = f.Args()
	return o, o.cfg.Check()
}

// numbers reads numbers between commas.
func numbers(to *[]int) func(string) error {
	return func(text string) error {
		*to = nil
		for part := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(part)
			if err != nil {
				return err
			}
			*to = append(*to, n)
		}
		return nil
	}
}

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	var r *report
	if o.from != "" {
		r, err = readReport(o.from)
	} else {
		o.cfg.Progress = func(text string) { fmt.Fprintln(errs, text) }
		r, err = measure(ctx, o, args, errs)
	}
	if r == nil {
		return err
	}
	// Also what was measured before something failed is worth twenty minutes.
	return errors.Join(forms[o.form](r, out), err)
}

// measure runs the scenarios. The report has what could be measured, whatever the error.
func measure(ctx context.Context, o options, args []string, errs io.Writer) (*report, error) {
	if _, err := os.Stat(o.binary); err != nil {
		return nil, fmt.Errorf("%w: make build makes it", err)
	}
	r := newReport(args)
	present := r.choose(o.only, o.binary)
	if len(present) == 0 {
		return nil, fmt.Errorf("there is no peer to compare with; missing: %s", strings.Join(r.Missing, " "))
	}
	for _, name := range r.Missing {
		fmt.Fprintf(errs, "not measured: peers that need the Debian package %s\n", name)
	}
	var failures []error
	for _, p := range named(o.names) {
		for _, l := range p.loads(o.cfg) {
			err := r.measure(ctx, p, l, o.binary, present)
			if ctx.Err() != nil {
				return r, context.Cause(ctx)
			}
			if err != nil {
				fmt.Fprintln(errs, err)
				failures = append(failures, err)
			}
		}
	}
	return r, errors.Join(failures...)
}

// measure runs one load of a scenario and divides.
func (r *report) measure(ctx context.Context, p plan, l load, binary string, present []*peer) error {
	var targets []bench.Target
	for _, transport := range p.transports {
		targets = append(targets, bench.Interlock{Transport: transport, Binary: binary})
	}
	for _, peer := range present {
		if peer.takesPart(p.scenario, l.agents) {
			targets = append(targets, peer)
		}
	}
	scenarios, err := bench.Named([]string{p.scenario})
	if err != nil {
		return err
	}
	figures, err := scenarios[0].Run(ctx, l.cfg, targets)
	r.Figures, r.Ratios = append(r.Figures, figures...), append(r.Ratios, ratios(figures, ours)...)
	return err
}

// revision is the commit from which this program was built, with a + when files had
// changed.
func revision() string {
	id, changed := "unknown", ""
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			id = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+"
		}
	}
	return id + changed
}
