package merge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/merge/merger"
)

// clashes tells in words which submissions in line conflict with one of them. A submission knows those that were there
// when it came, and those that came later know it.
func clashes(e *entry, line []entry) string {
	var b strings.Builder
	tell := func(c *merger.Clash) {
		side := c.Side()
		fmt.Fprintf(&b, " %s it is %s.", strings.ToUpper(side[:1])+side[1:], c)
	}
	for i := range e.Clashes {
		c := &e.Clashes[i]
		if slices.ContainsFunc(line, func(o entry) bool { return o.Submission == c.Submission }) {
			tell(c)
		}
	}
	for i := range line {
		o := &line[i]
		for j := range o.Clashes {
			c := &o.Clashes[j]
			known := slices.ContainsFunc(e.Clashes, func(k merger.Clash) bool { return k.Submission == o.Submission })
			if c.Submission != e.Submission || known {
				continue
			}
			tell(&merger.Clash{
				Submission: o.Submission, Agent: o.Agent, Purpose: o.Purpose, Ahead: !c.Ahead, Paths: c.Paths, More: c.More,
			})
		}
	}
	return b.String()
}
