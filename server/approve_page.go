package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/webhook"
)

// The page behind a link in a message about a question: GET shows the question and changes nothing,
// since chats and mail scanners open links by themselves; POST answers it. The token in the path
// shows that one question. It answers it too, as the principal webhook:NAME, as long as the principal
// that confirmed the webhook's receiver may answer itself; else the reader has to log in. The token
// is never logged: the route in logs and metrics has the pattern of the path.

const pageStyle = `body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.3rem}blockquote{margin:1rem 0;padding:.6rem 1rem;border-left:4px solid #888}
blockquote,pre{white-space:pre-wrap;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}dt{color:#555}dd{margin:0;overflow-wrap:anywhere}
pre{margin:0}label{display:block;margin:.6rem 0}
input{font:inherit;width:100%;box-sizing:border-box;padding:.3rem}
button{font:inherit;padding:.5rem 1.5rem;margin:.6rem .6rem 0 0;border:1px solid #555;border-radius:4px;cursor:pointer}
.yes{background:#d9f2df}.no{background:#f9dddd}`

var pageStyleHash = func() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}()

var approvePage = template.Must(template.New("approve").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="robots" content="noindex"><title>{{.Title}}</title><style>` + pageStyle + `</style></head><body>
<h1>{{.Title}}</h1>
{{if .Notice}}<p>{{.Notice}}</p>{{end}}
{{if .Question}}<blockquote>{{.Question}}</blockquote>
<dl>{{range .Facts}}<dt>{{.Name}}</dt><dd><pre>{{.Value}}</pre></dd>{{end}}</dl>{{end}}
{{if .Login}}<p><a href="/ui/work">Log in to answer</a> with a credential that may approve.</p>{{end}}
{{if .Open}}<form method="post">
<label>Your name (shown as a claim) <input name="by" maxlength="128" autocomplete="name"></label>
<label>Reason <input name="reason" maxlength="512"></label>
<button class="yes" name="verdict" value="approved">Approve</button>
<button class="no" name="verdict" value="denied">Deny</button>
</form>{{end}}
</body></html>
`))

// pageFact is a line of the table on the page.
type pageFact struct{ Name, Value string }

// questionPage is the data of the page.
type questionPage struct {
	Title, Notice, Question string
	Facts                   []pageFact
	Open                    bool
	Login                   bool // the link is no right to answer
}

func (p *questionPage) add(name, value string) {
	if value != "" {
		p.Facts = append(p.Facts, pageFact{name, value})
	}
}

var approveRoute = route{webhook.LinkPath + "{token}", []method{
	{"GET", (*call).showQuestion, mayAnything, nil},
	{"POST", (*call).answerQuestion, mayAnything, nil},
}}

// isLink reports whether a request is for the page behind a link, and returns its token.
func isLink(path string) (token string, ok bool) {
	token, ok = strings.CutPrefix(path, webhook.LinkPath)
	return token, ok && token != "" && !strings.Contains(token, "/")
}

// openLink checks the token of a link. ok is false when the call was answered.
func (c *call) openLink() (l webhook.Link, ok bool) {
	l, err := c.s.sender.Open(c.r.Context(), c.variable)
	switch {
	case err != nil && !errors.Is(err, webhook.ErrLink):
		c.unreadable()
		return l, false
	case err != nil:
		c.page(http.StatusGone, &questionPage{
			Title:  "This link is not valid",
			Notice: "It is damaged, or its webhook was changed since it was sent. Answer with `interlock approval` instead.",
		})
		return l, false
	case !time.Now().Before(l.Expires):
		c.page(http.StatusGone, &questionPage{
			Title: "This link has expired", Notice: "Answer with `interlock approval`, if the question is still open.",
		})
		return l, false
	}
	c.namespace = l.Namespace
	c.identity = Identity{Namespace: l.Namespace}
	if c.s.credentials != nil { // else everyone may answer
		p := &interlock.Principal{Name: interlock.WebhookPrefix + l.Webhook, Roles: interlock.RoleViewer}
		if c.s.credentials.grants(l.Namespace, l.Approver, interlock.RoleApprover) {
			p.Roles = interlock.RoleApprover
		}
		c.identity.Principal = p
	}
	return l, true
}

// mustLogIn replaces the form of a page by a way to log in, if the link is no right to answer.
func (c *call) mustLogIn(p *questionPage) bool {
	if !p.Open || c.identity.Principal.Has(interlock.RoleApprover) {
		return false
	}
	p.Open, p.Login = false, true
	p.Notice = "This link answers nothing: no principal that may approve now has confirmed the receiver of its webhook."
	return true
}

// question reads the question of a link as it stands. ok is false when the call was answered.
func (c *call) question(l *webhook.Link) (p *questionPage, ok bool) {
	p = &questionPage{Title: "This question is not asked any more"}
	_, err := c.s.shard.Read(c.r.Context(), c.namespace, func(e *engine.Engine, _ engine.Time) {
		if l.Fence != 0 {
			if q := e.LeaseQuestion(c.namespace, l.Fence); q != nil {
				p.lease(q)
			}
			return
		}
		t, known := e.Task(c.namespace, l.Task)
		asked := e.TaskQuestion(c.namespace, l.Task)
		switch {
		case !known || t.Approval == nil:
		case asked.Asked != l.Asked:
			p.Notice = "The task asks another question by now."
		default:
			p.task(prose.Task(&t), &asked)
		}
	})
	if err != nil {
		c.unreadable()
		return nil, false
	}
	return p, true
}

func (c *call) unreadable() {
	c.page(http.StatusServiceUnavailable, &questionPage{
		Title: "The question cannot be read now", Notice: "Try again in a moment.",
	})
}

// task describes the question about a task.
func (p *questionPage) task(t *interlock.Task, asked *engine.TaskQuestion) {
	a := t.Approval
	p.Question = cleanNote(a.Question)
	p.add("Asked by", cleanText(a.Agent))
	p.add("Credential", cleanText(t.Principal))
	p.add("Task", t.ID.String()+" of queue "+cleanText(t.Queue))
	p.add("Kind", cleanText(t.Kind))
	p.add("Purpose", cleanText(t.Purpose))
	p.add("Payload", shownPayload(t.Payload))
	for _, c := range t.Claims {
		p.add("Key", string(c.Key)+" ("+c.Mode.String()+")")
	}
	for _, r := range asked.Reads {
		p.add("Document", string(r.Key)+" at version "+r.Version.String())
	}
	for i := range a.Approvals {
		p.add("Approved by", cleanText(a.Approvals[i].Answerer()))
	}
	switch {
	case a.Left > 0:
		p.add("Without an answer", a.OnLimit.String()+" at "+time.Unix(0, int64(asked.Until)).UTC().Format(time.RFC3339))
	case asked.Open:
		p.add("Without an answer", "the task waits")
	}
	if p.Open = asked.Open; p.Open {
		p.Title = "Approval requested"
		return
	}
	p.decided(a.Verdict.String(), interlock.Answerer(a.Principal, a.By), a.Reason)
}

// lease describes the question about a parked lease.
func (p *questionPage) lease(q *engine.LeaseQuestion) {
	p.Question = cleanNote(q.Question)
	p.add("Asked by", cleanText(q.Agent))
	p.add("Credential", cleanText(q.Principal))
	p.add("Purpose", cleanText(q.Purpose))
	for _, c := range q.Claims {
		p.add("Key", string(c.Key)+" ("+c.Mode.String()+")")
	}
	p.add("Without an answer", "the lease ends in "+q.Parking.Left.Round(time.Second).String())
	if q.Decision == nil {
		p.Title, p.Open = "Approval requested", true
		return
	}
	p.decided(q.Decision.Verdict.String(), q.Decision.Answerer(), q.Decision.Reason)
}

func (p *questionPage) decided(verdict, by, reason string) {
	p.Title, p.Open = "This question is answered", false
	p.Notice = "It was " + verdict + " by " + cleanText(by) + "."
	if reason != "" {
		p.Notice += " Reason: " + cleanText(reason)
	}
}

// maxShownPayload bounds the payload on the page.
const maxShownPayload = 8 << 10

// shownPayload returns a task's payload with lines, or a note that it is too long.
func shownPayload(payload []byte) string {
	if len(payload) > maxShownPayload {
		return "too long to be shown: look at the task"
	}
	var b bytes.Buffer
	if json.Indent(&b, payload, "", "  ") != nil {
		return ""
	}
	return cleanNote(b.String())
}

// showQuestion is GET /v1/approve/{token}.
func (c *call) showQuestion() {
	l, ok := c.openLink()
	if !ok {
		return
	}
	p, ok := c.question(&l)
	if !ok {
		return
	}
	status := http.StatusOK
	if !p.Open {
		status = http.StatusGone
	}
	c.mustLogIn(p)
	c.page(status, p)
}

// maxForm bounds the body of an answer.
const maxForm = 8 << 10

// answerQuestion is POST /v1/approve/{token}.
func (c *call) answerQuestion() {
	l, ok := c.openLink()
	if !ok {
		return
	}
	c.r.Body = http.MaxBytesReader(c.w, c.r.Body, maxForm)
	if err := c.r.ParseForm(); err != nil {
		c.page(http.StatusBadRequest, &questionPage{Title: "The form cannot be read"})
		return
	}
	p, ok := c.question(&l)
	if !ok {
		return
	}
	if !p.Open {
		c.page(http.StatusGone, p)
		return
	}
	if c.mustLogIn(p) {
		c.page(http.StatusForbidden, p)
		return
	}
	form := c.r.PostForm
	cmd := &engine.Answer{
		Head: c.head(), Fence: l.Fence, By: strings.TrimSpace(form.Get("by")), Reason: form.Get("reason"),
	}
	cmd.Actor = interlock.WebhookPrefix + l.Webhook
	if cmd.Verdict, ok = interlock.ParseVerdict(form.Get("verdict")); !ok {
		p.Notice = "Choose one of both answers."
		c.page(http.StatusBadRequest, p)
		return
	}
	if l.Fence == 0 {
		cmd.Task, cmd.Asked = l.Task, l.Asked
	}
	eff, _, err := c.s.shard.Do(c.r.Context(), cmd)
	switch {
	case err != nil:
		c.page(http.StatusServiceUnavailable, &questionPage{
			Title: "It is not known whether the answer counts", Notice: "Open the link again in a moment.",
		})
		return
	case eff.Outcome == engine.Refused:
		status := http.StatusForbidden
		if eff.Code == interlock.CodeNotAsking {
			status = http.StatusGone
		}
		c.page(status, &questionPage{Title: "The answer does not count", Notice: prose.Sentence(eff.Message)})
		return
	}
	c.s.obs.Answered(cmd, &eff)
	if p, ok = c.question(&l); ok {
		if p.Open { // one of several approvals
			p.Open, p.Title = false, "Your approval counts"
			p.Notice = "More approvals are needed."
		}
		c.page(http.StatusOK, p)
	}
}

// page answers with a page.
func (c *call) page(status int, p *questionPage) {
	var b bytes.Buffer
	if err := approvePage.Execute(&b, p); err != nil {
		c.failWith(err)
		return
	}
	h := c.w.Header()
	h["Content-Type"] = []string{"text/html; charset=utf-8"}
	h["Cache-Control"], h["X-Content-Type-Options"] = noStore, noSniff
	h.Set("Content-Security-Policy", "default-src 'none'; style-src "+pageStyleHash+
		"; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY")
	c.answered, c.status = true, status
	c.w.WriteHeader(status)
	if c.r.Method != http.MethodHead {
		_, _ = c.w.Write(b.Bytes())
	}
}
