package settings

import (
	"strings"
	"testing"
)

func TestSetPart(t *testing.T) {
	for _, text := range []string{
		"", "one", "one\n", "one\n\n", "# A\r\n\r\ntext\r\n", "\n", "one\n\ntwo\n\n\n", "\r\n",
	} {
		once, err := SetPart("A.md", []byte(text), "ours\nand more\n")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(once), text) || !strings.Contains(string(once), "and more") {
			t.Errorf("%q becomes %q", text, once)
		}
		if strings.Count(string(once), "\r") != 0 &&
			strings.Count(string(once), "\r\n") != strings.Count(string(once), "\n") {
			t.Errorf("%q becomes %q, with both ends of lines", text, once)
		}
		twice, err := SetPart("A.md", once, "ours\nand more\n")
		if err != nil || string(twice) != string(once) {
			t.Errorf("%q: the second time it becomes %q (%v)", once, twice, err)
		}
		other, err := SetPart("A.md", once, "else")
		if err != nil || strings.Contains(string(other), "and more") || !strings.Contains(string(other), "else") {
			t.Errorf("%q: with another part it becomes %q (%v)", once, other, err)
		}
		gone, err := SetPart("A.md", other, "")
		if err != nil || string(gone) != text {
			t.Errorf("%q: without the part it becomes %q (%v)", text, gone, err)
		}
	}
}

// A person may have moved the part, or written behind it.
func TestSetPartMoved(t *testing.T) {
	for text, want := range map[string]string{
		begin + "\nx\n" + end + "\n\n# A\n":          "\n# A\n",
		"# A\n\n" + begin + "\nx\n" + end + "\nmore": "# A\n\nmore",
	} {
		got, err := SetPart("A.md", []byte(text), "")
		if err != nil || string(got) != want {
			t.Errorf("%q becomes %q (%v), want %q", text, got, err, want)
		}
	}
	for _, text := range []string{begin, end, end + begin, begin + begin + end} {
		if got, err := SetPart("A.md", []byte(text), "x"); err == nil {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}
