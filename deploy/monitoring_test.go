package deploy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// rulesFile is the file of rules, or of their tests.
type rulesFile struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr string
			Annotations map[string]string
		}
	}
	Tests []struct {
		Cases []struct {
			Alert    string           `json:"alertname"`
			Expected []map[string]any `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	}
}

func readRules(t *testing.T, name string) (f rulesFile, text string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("prometheus", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	return f, string(b)
}

// The alerts are valid; each has a test in which it fires, and one in which it is silent. The chart has the same
// ones, and the page explains each.
func TestAlerts(t *testing.T) {
	tools.Need(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "rules_test.yaml"}} {
		cmd := exec.Command("promtool", args...)
		cmd.Dir = "prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	rules, text := readRules(t, "rules.yaml")
	tests, _ := readRules(t, "rules_test.yaml")
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, x := range tests.Tests {
		for _, c := range x.Cases {
			if len(c.Expected) > 0 {
				fires[c.Alert] = true
			} else {
				silent[c.Alert] = true
			}
		}
	}
	page, err := os.ReadFile("../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules.Groups[0].Rules {
		if !fires[r.Alert] || !silent[r.Alert] {
			t.Errorf("%s is tested firing: %v, silent: %v", r.Alert, fires[r.Alert], silent[r.Alert])
		}
		if !strings.Contains(string(page), "| `"+r.Alert+"` |") {
			t.Errorf("docs/monitoring.md does not explain %s", r.Alert)
		}
		if err := findSection(r.Annotations["runbook_url"]); err != nil || r.Annotations["next"] == "" {
			t.Errorf("%s has the next step %q, and its runbook: %v", r.Alert, r.Annotations["next"], err)
		}
	}
	chart, err := os.ReadFile(filepath.Join(chartDir, "files/alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if string(chart) != text {
		t.Error("the chart's files/alerts.yaml is not prometheus/rules.yaml, byte for byte")
	}
}

// findSection looks for the page of a runbook, and for its heading if the link has one.
func findSection(link string) error {
	path, ok := strings.CutPrefix(link, "https://github.com/interlockdev/interlock/blob/main/docs/")
	if !ok {
		return fmt.Errorf("%q is not a link to a page of docs", link)
	}
	name, anchor, _ := strings.Cut(path, "#")
	page, err := os.ReadFile(filepath.Join("../docs", name))
	if err != nil || anchor == "" {
		return err
	}
	for line := range strings.Lines(string(page)) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(strings.TrimSpace(line), "#"), " "); ok &&
			line[0] == '#' && strings.ReplaceAll(strings.ToLower(title), " ", "-") == anchor {
			return nil
		}
	}
	return fmt.Errorf("%s has no section %s", name, anchor)
}

// selector is a metric in an expression, with its labels.
var selector = regexp.MustCompile(`\b((?:interlock|go)_\w+)(\{[^}]*\})?`)

// selectors returns what must have series although nothing bad happened: each metric, with its labels if they have
// exact values. So a misspelled name or value does not pass as an alert that is silent.
func selectors(expr string) (list []string) {
	for _, found := range selector.FindAllStringSubmatch(expr, -1) {
		if strings.ContainsAny(found[2], "~!") {
			list = append(list, found[1])
		} else {
			list = append(list, found[0])
		}
	}
	return list
}

// monitored is a Prometheus that scrapes a server under load.
type monitored struct {
	t   *testing.T
	url string
}

// underLoad starts a server, agents that take and release keys, and a Prometheus that scrapes each second.
func underLoad(t *testing.T) *monitored {
	t.Helper()
	tools.Need(t, "prometheus")
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	server, err := launch.Start(t.Context(), launch.Config{Binary: path, DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	at := "http://" + server.HTTP
	// Something of each kind, so that counters have their labels: a wait, a commit, and a task that is worked on.
	script := `
		exec > /dev/null 2>&1
		while :; do
			"$1" run g:1 --agent one --wait 10s -- true & a=$!
			"$1" run g:1 --agent two --wait 10s -- true
			wait $a
			"$1" state set g:doc 1 --force
			"$1" task create g-queue '{}'
			"$1" task work g-queue --idle 0 -- true
		done`
	if out, err := exec.Command(path, "--url", at, "queue", "set", "g-queue").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	load := exec.Command("sh", "-c", script, "sh", path)
	load.Env = append(os.Environ(), "INTERLOCK_URL="+at, "INTERLOCK_GRPC="+server.GRPC)
	start(t, load)

	config := filepath.Join(t.TempDir(), "prometheus.yaml")
	rules, err := filepath.Abs("prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, fmt.Appendf(nil, `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
  - job_name: interlock
    static_configs: [{targets: [%q]}]
`, rules, server.HTTP), 0o600); err != nil {
		t.Fatal(err)
	}
	listen := busy.Ports(t, 1)[0]
	start(t, exec.Command(
		"prometheus", "--config.file="+config, "--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+listen,
		"--log.level=warn",
	))
	return &monitored{t, "http://" + listen}
}

// start runs a program until the end of the test, with what it has started.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Stderr, cmd.SysProcAttr = t.Output(), launch.Attributes()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// query asks for the series of an expression now.
func (m *monitored) query(expr string) (series int, err error) {
	answer, err := http.Get(m.url + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	var got struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := json.Unmarshal(b, &got); err != nil || got.Status != "success" {
		return 0, fmt.Errorf("%s: %s %w", expr, got.Error, err)
	}
	return len(got.Data.Result), nil
}

// Each query of the dashboard and of the alerts is answered by a real Prometheus that scrapes a real server, and has
// at least one series, except for those about trouble.
func TestQueries(t *testing.T) {
	m := underLoad(t)
	var quiet, all []string
	for _, r := range rows {
		for _, p := range r.panels {
			for _, q := range p.exprs {
				expr := strings.NewReplacer("$__rate_interval", "10s", "$job", "interlock").Replace(q.expr)
				if all = append(all, expr); r.trouble {
					quiet = append(quiet, expr)
				}
			}
		}
	}
	rules, _ := readRules(t, "rules.yaml")
	for _, r := range rules.Groups[0].Rules {
		all, quiet = append(all, r.Expr), append(quiet, r.Expr)
	}
	queries := len(all)
	for _, expr := range all[:queries] {
		all = append(all, selectors(expr)...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	late := time.After(busy.Patience())
	left := slices.Clone(all)
	for {
		var problem error
		left = slices.DeleteFunc(left, func(expr string) bool {
			n, err := m.query(expr)
			if err != nil {
				problem = err
			}
			return err == nil && (n > 0 || slices.Contains(quiet, expr))
		})
		if len(left) == 0 {
			break
		}
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("%d of %d queries have no answer: %v\n%s", len(left), len(all), problem, strings.Join(left, "\n"))
		}
	}
	if queries < 30 {
		t.Errorf("only %d queries", queries)
	}
	t.Logf("%d queries were answered, and all of their metrics have series", queries)
}
