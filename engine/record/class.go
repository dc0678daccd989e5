package record

// Class returns the class of keys that a key belongs to, for statistics of many keys: its first
// segment up to and including the first ':', or the first segment of a longer path, or "" for a
// plain word.
func Class(key string) string {
	for i := range len(key) {
		switch key[i] {
		case ':':
			return key[:i+1]
		case '/':
			return key[:i]
		}
	}
	return ""
}
