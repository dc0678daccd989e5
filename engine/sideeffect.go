package engine

import (
	"bytes"

	"github.com/interlockdev/interlock/engine/internal/store"
)

func byEffectDigest(a, b *store.SideEffect) int { return bytes.Compare(a.Digest[:], b.Digest[:]) }
