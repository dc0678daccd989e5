package glyph

import "unicode"

// Unseen reports whether a character has no picture: control and format characters,
// separators other than spaces, private use, what is not assigned, variation selectors,
// fillers, and the empty pattern of Braille. The selector that makes a picture of a sign
// is too common to count.
func Unseen(r rune) bool {
	return !unicode.IsGraphic(r) || r == '\u2800' || r != '\ufe0f' && unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
