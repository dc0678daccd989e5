package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/bench"
)

// report is the figures of bench, and the promises of the peers.
type report struct {
	bench.Report
	Peers   []promise      `json:"peers"`
	Missing []string       `json:"missing"` // Debian packages of peers that did not take part
	Ratios  []bench.Figure `json:"ratios"`  // ours ÷ the peer's
}

func newReport(args []string) *report {
	return &report{
		Report: bench.Report{
			Machine: bench.ThisMachine(revision()), Command: append([]string{"peers"}, args...), Figures: []bench.Figure{},
			Server: "services of our own for each run; what is not called a peer is Interlock, with every answer synced to " +
				"its disk",
		},
		Peers: []promise{}, Missing: []string{}, Ratios: []bench.Figure{},
	}
}

func readReport(file string) (*report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s is no report that peers -o json has written: %w", file, err)
	}
	return r, nil
}

// choose notes what the peers that take part promise, and what is missing for others.
func (r *report) choose(only, binary string) (present []*peer) {
	for _, p := range peers(binary) {
		if !slices.ContainsFunc(
			strings.Split(only, ","), func(part string) bool { return strings.Contains(p.Peer, strings.TrimSpace(part)) },
		) {
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

func (r *report) writeJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// writeTables writes all there is, for people.
func (r *report) writeTables(w io.Writer) error {
	err := r.writeHead(w)
	for _, name := range scenarioNames() {
		scenarios, unknown := bench.Named([]string{name})
		figures, divided := about(name, r.Figures), about(name, r.Ratios)
		if err = errors.Join(err, unknown); err != nil || len(figures) == 0 {
			continue
		}
		err = bench.WriteTable(w, scenarios[0], figures)
		if len(divided) > 0 {
			compared := bench.Scenario{
				Name: name + ": ours ÷ the peer's", About: "Above 1 is good for rates (/s) and bad for everything else.",
			}
			err = errors.Join(err, bench.WriteTable(w, compared, divided))
		}
	}
	return err
}

// about returns the figures of a scenario.
func about(scenario string, figures []bench.Figure) (list []bench.Figure) {
	for _, f := range figures {
		if f.Scenario == scenario {
			list = append(list, f)
		}
	}
	return list
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
