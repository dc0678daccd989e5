//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/busy"
)

// exchange is a request that a page shows, and the essence of its answer:
//
//	POST /v1/leases {"agent": "billing-7", "claims": [{"key": "account:12345"}]}
//	200 {"outcome": "granted", "lease": {"id": "{lease}", "expires_in_ms": "*"}}
//
// Either may go on over more lines; those that are a name, a colon and a value are
// headers. The answer has all that is shown and may have more; of server-sent events
// the first one's data is shown. In what is shown, * stands for anything, and {name}
// for an id that was not seen before, or for the same one as before.
type exchange struct {
	line         int
	method, path string
	headers      [][2]string
	body         string
	status       int
	wantHeaders  [][2]string
	want         string
}

var (
	requestLine = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE) (\S+) ?(.*)$`)
	headerLine  = regexp.MustCompile(`^([A-Z][A-Za-z-]+): (.*)$`)
	answerLine  = regexp.MustCompile(`^([1-5]\d\d) ?(.*)$`)
	idName      = regexp.MustCompile(`^\{([a-z][a-z0-9-]*)\}$`)
)

func parseExchanges(text string) (list []exchange) {
	for i, line := range strings.Split(text, "\n") {
		if m := requestLine.FindStringSubmatch(line); m != nil {
			list = append(list, exchange{line: i + 1, method: m[1], path: m[2], body: m[3]})
			continue
		}
		if len(list) == 0 {
			continue
		}
		last := &list[len(list)-1]
		if m := answerLine.FindStringSubmatch(line); m != nil {
			last.status, _ = strconv.Atoi(m[1])
			last.want = m[2]
		} else if m := headerLine.FindStringSubmatch(line); m != nil && last.status == 0 {
			last.headers = append(last.headers, [2]string(m[1:]))
		} else if m != nil {
			last.wantHeaders = append(last.wantHeaders, [2]string(m[1:]))
		} else if last.status == 0 {
			last.body += line
		} else {
			last.want += line
		}
	}
	return list
}

// runExchanges sends the requests in order to a server of their own.
func runExchanges(t *testing.T, file, text string) {
	url := "http://" + newRig(t).server.HTTP
	ids := ids{}
	for _, x := range parseExchanges(text) {
		status, headers, answer := x.send(t, file, url, ids)
		problem := ""
		if x.want != "" {
			var want, got any
			if err := json.Unmarshal([]byte(x.want), &want); err != nil {
				t.Fatalf("%s:%d: the page's answer: %v", file, x.line, err)
			}
			if err := json.Unmarshal([]byte(answer), &got); err != nil {
				t.Fatalf("%s:%d: %v in %s", file, x.line, err, answer)
			}
			problem = ids.compare("the answer", want, got)
		}
		for _, h := range x.wantHeaders {
			if got := headers.Get(h[0]); got != h[1] {
				problem = fmt.Sprintf("the header %s is %q", h[0], got)
			}
		}
		if status != x.status {
			problem = fmt.Sprintf("the status is %d", status)
		}
		if problem != "" {
			// The following steps build on it.
			t.Fatalf("%s:%d: %s %s\n%s:\n%s\nwant %d %s", file, x.line, x.method, x.path, problem, answer, x.status, x.want)
		}
	}
}

func (x *exchange) send(t *testing.T, file, url string, ids ids) (status int, headers http.Header, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), x.method, url+ids.fill(x.path), strings.NewReader(ids.fill(x.body)))
	if err != nil {
		t.Fatalf("%s:%d: %v", file, x.line, err)
	}
	if x.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range x.headers {
		r.Header.Set(h[0], ids.fill(h[1]))
	}
	client := http.Client{Timeout: busy.Patience()}
	response, err := client.Do(r)
	if err != nil {
		t.Fatalf("%s:%d: %v", file, x.line, err)
	}
	defer response.Body.Close()
	var body io.Reader = response.Body
	if response.Header.Get("Content-Type") == "text/event-stream" {
		body = firstEvent(response.Body)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatalf("%s:%d: %v", file, x.line, err)
	}
	return response.StatusCode, response.Header, string(text)
}

// firstEvent returns the data of the first server-sent event.
func firstEvent(stream io.Reader) io.Reader {
	for lines := bufio.NewScanner(stream); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			return strings.NewReader(data)
		}
	}
	return strings.NewReader("")
}

// ids are those of the answers, by the names that the page has for them.
type ids map[string]string

// fill puts the ids in place of their names.
func (ids ids) fill(text string) string {
	for name, id := range ids {
		text = strings.ReplaceAll(text, "{"+name+"}", id)
	}
	return text
}

// compare returns what of want is not in got, or nothing. It learns new ids.
func (ids ids) compare(where string, want, got any) (problem string) {
	switch want := want.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v, which is no object", where, got)
		}
		for name, value := range want {
			if _, ok := have[name]; !ok {
				return where + " has no " + name
			}
			if problem := ids.compare(where+"."+name, value, have[name]); problem != "" {
				return problem
			}
		}
		return ""
	case []any:
		have, ok := got.([]any)
		if !ok || len(have) != len(want) {
			return fmt.Sprintf("%s is %v, which is no list of %d", where, got, len(want))
		}
		for i := range want {
			if problem := ids.compare(fmt.Sprintf("%s[%d]", where, i), want[i], have[i]); problem != "" {
				return problem
			}
		}
		return ""
	case string:
		have := fmt.Sprint(got)
		if m := idName.FindStringSubmatch(want); m != nil {
			if ids[m[1]] == "" {
				ids[m[1]] = have
			}
			want = ids[m[1]]
		}
		_, text := got.(string)
		if want == "*" || text && matchLine(want, have) {
			return ""
		}
	default:
		if want == got {
			return ""
		}
	}
	return fmt.Sprintf("%s is %v, not %v", where, got, want)
}

func TestCompareAnswers(t *testing.T) {
	for _, tt := range []struct {
		want, got string
		match     bool
	}{
		{`{"a": 1}`, `{"a": 1, "b": 2}`, true},
		{`{"a": 1}`, `{"a": 2}`, false},
		{`{"a": 1}`, `{"b": 1}`, false},
		{`{"a": 1}`, `[1]`, false},
		{`[1, {"a": 2}]`, `[1, {"a": 2, "b": 3}]`, true},
		{`[1]`, `[1, 2]`, false},
		{`[1]`, `1`, false},
		{`[[1]]`, `[[2]]`, false},
		{`"*"`, `17`, true},
		{`"1"`, `1`, false},
		{`"held by * for"`, `"held by a for"`, true},
		{`"held by * for"`, `"held by a"`, false},
		{`true`, `false`, false},
		{`["{id}", "{id}"]`, `["x", "x"]`, true},
		{`["{id}", "{id}"]`, `["x", "y"]`, false},
	} {
		var want, got any
		if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(tt.got), &got); err != nil {
			t.Fatal(err)
		}
		if problem := (ids{}).compare("it", want, got); (problem == "") != tt.match {
			t.Errorf("want %s, got %s: %q", tt.want, tt.got, problem)
		}
	}
}
