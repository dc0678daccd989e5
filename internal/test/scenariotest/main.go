package scenariotest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// runnerVariable has the test binary be the runner of the client in Go.
const runnerVariable = "INTERLOCK_SCENARIO_RUNNER"

// Main runs the tests and removes what they built; TestMain calls it.
func Main(m *testing.M) {
	if os.Getenv(runnerVariable) != "" {
		if err := runGo(context.Background(), os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	launchtest.Main(suite{m})
}

// suite is the tests, after which it removes the built runners.
type suite struct{ m *testing.M }

func (s suite) Run() int {
	defer func() { _ = os.RemoveAll(typeScript.folder) }()
	return s.m.Run()
}

// runGo carries out a scenario, or with - the steps of standard input, with the client library in Go.
func runGo(ctx context.Context, file string) error {
	r := newRunner(strings.Split(os.Getenv("INTERLOCK_URL"), ","))
	if file == "-" {
		return r.serve(ctx, os.Stdin, os.Stdout)
	}
	x, err := readScenario(file)
	if err != nil {
		return err
	}
	return r.run(ctx, &x)
}

// control has the server or the proxy carry out an order.
func control(ctx context.Context, order json.RawMessage) error {
	req, err := http.NewRequestWithContext(
		ctx, http.MethodPost, os.Getenv("INTERLOCK_CONTROL"), strings.NewReader(string(order)),
	)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the order %s is answered with %s", order, answer.Status)
	}
	return nil
}
