package report

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

// page is the HTML file. html/template escapes all text of agents for its place.
var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"clock": clock, "exact": exact, "short": cli.ShortMillis,
	"lines": func(list []string) string { return strings.Join(list, "\n") },
}).Parse(pageText))

// pageData is what the file shows.
type pageData struct {
	*api.Report
	Namespace, Version, Period string
	Style                      template.CSS
	StyleHash                  string // for the file's content security policy
	Left                       []string
	Found                      []pageIncident
}

type pageIncident struct {
	*api.Incident
	Waits []string // at the moment before
}

// writePage writes a report as one HTML file.
func writePage(ctx context.Context, a *cli.App, r *api.Report) error {
	hash := sha256.Sum256([]byte(pageStyle))
	d := pageData{
		Report: r, Namespace: string(cmp.Or(a.Server.Tenant(), interlock.DefaultNamespace)), Version: cli.Version(),
		Period: period(r),
		Style:  template.CSS(pageStyle), StyleHash: base64.StdEncoding.EncodeToString(hash[:]), Left: left(r),
	}
	for i := range r.Incidents {
		in := pageIncident{Incident: &r.Incidents[i], Waits: []string{"Not in this file: see the command."}}
		if i < maxPictures {
			var err error
			if in.Waits, err = waitsAt(ctx, a, in.Incident); err != nil {
				return err
			}
		}
		d.Found = append(d.Found, in)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, &d); err != nil {
		return err
	}
	return a.Content(b.Bytes())
}
