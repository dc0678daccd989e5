package forge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/internal/loopback"
)

// Config is what a Forge needs. Kind, URL and Credential are required.
type Config struct {
	// Kind is the API that the forge speaks: see Kinds.
	Kind string
	// URL is that of the repository in the API, such as https://api.github.com/repos/acme/web,
	// https://git.example.org/api/v1/repos/acme/web or https://gitlab.com/api/v4/projects/acme%2Fweb.
	URL string
	// Credential returns the token, before each call, so that it can be replaced.
	Credential func() (string, error)
	// Within is how long a call may take (default 30 s).
	Within time.Duration
}

// State is what has become of a request.
type State string

// The states of a request.
const (
	Open   State = "open"
	Merged State = "merged"
	Closed State = "closed" // without a merge
)

// Request is a request as the forge tells it. Others may have changed each field.
type Request struct {
	Number int64
	// URL is for people. It is the forge's text.
	URL   string
	State State
	// Branch is to be merged into Base, at Commit.
	Branch, Base, Commit string
	// BaseCommit is where the base was when the forge looked at it last, "" if it does not tell.
	BaseCommit string
}

// Refused is a call that the forge has understood and does not carry out, now or ever.
type Refused struct {
	// Words are the forge's: cleaned, at most 2 KiB.
	Words string
}

// Error quotes the forge.
func (e *Refused) Error() string { return fmt.Sprintf("the forge refuses: %q", e.Words) }

// Forge calls the API of a forge for one repository.
type Forge struct {
	Config
	kind   *kind
	client *http.Client
}

// New returns a Forge, or an error of its configuration.
func New(c Config) (*Forge, error) {
	k := kinds[c.Kind]
	if k == nil {
		return nil, fmt.Errorf("the kind of forge %q is unknown: want one of %s", c.Kind, strings.Join(Kinds(), ", "))
	}
	u, err := url.Parse(c.URL)
	switch {
	case err != nil:
		return nil, errors.New("the URL cannot be read")
	case u.User != nil:
		return nil, errors.New("the URL has a credential in it: name a file or a variable with the token")
	case u.RawQuery != "" || u.Fragment != "" || u.Host == "" || strings.Trim(u.Path, "/") == "":
		return nil, errors.New("want the URL of the repository in the API, such as https://api.github.com/repos/acme/web")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback.Is(u.Hostname())):
		return nil, errors.New("want https: others could read the token on the way")
	}
	if c.Credential == nil {
		return nil, errors.New("the credential is missing")
	}
	c.URL = strings.TrimRight(c.URL, "/")
	c.Within = cmp.Or(max(0, c.Within), 30*time.Second)
	return &Forge{Config: c, kind: k, client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Find returns the request of a branch of the repository, which is unique to it: the one into base, if there are
// several. found is false if there is none.
func (f *Forge) Find(ctx context.Context, branch, base string) (r Request, found bool, err error) {
	var list []Request
	for page := 1; page <= maxPages; page++ {
		got, err := f.kind.list(f, ctx, branch, page)
		if err != nil {
			return r, false, err
		}
		list = append(list, got...)
		if len(got) < pageSize {
			break
		}
	}
	list = slices.DeleteFunc(list, func(r Request) bool { return r.Branch != branch })
	slices.SortFunc(list, func(a, b Request) int {
		// The one into the base comes first, and the oldest.
		wrong := map[bool]int{true: 1}
		return cmp.Or(wrong[a.Base != base]-wrong[b.Base != base], cmp.Compare(a.Number, b.Number))
	})
	if len(list) == 0 {
		return r, false, nil
	}
	return list[0], true, nil
}

// Of one branch there is one request. Where the forge cannot list those alone, ours is among the newest.
const (
	pageSize = 50
	maxPages = 4
)

// Open opens a request. A forge refuses a second one of a branch into the same base.
func (f *Forge) Open(ctx context.Context, branch, base, title, text string) error {
	method, path, body := f.kind.open(branch, base, title, text)
	return f.call(ctx, method, path, body, nil)
}

// Merge has the forge merge a request in a merge commit, if its branch is at a commit. The forge may do so later.
func (f *Forge) Merge(ctx context.Context, number int64, commit, title, text string) error {
	method, path, body := f.kind.merge(number, commit, title, text)
	return f.call(ctx, method, path, body, nil)
}

// Close closes a request, so that it is not merged. The forge refuses that if it has merged it.
func (f *Forge) Close(ctx context.Context, number int64) error {
	method, path, body := f.kind.close(number)
	return f.call(ctx, method, path, body, nil)
}

// Failing returns the checks of the forge that have failed on the commit of a request, "" if none has, or if the
// credential may not read them.
func (f *Forge) Failing(ctx context.Context, r Request) (string, error) {
	text, err := f.kind.failing(f, ctx, r)
	if _, refused := errors.AsType[*Refused](err); refused {
		return "", nil
	}
	return git.Words(text), err
}

// maxAnswer bounds an answer.
const maxAnswer = 4 << 20

// call makes one call, and decodes the answer into v, if it is not nil.
func (f *Forge) call(ctx context.Context, method, path string, body, v any) error {
	secret, err := f.Credential()
	if err != nil {
		return err
	}
	if secret == "" {
		return errors.New("the forge's token is empty")
	}
	hide := func(text string) string { return git.Words(strings.ReplaceAll(text, secret, "…")) }
	ctx, cancel := context.WithTimeout(ctx, f.Within)
	defer cancel()
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(text)
	}
	q, err := http.NewRequestWithContext(ctx, method, f.URL+path, in)
	if err != nil {
		return errors.New(hide(err.Error()))
	}
	q.Header.Set("Authorization", "Bearer "+secret)
	q.Header.Set("Accept", "application/json")
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("User-Agent", "interlock")
	res, err := f.client.Do(q)
	if err != nil {
		return fmt.Errorf("the forge cannot be reached: %s", hide(err.Error()))
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("the forge has not answered %s to its end: %s", method, hide(err.Error()))
	case len(text) > maxAnswer:
		return fmt.Errorf("the answer of the forge to %s has more than %d MiB", method, maxAnswer>>20)
	case res.StatusCode/100 == 3:
		to := "another URL"
		if u, err := res.Location(); err == nil {
			to = hide(u.Scheme + "://" + u.Host)
		}
		return fmt.Errorf("the forge redirects to %q, which would get the token: name the URL where the API is", to)
	case res.StatusCode/100 == 2:
		if v == nil {
			return nil
		}
		if err := json.Unmarshal(text, v); err != nil {
			return fmt.Errorf("the answer of the forge to %s cannot be read: %s", method, hide(err.Error()))
		}
		return nil
	}
	words := hide(complaint(text))
	switch res.StatusCode {
	case http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusConflict, http.StatusUnprocessableEntity:
		return &Refused{cmp.Or(words, res.Status)}
	case http.StatusForbidden, http.StatusNotFound:
		if method == http.MethodGet && v != nil {
			if _, optional := v.(optional); optional {
				return &Refused{cmp.Or(words, res.Status)}
			}
		}
	}
	return fmt.Errorf("the forge answers %s with %s: %q", method, hide(res.Status), words)
}

// optional is an answer that a credential need not have the right to.
type optional interface{ optional() }

// complaint is the text of an error: its message, and the parts of it.
func complaint(text []byte) string {
	var e struct {
		Message, Error json.RawMessage
		Errors         []json.RawMessage
	}
	if json.Unmarshal(text, &e) != nil {
		return string(text)
	}
	var words []string
	for _, raw := range append([]json.RawMessage{e.Message, e.Error}, e.Errors...) {
		var plain string
		var part struct{ Message string }
		switch {
		case len(raw) == 0 || string(raw) == "null":
			continue
		case json.Unmarshal(raw, &plain) == nil:
		case json.Unmarshal(raw, &part) == nil && part.Message != "":
			plain = part.Message
		default:
			plain = string(raw)
		}
		if plain != "" && !slices.Contains(words, plain) {
			words = append(words, plain)
		}
	}
	return strings.Join(words, "\n")
}
