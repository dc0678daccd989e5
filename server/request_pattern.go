package server

import (
	"math"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// The bodies of operators' settings. The engine checks whether a pattern contradicts itself; a
// field that is left out is as if it had never been set.

// decodePattern reads the body of PUT /v1/patterns/{name}.
func decodePattern(d *jsonIn, cmd *engine.SetPattern) {
	d.setPatternRequest(&cmd.Pattern, cmd)
	if cmd.Pattern.Shape == "" {
		d.fail("field pattern is missing: set the shape of the keys, such as {\"pattern\": \"account:{id}\"}")
	}
}

func (d *jsonIn) rule() (r interlock.Rule) {
	d.ruleRequest(&r)
	if r.Principal == "" {
		d.fail("field %s: principal is missing: name a credential, or \"*\" for all", d.path)
	}
	return r
}

// limit reads a limit; 0 stands for the version's own.
func (d *jsonIn) limit() int { return int(d.whole(0, math.MaxInt32)) }
