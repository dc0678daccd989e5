package server

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// adviceFor says what the reader of an answer should do next. Both doors put it
// into every answer that is not a plain success.
func adviceFor(eff *engine.Effect) interlock.Advice { return adviceForCode(eff.Code, "") }

func adviceForCode(code interlock.Code, message string) interlock.Advice {
	return interlock.Advice{Action: interlock.ActRetry, Message: message}
}
