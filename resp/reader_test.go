package resp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		in, want, err string
	}{
		{"*1\r\n$4\r\nPING\r\n", `["PING"]`, ""},
		{"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nrest", `["GET" "k"]`, ""},
		{"*2\r\n$3\r\nGET\r\n$0\r\n\r\n", `["GET" ""]`, ""},
		{"*0\r\n", `[]`, ""},
		{"*-1\r\n", `[]`, ""},
		{"\r\n", `[]`, ""},
		{"PING\r\n", `["PING"]`, ""},
		{"SET \"a b\" 'c d'\tNX\n", `["SET" "a b" "c d" "NX"]`, ""},
		{"*1\r\n$4\r\nPI", "more", ""},
		{"*1\r\n$4\r", "more", ""},
		{"*", "more", ""},
		{"PIN", "more", ""},
		{"", "more", ""},
		{"*1\n$4\r\nPING\r\n", "", "a line ends with CR LF"},
		{"*x\r\n", "", "no number"},
		{"*+1\r\n", "", "no number"},
		{"*65\r\n", "", "the maximum is 64"},
		{"*99999999999999999999\r\n", "", "too many digits"},
		{"*1\r\n:4\r\n", "", "expected '$'"},
		{"*1\r\n$-1\r\n", "", "cannot be null"},
		{"*1\r\n$65537\r\n", "", "the maximum is 65536"},
		{"*1\r\n$3\r\nPING\r\n", "", "longer than announced"},
		{"SET 'a\r\n", "", "unbalanced quotes"},
		{"SET 'a'b\r\n", "", "unbalanced quotes"},
		{strings.Repeat("x", maxLine), "", "too big inline request"},
		{strings.Repeat("x ", 65) + "\n", "", "more than 64 arguments"},
		{"POST / HTTP/1.1\r\n", "", "no HTTP"},
		{"Host: 127.0.0.1\r\n", "", "no HTTP"},
	} {
		args, n, _, err := parse([]byte(c.in), knownLimits)
		got := fmt.Sprintf("%q", args)
		if n == 0 {
			got = "more"
		}
		if err != nil {
			got = ""
		}
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%.40q: %s, %v; want %s, %s", c.in, got, err, c.want, c.err)
		}
	}
	total := encode(slices.Repeat([]string{strings.Repeat("x", 60000)}, 20))
	_, _, _, err := parse(total, knownLimits)
	if err == nil || !strings.Contains(err.Error(), "a command may have 1048576 bytes") {
		t.Errorf("a command of 1.2 MB: %v", err)
	}
}

// FuzzParse: what is read from any bytes is within the limits, and the same however the bytes arrive.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"*1\r\n$4\r\nPING\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n", "SET \"a b\" 'c'\r\n", "*-1\r\n",
		"GET / HTTP/1.1\r\n", "*2\r\n$3\r\nGET\r\n$9\r\nabc", "\r\n*0\r\n",
	} {
		f.Add([]byte(s))
	}
	l := limits{args: 8, arg: 64, bytes: 256}
	f.Fuzz(func(t *testing.T, b []byte) {
		args, n, want, err := parse(b, l)
		switch {
		case err != nil:
			if n != 0 || args != nil {
				t.Fatalf("an error with an answer: %q %d", args, n)
			}
			return
		case n == 0:
			if want <= len(b) {
				t.Fatalf("wants %d bytes, and has %d", want, len(b))
			}
			return
		case n > len(b) || len(args) > l.args:
			t.Fatalf("%d of %d bytes, %d arguments", n, len(b), len(args))
		}
		for i := range n {
			less, m, _, err := parse(b[:i], l)
			if err != nil || m != 0 || less != nil {
				t.Fatalf("the first %d bytes of %q are %q, %d, %v", i, b[:n], less, m, err)
			}
		}
		more, m, _, err := parse(slices.Concat(b[:n], []byte("*1\r\n")), l)
		if err != nil || m != n || fmt.Sprintf("%q", more) != fmt.Sprintf("%q", args) {
			t.Fatalf("with more behind it %q is %q, %d, %v", b[:n], more, m, err)
		}
	})
}
