package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// expand puts the keys that a prefix stands for in its place.
func (c *Acquire) expand(e *Engine) (interlock.Code, *message.Text) {
	if c.Prefix == "" {
		return "", nil
	}
	if len(c.Claims) > 0 {
		return interlock.CodeInvalidRequest, message.New(message.ClaimsAndPrefix)
	}
	if code, problem := store.CheckTexts(store.Text{
		Name: "prefix", Value: c.Prefix, Limit: interlock.MaxKeyBytes,
	}); code != "" {
		return code, problem
	}
	for _, key := range e.PendingWork.NS.MembersWith(c.Prefix) {
		c.Claims = append(c.Claims, interlock.Claim{Key: key})
	}
	if len(c.Claims) == 0 {
		return interlock.CodeUnmatchedKey, message.New(
			message.NoMemberWithPrefix, message.Str(c.Namespace), message.Str(c.Prefix),
		)
	}
	c.Any = true
	return "", nil
}
