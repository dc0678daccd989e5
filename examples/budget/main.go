package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/examples/internal/program"
)

func main() { program.Main(run) }

var namespace = program.Namespace("budget")

// The two keys of a model, and an operator's rules for all such keys.
const (
	calls = interlock.Key("model:large/calls")
	units = interlock.Key("model:large/units")
)

var patterns = []interlock.Pattern{
	{Name: "model-calls", Shape: "model:{name}/calls", Capacity: 2, MaxHold: 10 * time.Minute},
	{Name: "model-units", Shape: "model:{name}/units", Rate: 1000, Per: 24 * time.Hour, Burst: 1000},
}

func run(ctx context.Context, addr string, out io.Writer) error {
	office := &office{addr: addr, out: out}
	defer office.close()

	operator, err := office.hire(ctx, "operator")
	if err != nil {
		return err
	}
	for _, p := range patterns {
		if err := operator.SetPattern(ctx, p); err != nil {
			return err
		}
	}

	// Two calls fit.
	plan, err := office.call(ctx, "planner", 600, interlock.Fail)
	if err != nil {
		return err
	}
	code, err := office.call(ctx, "coder", 300, interlock.Fail)
	if err != nil {
		return err
	}

	// A third does not. It gets the reason, and none of its units are gone.
	if _, err := office.call(ctx, "tester", 50, interlock.Fail); err == nil {
		return errors.New("three calls ran at once")
	}

	// So it waits in line, and goes ahead as soon as a call has ended.
	waiting := make(chan error, 1)
	go func() {
		test, err := office.call(ctx, "tester", 50, interlock.Wait)
		if err == nil {
			err = test.Release(ctx, client.Outcome{Outcome: "done"})
		}
		waiting <- err
	}()
	if err := plan.Release(ctx, client.Outcome{Outcome: "done"}); err != nil {
		return err
	}
	if err := <-waiting; err != nil {
		return err
	}
	if err := code.Release(ctx, client.Outcome{Outcome: "done"}); err != nil {
		return err
	}

	// Now there is a place, but the day's units are nearly used up.
	if _, err := office.call(ctx, "critic", 500, interlock.Fail); err == nil {
		return errors.New("more units were used than there are")
	}
	return nil
}

// office is where the agents work. Each has a session of its own.
type office struct {
	addr  string
	out   io.Writer
	staff []*client.Client
}

func (o *office) hire(ctx context.Context, agent string) (*client.Client, error) {
	c, err := client.Dial(ctx, client.Config{Addrs: []string{o.addr}, Namespace: namespace, Agent: agent})
	if err == nil {
		o.staff = append(o.staff, c)
	}
	return c, err
}

// call takes the keys of a call of the model, and reports the result.
func (o *office) call(
	ctx context.Context, agent string, need uint32, onConflict interlock.OnConflict,
) (*client.Lease, error) {
	c, err := o.hire(ctx, agent)
	if err != nil {
		return nil, err
	}
	lease, err := c.Acquire(ctx, client.Request{
		Claims: []interlock.Claim{
			{Key: calls, Mode: interlock.Permits, Count: 1},
			{Key: units, Mode: interlock.Permits, Count: need},
		},
		Purpose: "call the model", OnConflict: onConflict,
	})
	refusal, refused := errors.AsType[*interlock.Error](err)
	switch {
	case err == nil:
		fmt.Fprintf(o.out, "%s calls the model with %d units\n", agent, need)
	case refused && refusal.Code == interlock.CodeAtCapacity:
		fmt.Fprintf(o.out, "%s is refused (%s): %d of %d calls run, the first is %s's\n",
			agent, refusal.Code, refusal.Capacity.Used, refusal.Capacity.Permits, refusal.Holders[0].Agent)
	case refused && refusal.Code == interlock.CodeRateLimited:
		fmt.Fprintf(o.out, "%s is refused (%s): it wants %d units of the %d that are left\n",
			agent, refusal.Code, need, refusal.Capacity.Available)
	}
	return lease, err
}

// close ends all sessions, also when the program was interrupted.
func (o *office) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, c := range o.staff {
		_ = c.Close(ctx) // a session ends by its ttl otherwise
	}
}
