package main

import (
	"context"
	"encoding/json"
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

// scenarioNames are the scenarios in which peers take part.
var scenarioNames = []string{"cycle", "handoff", "keepalive", "memory"}

// doors are those of Interlock in each of them: what it does worst in is left to
// "interlock bench", and what it is compared in is not chosen anew for each peer.
var doors = map[string][]bench.Door{
	"cycle":     {bench.Stream, bench.Connections},
	"handoff":   {bench.Stream, bench.Connections},
	"keepalive": {bench.Connections},
	"memory":    {bench.Stream},
}

// options are what the command line says.
type options struct {
	cfg    bench.Config
	json   bool
	binary string
	only   string // part of the names of the peers that take part
	names  []string
}

func parse(args []string, errs io.Writer) (o options, err error) {
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	f.SetOutput(errs)
	f.Usage = func() {
		fmt.Fprintf(errs, "usage: peers [FLAG...] [SCENARIO...]\n\nScenarios: %s; without one cycle and handoff run.\n\n", strings.Join(scenarioNames, ", "))
		f.PrintDefaults()
	}
	format := f.String("o", "table", "table or json")
	f.StringVar(&o.binary, "binary", "../../bin/interlock", "the interlock `program` to be measured")
	f.StringVar(&o.only, "only", "", "only peers that have one of these in their `names`, between commas: etcd,rueidislock")
	f.DurationVar(&o.cfg.Duration, "duration", 0, "how long each run takes (default 1s; keepalive 30s)")
	f.IntVar(&o.cfg.Repeat, "repeat", 0, "how many `runs` each case has (default 3; keepalive and memory 1)")
	f.Func("agents", "how `many` agents, between commas (default: the scenario's own)", numbers(&o.cfg.Agents))
	f.Func("leases", "how `many` leases, for keepalive and memory (default: the scenario's own)", numbers(&o.cfg.Leases))
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.json = *format == "json"; !o.json && *format != "table" {
		return o, fmt.Errorf("-o %s: want table or json", *format)
	}
	if o.names = f.Args(); len(o.names) == 0 {
		o.names = []string{"cycle", "handoff"}
	}
	for _, name := range o.names {
		if !slices.Contains(scenarioNames, name) {
			return o, fmt.Errorf("no scenario with peers is called %q: want some of %s", name, strings.Join(scenarioNames, ", "))
		}
	}
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

// report is what bench reports, and what the peers promise.
type report struct {
	bench.Report
	Peers   []promise      `json:"peers"`
	Missing []string       `json:"missing"` // Debian packages of peers that did not take part
	Ratios  []bench.Figure `json:"ratios"`  // ours ÷ the peer's
}

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	if _, err := os.Stat(o.binary); err != nil {
		return fmt.Errorf("%w: make build makes it", err)
	}
	scenarios, err := bench.Named(o.names)
	if err != nil {
		return err
	}
	o.cfg.Progress = func(text string) { fmt.Fprintln(errs, text) }
	r := report{
		Report: bench.Report{
			Machine: bench.ThisMachine(revision()), Command: append([]string{"peers"}, args...), Figures: []bench.Figure{},
			Server: "services of our own for each run; what is not called a peer is Interlock, with every answer synced to its disk",
		},
		Missing: []string{}, Ratios: []bench.Figure{},
	}
	present := r.choose(o.only)
	if len(present) == 0 {
		return fmt.Errorf("there is no peer to compare with; missing: %s", strings.Join(r.Missing, " "))
	}
	for _, name := range r.Missing {
		fmt.Fprintf(errs, "not measured: peers that need the Debian package %s\n", name)
	}
	if !o.json {
		if err := r.writeHead(out); err != nil {
			return err
		}
	}
	for _, s := range scenarios {
		if err := r.measure(ctx, o, s, present, out); err != nil {
			return err
		}
	}
	if o.json {
		return json.NewEncoder(out).Encode(r)
	}
	return nil
}

// choose notes what the peers that take part promise, and what is missing for others.
func (r *report) choose(only string) (present []*peer) {
	for _, p := range peers() {
		if !slices.ContainsFunc(strings.Split(only, ","), func(part string) bool { return strings.Contains(p.Peer, strings.TrimSpace(part)) }) {
			continue
		}
		if name := p.service.missing(); name != "" {
			if !slices.Contains(r.Missing, name) {
				r.Missing = append(r.Missing, name)
			}
			continue
		}
		present = append(present, p)
		r.Peers = append(r.Peers, p.promise)
	}
	return present
}

// measure runs one scenario and divides.
func (r *report) measure(ctx context.Context, o options, s bench.Scenario, present []*peer, out io.Writer) error {
	var targets []bench.Target
	ours := map[string]bool{}
	for _, door := range doors[s.Name] {
		t := bench.Interlock{Door: door, Binary: o.binary}
		targets = append(targets, t)
		ours[t.Name()] = true
	}
	for _, p := range present {
		if p.takesPart(s.Name) {
			targets = append(targets, p)
		}
	}
	figures, err := s.Run(ctx, o.cfg, targets)
	divided := ratios(figures, func(target string) bool { return ours[target] })
	r.Figures, r.Ratios = append(r.Figures, figures...), append(r.Ratios, divided...)
	if !o.json && len(figures) > 0 {
		err = errors.Join(err, bench.WriteTable(out, s, figures))
	}
	if !o.json && len(divided) > 0 {
		compared := bench.Scenario{Name: s.Name + ": ours ÷ the peer's", About: "Above 1 is good for rates (/s) and bad for everything else."}
		err = errors.Join(err, bench.WriteTable(out, compared, divided))
	}
	return err
}

// writeHead writes what stands above the tables.
func (r *report) writeHead(w io.Writer) error {
	if err := r.WriteHead(w); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("\nWhat the peers promise:\n")
	for _, p := range r.Peers {
		fmt.Fprintf(&b, "  %s\n    durable %s\n    line    %s\n    held    %s\n", p.Peer, p.Durable, p.Line, p.Alive)
	}
	_, err := io.WriteString(w, b.String())
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
