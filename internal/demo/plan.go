package demo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/interlockdev/interlock/internal/trace"
)

// plan is the work of both runs. The same seed yields the same plan.
type plan struct {
	start map[string]cents // balances before, by account
	names []string         // of the accounts, sorted
	tasks []task           // in the order of their arrival

	frozen, killed int // indexes of tasks; only the run under leases lets them fail
}

// task is one agent's whole work: wake up, read, think, write.
type task struct {
	update update
	at     time.Duration // since the start, at the speed of the replay
	think  time.Duration // likewise
	real   time.Duration // the think time before it was scaled
}

// The amounts are odd on purpose: a balance that is exact to the cent by chance
// is unlikely.
var (
	fees    = []string{"late fee", "card fee", "transfer fee", "overdraft fee"}
	credits = []string{"goodwill credit", "refund", "correction"}
)

func newPlan(cfg Config) (*plan, error) {
	requests, err := trace.Conversation()
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(cfg.Seed, 0))
	first := random.IntN(len(requests) - cfg.Agents + 1)
	window := requests[first : first+cfg.Agents]

	p := &plan{start: map[string]cents{}}
	for i := range cfg.Accounts {
		name := fmt.Sprint(1001 + i)
		p.names = append(p.names, name)
		p.start[name] = cents(20_000 + random.IntN(60_000))
	}
	slices.Sort(p.names)

	// Every account gets the same number of agents, give or take one.
	where := make([]string, cfg.Agents)
	for i := range where {
		where[i] = p.names[i%len(p.names)]
	}
	random.Shuffle(len(where), func(i, j int) { where[i], where[j] = where[j], where[i] })

	for i, r := range window {
		u := update{Account: where[i]}
		if random.IntN(2) == 0 {
			u.Agent, u.What, u.Amount = fmt.Sprintf(
				"billing-%02d", i+1,
			), fees[random.IntN(len(fees))], cents(1_000+random.IntN(5_000))
		} else {
			u.Agent, u.What, u.Amount = fmt.Sprintf(
				"support-%02d", i+1,
			), credits[random.IntN(len(credits))], -cents(500+random.IntN(3_500))
		}
		p.tasks = append(p.tasks, task{
			update: u,
			at:     (r.At - window[0].At) / time.Duration(cfg.Speed),
			think:  r.Think() / time.Duration(cfg.Speed),
			real:   r.Think(),
		})
	}
	p.chooseVictims()
	return p, nil
}

// chooseVictims picks the first agents of the two accounts with the least work,
// because their lines wait for a ttl longer than the others.
func (p *plan) chooseVictims() {
	work := map[string]time.Duration{}
	for _, t := range p.tasks {
		work[t.update.Account] += t.think
	}
	byWork := slices.Clone(p.names)
	slices.SortStableFunc(byWork, func(a, b string) int { return int(work[a] - work[b]) })
	first := func(name string) int {
		return slices.IndexFunc(p.tasks, func(t task) bool { return t.update.Account == name })
	}
	p.frozen, p.killed = first(byWork[0]), first(byWork[1])
}

// expected returns the balances if every update counts once.
func (p *plan) expected() map[string]cents {
	sum := map[string]cents{}
	for name, balance := range p.start {
		sum[name] = balance
	}
	for _, t := range p.tasks {
		sum[t.update.Account] += t.update.Amount
	}
	return sum
}

// thinking returns the mean and the longest think time before scaling.
func (p *plan) thinking() (mean, longest time.Duration) {
	for _, t := range p.tasks {
		mean += t.real
		longest = max(longest, t.real)
	}
	return mean / time.Duration(len(p.tasks)), longest
}
