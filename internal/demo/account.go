package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/launch"
	bank "github.com/interlockdev/interlock/writer/account"
)

// The account scene: fifty agents charge a late fee of 50.00 or grant a goodwill credit of
// 20.00 on one account, which one writer alone may change.
//
//	50 agents ── fee, credit ──► mailbox of account:12345 ──► writer ──► state, reply, log
//	                                       killed while it decides ▲
//	                                 the server killed while the next one decides
//
// The server has credentials: each has its role, and only the writer's may pull from the
// queue that alone may change the account. Meanwhile one agent tries to go around: it
// writes the state itself, pulls from the writer's queue to acknowledge with a balance of
// its own, takes the treasury's name, calls its debit critically urgent, and reports money
// that never came.
const (
	writerStops = 13 // the message that stops a writer: the first one is killed, the server under the second
	goesAround  = "rogue-51"
)

// ledgerScene is the parts of the account scene.
type ledgerScene struct {
	cfg      Config
	dir      string
	story    *story
	server   *launch.Server
	secrets  map[string]string // of the credentials, by their names
	operator *client.Client
	agents   int
	result   accountResult
}

// Account plays the scene and prints what came of it. It returns an error that is ErrClaim when
// the balance is wrong, the log cannot be replayed, or an agent got around the writer.
func Account(ctx context.Context, cfg Config) (err error) {
	if cfg.Server != "" {
		return invalid("the scene kills its server: leave the server out, and it starts one of its own")
	}
	if cfg, err = cfg.complete(); err != nil {
		return err
	}
	dir, err := makeDir(cfg.Dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("the scene was not over after two minutes"))
	defer cancel()
	s := &ledgerScene{cfg: cfg, dir: dir, story: newStory(cfg, nil, dir), agents: cfg.Agents}
	if s.secrets, err = makeCredentials(ctx, cfg.Binary, s.credentials()); err != nil {
		return err
	}
	if s.server, err = startServer(ctx, cfg.Binary, dir, "--credentials", s.credentials()); err != nil {
		return err
	}
	s.cfg.ready(s.server, s.secrets[operatorRole])
	defer func() { err = s.cfg.stopServer(ctx, s.server, err) }()
	s.opening()
	if err := s.play(ctx); err != nil {
		return err
	}
	return s.closing()
}

func (s *ledgerScene) play(ctx context.Context) (err error) {
	s.story.start()
	began := time.Now()
	if s.operator, err = s.hire(ctx, operatorRole, operatorRole); err != nil {
		return err
	}
	defer s.dismiss(s.operator)
	opener, err := s.hire(ctx, treasury, treasury)
	if err != nil {
		return err
	}
	defer s.dismiss(opener)
	if err := s.found(ctx); err != nil {
		return err
	}
	first, err := s.startWriter(ctx, "writer-1")
	if err != nil {
		return err
	}
	if _, err := bank.NewClient(opener).Credit(
		ctx, bankAccount, opening, bank.Request{Memo: "opening balance"},
	); err != nil {
		return err
	}
	s.story.say(
		"%s is open with %s; only credential %q may pull from queue %q and change it", bankAccount, cents(opening),
		tellerRole, accountsQueue,
	)

	crowd := s.crowd(ctx)
	if err := s.killWriter(ctx, first); err != nil {
		return err
	}
	second, err := s.startWriter(ctx, "writer-2")
	if err != nil {
		return err
	}
	if err := s.killServer(ctx, second); err != nil {
		return err
	}
	if err := s.goAround(ctx); err != nil {
		return err
	}
	if err := crowd(); err != nil {
		return err
	}
	s.story.say("all %d agents have their replies", s.agents)
	if err := second.in.Close(); err != nil {
		return err
	}
	if err := second.gone(ctx); err != nil {
		return err
	}
	s.result.TookMS = time.Since(began).Milliseconds()
	return s.audit(ctx)
}

// found makes the queue of the writer, and the pattern with the keys that it alone may change.
func (s *ledgerScene) found(ctx context.Context) error {
	// No agent is to wait for a dead writer longer than has to be.
	queue := interlock.TaskQueue{
		Name: accountsQueue, Grace: time.Millisecond, Backoff: time.Millisecond, Pull: []string{tellerRole},
	}
	if err := s.operator.SetQueue(ctx, queue); err != nil {
		return err
	}
	return s.operator.SetPattern(
		ctx,
		interlock.Pattern{
			Name: "account", Shape: "account:{id:int}", Write: interlock.WriteSingle, WriterQueue: accountsQueue,
		},
	)
}

func (s *ledgerScene) startWriter(ctx context.Context, name string) (*process, error) {
	return startProcess(
		ctx, s.cfg.Binary, "writer",
		writerOrder{
			Server: s.server.GRPC, Credential: s.secrets[tellerRole], Name: name, TTLMS: shortTTL.Milliseconds(),
			StopAt: writerStops,
		},
	)
}

// crowd sends all agents off, each in a session of its own, and returns a function that waits
// until all have their replies.
func (s *ledgerScene) crowd(ctx context.Context) (wait func() error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	for i := range s.agents {
		all.Go(func() {
			if err := s.agent(ctx, i+1); err != nil {
				cancel(err)
			}
		})
	}
	return func() error {
		all.Wait()
		err := context.Cause(ctx)
		cancel(nil)
		return err
	}
}

// agent charges a fee or grants a credit, every other one each.
func (s *ledgerScene) agent(ctx context.Context, n int) error {
	role, does, amount, memo := billingRole, (*bank.Client).Debit, lateFee, "late fee"
	if n%2 == 0 {
		role, does, amount, memo = supportRole, (*bank.Client).Credit, goodwill, "goodwill credit"
	}
	name := fmt.Sprintf("%s-%02d", role, n)
	c, err := s.hire(ctx, name, role)
	if err != nil {
		return err
	}
	defer s.dismiss(c)
	if _, err := does(bank.NewClient(c), ctx, bankAccount, amount, bank.Request{Memo: memo}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// killWriter waits until the writer has decided a message that it has not acknowledged,
// and kills it.
func (s *ledgerScene) killWriter(ctx context.Context, p *process) error {
	at, err := p.next(ctx, "decided")
	if err != nil {
		return err
	}
	if err := p.kill(); err != nil {
		return err
	}
	if err := p.gone(ctx); err != nil {
		return err
	}
	s.story.say(
		"writer-1 is killed (-9) with the %s of %s decided and not acknowledged, under fence %d", at.Reason, at.Agent,
		at.Fence,
	)
	return nil
}

// killServer waits until the next writer has such a message, kills the server, and
// starts it again on the same journal.
func (s *ledgerScene) killServer(ctx context.Context, p *process) error {
	at, err := p.next(ctx, "decided")
	if err != nil {
		return err
	}
	s.server.Kill()
	s.story.say("the server is killed (-9) while writer-2 is at the %s of %s, and the others wait", at.Reason, at.Agent)
	again, err := startServer(
		ctx, s.cfg.Binary, s.dir, "--credentials", s.credentials(), "--http", s.server.HTTP, "--grpc", s.server.GRPC,
	)
	if err != nil {
		return err
	}
	s.server = again
	s.story.say("the server is started again on its journal; sessions, lines and messages are as they were")
	return p.answer()
}

// goAround is the agent that does not want to be refused.
func (s *ledgerScene) goAround(ctx context.Context) error {
	c, err := s.hire(ctx, goesAround, rogueRole)
	if err != nil {
		return err
	}
	defer s.dismiss(c)
	_, err = c.Commit(ctx, client.Commit{
		Writes: []interlock.Write{client.Put(bankAccount, []byte(`{"currency":"USD","balance":100000000}`))},
		Note:   "critically urgent",
	})
	if err := s.refused("writes the state itself", err); err != nil {
		return err
	}
	if err := s.refused("pulls from the writer's queue", s.usurp(ctx, c)); err != nil {
		return err
	}
	worker, err := s.hire(ctx, goesAround, porterRole)
	if err != nil {
		return err
	}
	defer s.dismiss(worker)
	if err := s.refused("pulls from it with a worker's credential for all queues", s.usurp(ctx, worker)); err != nil {
		return err
	}
	named, err := s.hire(ctx, treasury, rogueRole)
	if err != nil {
		return err
	}
	defer s.dismiss(named)
	_, err = bank.NewClient(named).Credit(ctx, bankAccount, 900_00, bank.Request{Memo: "opening balance"})
	if err := s.refused("credits 900.00 under the name of the treasury", err); err != nil {
		return err
	}
	teller := bank.NewClient(c)
	for _, try := range []struct {
		what     string
		amount   bank.Money
		priority int
	}{
		{"debits 900.00 as critically urgent", 900_00, interlock.MaxPriority},
		{"debits 900.00 as urgent as it may", 900_00, 10},
		{"debits 90.00", 90_00, 0},
	} {
		_, err := teller.Debit(ctx, bankAccount, try.amount, bank.Request{Memo: "critically urgent", Priority: try.priority})
		if err := s.refused(try.what, err); err != nil {
			return err
		}
	}
	text, err := c.Ask(ctx, client.Message{Key: bankAccount, Kind: "transfer.credit", Body: json.RawMessage(
		`{"transfer":"q_0","peer":"account:1","amount":90000,"currency":"USD","until":"2126-01-01T00:00:00Z"}`,
	)})
	if err == nil {
		var reply bank.Reply
		if err = json.Unmarshal(text, &reply); err == nil && reply.Outcome == bank.OutcomeRefused {
			err = &bank.RefusedError{Reply: reply}
		}
	}
	return s.refused("reports a transfer that never was", err)
}

// usurp works for the writer's queue, and acknowledges the message that it gets with a
// balance of its own. It ends with the refusal, or nil if it had its way.
func (s *ledgerScene) usurp(ctx context.Context, c *client.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return c.Work(ctx, client.Worker{Queue: accountsQueue, Handle: func(context.Context, *client.Job) (client.Done, error) {
		cancel()
		return client.Done{
			Writes: []interlock.Write{client.Put(bankAccount, []byte(`{"currency":"USD","balance":100000000}`))},
		}, nil
	}})
}

// refused returns how an attempt to go around ended. Only a refusal is a good end.
func (s *ledgerScene) refused(what string, err error) error {
	r := accountRefusal{What: what}
	if refusal, ok := errors.AsType[*bank.RefusedError](err); ok {
		r.Code, r.Message, r.Next = string(refusal.Reply.Code), refusal.Reply.Message, refusal.Reply.Next
	} else if refusal, ok := errors.AsType[*interlock.Error](err); ok && !refusal.Code.Retryable() {
		r.Code, r.Message = string(refusal.Code), refusal.Message
	} else if err != nil {
		return err
	}
	s.result.GoneAround = append(s.result.GoneAround, r)
	if r.Code == "" {
		s.story.say("%s %s, and nobody minds", goesAround, what)
		return nil
	}
	s.story.say("%s %s: %s", goesAround, what, r.Code)
	for _, text := range []string{r.Message, r.Next} {
		if text != "" {
			fmt.Fprintf(s.story.out, "          > %s\n", text)
		}
	}
	return nil
}

// hire makes an agent that calls itself by a name and has the credential of a role.
func (s *ledgerScene) hire(ctx context.Context, name, role string) (*client.Client, error) {
	return client.Dial(
		ctx, client.Config{Addrs: []string{s.server.GRPC}, Credential: s.secrets[role], Agent: name, RetryFor: stopTimeout},
	)
}

func (s *ledgerScene) credentials() string { return filepath.Join(s.dir, "credentials.txt") }

func (s *ledgerScene) dismiss(c *client.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	_ = c.Close(ctx) // a session ends by its ttl otherwise
}

func (s *ledgerScene) opening() {
	fmt.Fprintf(s.story.out, "%d agents charge late fees of %s and give goodwill credits of %s on one account. Nobody "+
		"but\nits writer changes it; its journal is in %s\n\n",
		s.agents, cents(lateFee), cents(goodwill), filepath.Join(s.dir, "server"))
}
