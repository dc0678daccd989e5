package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	bank "github.com/interlockdev/interlock/writer/account"
)

// The bank of the scene: one account, and what is allowed on it.
const (
	accountsQueue               = "accounts"
	bankAccount   interlock.Key = "account:12345"
	treasury                    = "treasury"
)

// The credentials of the scene. A requester's rights go by them, whatever name it uses.
const (
	operatorRole = "operator"
	tellerRole   = "teller" // the writer's
	billingRole  = "billing"
	supportRole  = "support"
	rogueRole    = "rogue"
	porterRole   = "porter" // a worker of all queues, not listed by the writer's queue
)

// makeCredentials makes the credentials of the scene, and the file with which the server
// knows them.
func makeCredentials(ctx context.Context, binary, file string) (map[string]string, error) {
	secrets := map[string]string{}
	for name, args := range map[string][]string{
		operatorRole: {"--role", "operator", "--role", "agent"}, tellerRole: {"--queue", accountsQueue},
		porterRole: {"--queue", "*"},
		treasury:   nil, billingRole: nil, supportRole: nil, rogueRole: nil,
	} {
		var failed bytes.Buffer
		cmd := exec.CommandContext(
			ctx, binary, append([]string{"credential", "create", name, "--file", file}, args...)...,
		)
		cmd.Stderr = &failed
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("make a credential: %w: %s", err, failed.String())
		}
		secrets[name] = strings.TrimSpace(string(out))
	}
	return secrets, nil
}

const (
	lateFee  bank.Money = 50_00
	goodwill bank.Money = 20_00
	opening  bank.Money = 2000_00
)

// bankPolicy is the policy of bankAccount: fees from billing, credits from support, and
// one small one of each a day from any other agent.
func bankPolicy() bank.Policy {
	return bank.Policy{
		Currency: "USD", Decimals: 2,
		Rules: []bank.Rule{
			{Requester: treasury, Kinds: []bank.Kind{bank.Credit}},
			{Requester: billingRole, Kinds: []bank.Kind{bank.Debit}, MaxAmount: lateFee},
			{Requester: supportRole, Kinds: []bank.Kind{bank.Credit}, MaxAmount: goodwill},
			{
				Requester: "*", Kinds: []bank.Kind{bank.Credit, bank.Debit}, MaxAmount: 100_00, DayOut: lateFee, DayIn: goodwill,
				Urgency: 10,
			},
		},
	}
}

// writerOrder is the first line of a writer process's input. The next line makes it go on with
// the message that it stops at.
type writerOrder struct {
	Server     string `json:"server"`
	Credential string `json:"credential"`
	Name       string `json:"name"`
	TTLMS      int64  `json:"ttl_ms"`
	StopAt     int    `json:"stop_at"` // which of its messages it stops at: decided, and not acknowledged
}

// Writer is the body of a writer's process: the hidden command "interlock demo writer".
// It works until its input ends.
func Writer(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := bufio.NewScanner(in)
	if !lines.Scan() {
		return errors.New("no order: this command is started by interlock demo account")
	}
	var o writerOrder
	if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	goOn := make(chan struct{})
	go func() {
		defer cancel()
		lines.Scan()
		close(goOn)
		lines.Scan() // until the input ends
	}()
	ttl := time.Duration(o.TTLMS) * time.Millisecond
	c, err := client.Dial(
		ctx, client.Config{Addrs: []string{o.Server}, Credential: o.Credential, Agent: o.Name, SessionTTL: ttl},
	)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))

	policy := bankPolicy()
	agent := &bank.Agent{Policy: func(key interlock.Key) (bank.Policy, error) {
		if key != bankAccount {
			return bank.Policy{}, nil
		}
		return policy, nil
	}}
	steps, handled := json.NewEncoder(out), 0
	return c.Work(ctx, client.Worker{
		Queue: accountsQueue, TTL: ttl,
		Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
			done, err := agent.Handle(ctx, job)
			if handled++; err != nil || handled != o.StopAt {
				return done, err
			}
			task := job.Task()
			if err := steps.Encode(step{
				Event: "decided", Agent: task.Agent, Fence: job.Lease().Fence(), Attempt: job.Attempt(), Reason: task.Kind,
			}); err != nil {
				return done, err
			}
			select {
			case <-goOn:
				return done, nil
			case <-ctx.Done():
				return done, context.Cause(ctx)
			}
		},
	})
}
