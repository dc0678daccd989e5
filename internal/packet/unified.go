package packet

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// contextLines is the number of unchanged lines around changed ones.
const contextLines = 3

// unified returns the unified diff of two texts, cut to limit bytes: between lines, or within
// one that alone is longer. The search for common lines is bounded: texts that differ in very
// many places come out as larger replacements.
func unified(thenLabel, nowLabel, then, now string, limit int) (text string, isCut bool) {
	text, err := udiff.ToUnified(thenLabel, nowLabel, then, udiff.Lines(then, now), contextLines)
	if err != nil {
		panic("packet: the edits between two texts do not fit the first: " + err.Error())
	}
	text, isCut = cut(text, limit)
	if isCut {
		if end := strings.LastIndexByte(text, '\n') + 1; end > len(thenLabel)+len(nowLabel)+len("--- \n+++ \n") {
			text = text[:end]
		}
	}
	return text, isCut
}
