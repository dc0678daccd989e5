package forgetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// URLOf is the URL of the repository in an API.
func (f *Forge) URLOf(kind string) string {
	return f.URL + map[string]string{
		"github": "/repos/acme/web", "gitea": "/api/v1/repos/acme/web", "gitlab": "/api/v4/projects/acme%2Fweb",
	}[kind]
}

// ServeHTTP answers a call, or has it go wrong.
func (f *Forge) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(io.LimitReader(q.Body, 1<<20))
	if err != nil {
		return
	}
	kind, rest := "", ""
	for _, k := range []string{"gitea", "gitlab", "github"} {
		prefix := strings.TrimPrefix(f.URLOf(k), f.URL)
		if r, ok := strings.CutPrefix(q.URL.EscapedPath(), prefix); ok && kind == "" {
			kind, rest = k, r
		}
	}
	f.mu.Lock()
	if q.Header.Get("Authorization") != "Bearer "+Token || kind == "" {
		f.strays = append(f.strays, q.Method+" "+q.URL.Path)
		f.mu.Unlock()
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	for len(f.late) > 0 && f.late[0] != nil {
		f.late[0]()
		f.late = f.late[1:]
	}
	if len(f.late) > 0 {
		f.late = f.late[1:]
	}
	call, carryOut := f.route(kind, q.Method, rest, q.URL.Query(), body)
	f.calls[call]++
	fault := Fault("")
	if number, ask := f.calls[call], f.Fault; ask != nil {
		f.mu.Unlock()
		fault = ask(call, number)
		f.mu.Lock()
	}
	var a answer
	switch fault {
	case Fails:
		a = refusal(http.StatusInternalServerError, "something is broken")
	case Throttles:
		a = refusal(http.StatusTooManyRequests, "slow down")
	case Denies:
		a = refusal(http.StatusUnauthorized, "Bad credentials: "+Token)
	case Hangs:
		f.mu.Unlock()
		<-q.Context().Done()
		return
	case Lies, Late:
		a = answer{http.StatusOK, map[string]any{}}
		if call == "list" {
			a.body = []any{}
		}
		if fault == Late {
			f.late = append(f.late, nil, func() { carryOut() })
		}
	case Redirects:
		w.Header().Set("Location", "http://127.0.0.2:9/elsewhere")
		a = answer{http.StatusTemporaryRedirect, nil}
	case Twice:
		carryOut()
		a = carryOut()
	default:
		a = carryOut()
	}
	f.mu.Unlock()
	switch fault {
	case Unknown:
		panic(http.ErrAbortHandler)
	case Garbage:
		_, _ = io.WriteString(w, "<html>502</html>")
	case Endless:
		for q.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
				return
			}
		}
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(a.status)
		_ = json.NewEncoder(w).Encode(a.body)
	}
}

var (
	requestPath = regexp.MustCompile(`^/(?:pulls|merge_requests)/(\d+)(/merge)?$`)
	commitPath  = regexp.MustCompile(`^/commits/([0-9a-f]+)/(status|check-runs)$`)
)

// route is the name of a call, and what carries it out.
func (f *Forge) route(kind, method, path string, query url.Values, raw []byte) (call string, carryOut func() answer) {
	var body map[string]any
	_ = json.Unmarshal(raw, &body)
	text := func(names ...string) string {
		for _, name := range names {
			if s, ok := body[name].(string); ok {
				return s
			}
		}
		return ""
	}
	switch m, c := requestPath.FindStringSubmatch(path), commitPath.FindStringSubmatch(path); {
	case path == "/pulls" || path == "/merge_requests":
		if method == "GET" {
			return "list", func() answer { return answer{http.StatusOK, f.list(kind, query)} }
		}
		return "open", func() answer {
			return f.open(
				text("head", "source_branch"), text("base", "target_branch"), text("title"), text("body", "description"),
			)
		}
	case m != nil && m[2] != "":
		number, _ := strconv.Atoi(m[1])
		return "merge", func() answer {
			how := text("merge_method", "Do")
			if kind != "gitlab" && how != "merge" || body["squash"] == true {
				return refusal(http.StatusBadRequest, "want a merge commit")
			}
			message := text("commit_title", "MergeTitleField") + "\n\n" + text("commit_message", "MergeMessageField")
			if kind == "gitlab" {
				message = text("merge_commit_message")
			}
			return f.merge(number, text("sha", "head_commit_id"), message)
		}
	case m != nil && method == "GET":
		number, _ := strconv.Atoi(m[1])
		return "failing", func() answer {
			if number < 1 || number > len(f.requests) {
				return refusal(http.StatusNotFound, "Not Found")
			}
			r := f.requests[number-1]
			status := "success"
			if f.Failing != nil && f.Failing(r.Commit) != "" {
				status = "failed"
			}
			return answer{http.StatusOK, map[string]any{
				"iid": number, "sha": r.Commit, "head_pipeline": map[string]any{"status": status, "web_url": "http://ci/1"},
			}}
		}
	case m != nil:
		number, _ := strconv.Atoi(m[1])
		return "close", func() answer { return f.close(number) }
	case c != nil:
		return "failing", func() answer {
			words := ""
			if f.Failing != nil {
				words = f.Failing(c[1])
			}
			if c[2] == "check-runs" {
				return answer{http.StatusOK, map[string]any{"check_runs": []any{}}}
			}
			list := []any{}
			if words != "" {
				list = append(list, map[string]any{
					"context": "ci", "state": "failure", "status": "failure", "description": words,
				})
			}
			return answer{http.StatusOK, map[string]any{"state": "pending", "statuses": list}}
		}
	}
	return "unknown", func() answer { return refusal(http.StatusNotFound, "Not Found") }
}

// list is a page of requests.
func (f *Forge) list(kind string, query url.Values) []any {
	list := []any{}
	if p := query.Get("page"); p != "" && p != "1" {
		return list
	}
	for _, r := range f.requests {
		f.look(r)
		switch branch := query.Get("source_branch"); {
		case kind == "github" && query.Get("head") != "acme:"+r.Branch, branch != "" && branch != r.Branch:
			continue
		}
		link := fmt.Sprintf("https://forge.example/acme/web/pull/%d", r.Number)
		state, merged := r.State, any(nil)
		if kind == "gitlab" {
			if state == "open" {
				state = "opened"
			}
			list = append(list, map[string]any{
				"iid": r.Number, "state": state, "web_url": link, "source_branch": r.Branch, "target_branch": r.Base,
				"sha": r.Commit, "source_project_id": 1, "target_project_id": 1,
			})
			continue
		}
		if state == "merged" {
			state, merged = "closed", "2026-01-01T00:00:00Z"
		}
		repo := map[string]any{"id": 1, "full_name": "acme/web"}
		label, ref := "acme:"+r.Branch, r.Branch
		if kind == "gitea" {
			if label = r.Branch; f.at(r.Branch) == "" {
				ref = fmt.Sprintf("refs/pull/%d/head", r.Number)
			}
		}
		list = append(list, map[string]any{
			"number": r.Number, "state": state, "merged_at": merged, "html_url": link,
			"head": map[string]any{"label": label, "ref": ref, "sha": r.Commit, "repo": repo},
			"base": map[string]any{"ref": r.Base, "sha": r.Base0, "repo": repo},
		})
	}
	return list
}
