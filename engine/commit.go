package engine

import (
	"github.com/interlockdev/interlock"
)

func (e *Engine) commit(c *Commit) {
	e.refuse(interlock.CodeUnsupported, "commits are not carried out yet")
}
