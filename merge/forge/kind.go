package forge

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// kind is an API. A call is a method, a path below Config.URL, and a body.
type kind struct {
	list    func(f *Forge, ctx context.Context, branch string, page int) ([]Request, error)
	open    func(branch, base, title, text string) (method, path string, body any)
	merge   func(number int64, commit, title, text string) (method, path string, body any)
	close   func(number int64) (method, path string, body any)
	failing func(f *Forge, ctx context.Context, r Request) (string, error)
}

// kinds are the APIs by their names.
var kinds = map[string]*kind{"github": &github, "gitea": &gitea, "gitlab": &gitlab}

// Kinds are the names of the APIs: github also for GitHub Enterprise, gitea also for Forgejo.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

type object map[string]any

// pull is a request of GitHub and Gitea.
type pull struct {
	Number   int64  `json:"number"`
	State    string `json:"state"`
	MergedAt string `json:"merged_at"`
	URL      string `json:"html_url"`
	Head     side   `json:"head"`
	Base     side   `json:"base"`
}

type side struct {
	Label string `json:"label"`
	Ref   string `json:"ref"`
	SHA   string `json:"sha"`
	Repo  *struct {
		ID int64 `json:"id"`
	} `json:"repo"`
}

// requests are pulls of branches of the repository itself. Anybody can make one from a repository of his own.
func requests(pulls []pull, name func(side) string) []Request {
	list := make([]Request, 0, len(pulls))
	for i := range pulls {
		p := &pulls[i]
		r := Request{
			Number: p.Number, URL: p.URL, State: Open, Branch: name(p.Head), Base: p.Base.Ref, Commit: p.Head.SHA,
			BaseCommit: p.Base.SHA,
		}
		switch {
		case p.MergedAt != "":
			r.State = Merged
		case p.State != "open":
			r.State = Closed
		}
		if p.Head.Repo == nil || p.Base.Repo == nil || p.Head.Repo.ID != p.Base.Repo.ID {
			r.Branch = "" // of another repository
		}
		list = append(list, r)
	}
	return list
}

func openPull(branch, base, title, text string) (method, path string, body any) {
	return "POST", "/pulls", object{"head": branch, "base": base, "title": title, "body": text}
}

func closePull(number int64) (method, path string, body any) {
	return "PATCH", fmt.Sprintf("/pulls/%d", number), object{"state": "closed"}
}

// statuses are the results of checks on a commit.
type statuses struct {
	State    string `json:"state"`
	Statuses []struct {
		Context string `json:"context"`
		State   string `json:"state"`  // GitHub
		Status  string `json:"status"` // Gitea
		Words   string `json:"description"`
	} `json:"statuses"`
}

func (*statuses) optional() {}

// failed are the results that no later one takes back by itself.
var failed = []string{"failure", "error", "timed_out", "startup_failure"}

func failingStatuses(f *Forge, ctx context.Context, r Request) (string, error) {
	var s statuses
	if err := f.call(ctx, "GET", "/commits/"+r.Commit+"/status", nil, &s); err != nil {
		return "", err
	}
	var words []string
	for _, c := range s.Statuses {
		if slices.Contains(failed, c.State) || slices.Contains(failed, c.Status) {
			words = append(words, strings.TrimSuffix(c.Context+": "+c.Words, ": "))
		}
	}
	return strings.Join(words, "\n"), nil
}

// checkRuns are the results of GitHub's Actions and Apps on a commit.
type checkRuns struct {
	Runs []struct {
		Name       string `json:"name"`
		Conclusion string `json:"conclusion"`
	} `json:"check_runs"`
}

func (*checkRuns) optional() {}

var github = kind{
	list: func(f *Forge, ctx context.Context, branch string, page int) ([]Request, error) {
		// The owner is the last name but one of .../repos/OWNER/NAME.
		parts := strings.Split(f.URL, "/")
		owner, err := url.PathUnescape(parts[len(parts)-2])
		if err != nil {
			return nil, err
		}
		q := url.Values{"state": {"all"}, "head": {owner + ":" + branch}}
		var list []pull
		err = f.call(ctx, "GET", fmt.Sprintf("/pulls?%s&per_page=%d&page=%d", q.Encode(), pageSize, page), nil, &list)
		return requests(list, func(s side) string { return s.Ref }), err
	},
	open: openPull,
	merge: func(number int64, commit, title, text string) (method, path string, body any) {
		return "PUT", fmt.Sprintf("/pulls/%d/merge", number), object{
			"sha": commit, "merge_method": "merge", "commit_title": title, "commit_message": text,
		}
	},
	close: closePull,
	failing: func(f *Forge, ctx context.Context, r Request) (string, error) {
		text, err := failingStatuses(f, ctx, r)
		if err != nil || text != "" {
			return text, err
		}
		var c checkRuns
		err = f.call(ctx, "GET", "/commits/"+r.Commit+"/check-runs?filter=latest&per_page=100", nil, &c)
		var words []string
		for _, run := range c.Runs {
			if slices.Contains(failed, run.Conclusion) {
				words = append(words, run.Name+": "+run.Conclusion)
			}
		}
		return strings.Join(words, "\n"), err
	},
}

var gitea = kind{
	list: func(f *Forge, ctx context.Context, _ string, page int) ([]Request, error) {
		var list []pull
		path := fmt.Sprintf("/pulls?state=all&sort=recentupdate&limit=%d&page=%d", pageSize, page)
		err := f.call(ctx, "GET", path, nil, &list)
		// The ref is another one when the branch is gone.
		return requests(list, func(s side) string { return s.Label }), err
	},
	open: openPull,
	merge: func(number int64, commit, title, text string) (method, path string, body any) {
		return "POST", fmt.Sprintf("/pulls/%d/merge", number), object{
			"Do": "merge", "head_commit_id": commit, "MergeTitleField": title, "MergeMessageField": text,
		}
	},
	close:   closePull,
	failing: failingStatuses,
}

// mergeRequest is a request of GitLab.
type mergeRequest struct {
	Number   int64  `json:"iid"`
	State    string `json:"state"`
	URL      string `json:"web_url"`
	Source   string `json:"source_branch"`
	Target   string `json:"target_branch"`
	SHA      string `json:"sha"`
	From     int64  `json:"source_project_id"`
	Into     int64  `json:"target_project_id"`
	Pipeline *struct {
		Status string `json:"status"`
		URL    string `json:"web_url"`
	} `json:"head_pipeline"`
}

func (*mergeRequest) optional() {}

var gitlab = kind{
	list: func(f *Forge, ctx context.Context, branch string, page int) ([]Request, error) {
		q := url.Values{"state": {"all"}, "source_branch": {branch}}
		var got []mergeRequest
		path := fmt.Sprintf("/merge_requests?%s&per_page=%d&page=%d", q.Encode(), pageSize, page)
		err := f.call(ctx, "GET", path, nil, &got)
		list := make([]Request, 0, len(got))
		for i := range got {
			m := &got[i]
			r := Request{Number: m.Number, URL: m.URL, State: Open, Branch: m.Source, Base: m.Target, Commit: m.SHA}
			switch m.State {
			case "merged":
				r.State = Merged
			case "closed":
				r.State = Closed
			}
			if m.From != m.Into {
				r.Branch = ""
			}
			list = append(list, r)
		}
		return list, err
	},
	open: func(branch, base, title, text string) (method, path string, body any) {
		return "POST", "/merge_requests", object{
			"source_branch": branch, "target_branch": base, "title": title, "description": text, "squash": false,
		}
	},
	merge: func(number int64, commit, title, text string) (method, path string, body any) {
		return "PUT", fmt.Sprintf("/merge_requests/%d/merge", number), object{
			"sha": commit, "squash": false, "merge_commit_message": title + "\n\n" + text,
		}
	},
	close: func(number int64) (method, path string, body any) {
		return "PUT", fmt.Sprintf("/merge_requests/%d", number), object{"state_event": "close"}
	},
	failing: func(f *Forge, ctx context.Context, r Request) (string, error) {
		var m mergeRequest
		err := f.call(ctx, "GET", fmt.Sprintf("/merge_requests/%d", r.Number), nil, &m)
		if err != nil || m.Pipeline == nil || m.Pipeline.Status != "failed" || m.SHA != r.Commit {
			return "", err
		}
		return "the pipeline has failed: " + m.Pipeline.URL, nil
	},
}
