package keypath

import "strings"

// Separators are the characters that people put between the parts of a name.
const Separators = ":/ _-.#="

// Words returns the parts of a key between separators.
func Words(key string) []string {
	return strings.FieldsFunc(key, func(r rune) bool { return strings.ContainsRune(Separators, r) })
}

// FirstWord returns the first of the words of s, or s if there is none.
func FirstWord(s string) string {
	if words := Words(s); len(words) > 0 {
		return words[0]
	}
	return s
}

// Distance returns the number of bytes to insert, remove or change to turn a into b (the
// Levenshtein distance).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, corner+1)
		}
	}
	return row[len(b)]
}

// Skeleton returns what two spellings of one thing have in common: the key without case,
// separators, leading zeros and plurals.
func Skeleton(key string) string {
	words := Words(strings.ToLower(key))
	for i, w := range words {
		switch {
		case strings.Trim(w, "0123456789") == "":
			words[i] = strings.TrimLeft(w, "0")
		case len(w) > 3:
			words[i] = strings.TrimSuffix(w, "s")
		}
	}
	return strings.Join(words, " ")
}

// ShortestKind is the length of the shortest kinds that IsSlip is meant for: in shorter ones,
// as in gpu and cpu, one letter is the difference between two things.
const ShortestKind = 4

// First returns the first segment of a key.
func First(key string) string {
	head, _, _ := strings.Cut(key, "/")
	return head
}

// Kind returns the first segment up to the colon, in lower case: report of Report:2026/q1.
func Kind(key string) string {
	kind, _, _ := strings.Cut(First(key), ":")
	return strings.ToLower(kind)
}

// IsSlip reports whether one slip turns a into b: a letter too many, a missing one, a wrong
// one, or two swapped neighbours. Numbers are no slips: web1
// and web2 are two things.
func IsSlip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || len(a) < ShortestKind-1 || a == b {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	rest, other := a[i:], b[i:]
	switch {
	case len(a) < len(b):
		return rest == other[1:] && !isDigit(other[0])
	case isDigit(rest[0]) || isDigit(other[0]):
		return false
	case rest[1:] == other[1:]:
		return true
	}
	return len(rest) > 1 && rest[0] == other[1] && rest[1] == other[0] && rest[2:] == other[2:] && !isDigit(rest[1])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
