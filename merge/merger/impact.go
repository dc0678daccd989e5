package merger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/merge/train"
)

const (
	// maxImpacts is how many impacts a submission has. One with more can affect everything.
	maxImpacts     = 1000
	maxImpactBytes = 200
)

// Change is a submission, as far as its impacts depend on it.
type Change struct {
	Submission string
	Head       string
	// Paths are those that it touches, in order.
	Paths []string
}

// ReadImpacts reads one impact from each line, such as a package or a build target. No line means everything.
func ReadImpacts(text string) ([]string, error) {
	var list []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if len(line) > maxImpactBytes {
			return nil, fmt.Errorf("an impact has %d bytes: want at most %d", len(line), maxImpactBytes)
		}
		list = append(list, strings.ToValidUTF8(line, "\uFFFD"))
	}
	slices.Sort(list)
	if list = slices.Compact(list); len(list) > maxImpacts {
		return nil, fmt.Errorf("%d impacts: want at most %d", len(list), maxImpacts)
	}
	return list, nil
}

// ImpactMap finds the impacts of paths by their beginnings.
type ImpactMap struct{ rows []impactRow }

type impactRow struct {
	prefix  string
	impacts []string
}

// ParseImpactMap reads a table: each line has the beginning of paths, and behind it one impact or more, separated by
// spaces. Empty lines and those with # in front are left out.
func ParseImpactMap(text string) (*ImpactMap, error) {
	m := &ImpactMap{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) < 2 {
			return nil, fmt.Errorf("line %d: %q has no impact behind the beginning of paths", number, f[0])
		}
		m.rows = append(m.rows, impactRow{f[0], f[1:]})
	}
	if len(m.rows) == 0 {
		return nil, errors.New("the table has no row")
	}
	return m, nil
}

// Of returns the impacts of all rows that a path begins with, for each path. A path without a row can affect
// everything, and then there are none.
func (m *ImpactMap) Of(paths []string) []string {
	var list []string
	for _, p := range paths {
		known := false
		for _, r := range m.rows {
			if strings.HasPrefix(p, r.prefix) {
				known = true
				list = append(list, r.impacts...)
			}
		}
		if !known {
			return nil
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// place lets the train have a submission, once its impacts are known. Meanwhile the line goes on.
func (l *line) place(ctx context.Context, id train.ID, e *entry) {
	if l.Impacts == nil || e.record.Measured {
		l.enter(id)
		return
	}
	c := Change{Submission: e.record.ID, Head: e.record.Head, Paths: slices.Clone(e.paths)}
	go func() {
		impacts, err := l.Impacts(ctx, c)
		l.send(ctx, func(ctx context.Context) error {
			if l.records[id] != e {
				return nil // it has left the line
			}
			if err != nil || len(impacts) > maxImpacts {
				l.Log.Warn("the impacts are not known: it can affect everything", "submission", c.Submission, "error", err)
				impacts = nil
			}
			r := e.record
			r.Impacts, r.Measured = impacts, true
			if err := l.commit(ctx, client.Put(l.Name.RecordKey(r.ID), encode(r))); err != nil {
				return err
			}
			e.record = r
			l.enter(id)
			return nil
		})
	}()
}
