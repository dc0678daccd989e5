package hook

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// TestExclusion has agents, two of each session, that edit a few files at random. A file that an agent may edit is its
// own until its turn ends.
func TestExclusion(t *testing.T) {
	for seed := range uint64(8) {
		inBubble(t, func(r *rig) {
			r.query = "?wait_s=5"
			var mu sync.Mutex
			holders := map[string]string{}
			var running sync.WaitGroup
			edits := 0
			for i := range 6 {
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				session := r.coder(fmt.Sprintf("session-%d", i/2))
				me := fmt.Sprintf("agent %d", i)
				if i%2 == 1 {
					session = session.sub(fmt.Sprintf("sub-%d", i))
				} else {
					session = session.sub("lead") // main would yield to the other one
				}
				running.Go(func() {
					var mine []string
					end := func() {
						mu.Lock()
						for _, file := range mine {
							delete(holders, file)
						}
						mu.Unlock()
						mine = nil
						session.hook("SubagentStop", nil)
					}
					for range 40 {
						file := fmt.Sprintf("f%d", random.IntN(4))
						deny, _ := session.before(file)
						mu.Lock()
						if deny == "" {
							if other := holders[file]; other != "" && other != me {
								r.Errorf("seed %d: %s may edit %s of %s", seed, me, file, other)
							}
							holders[file] = me
							mine = append(mine, file)
							edits++
						}
						mu.Unlock()
						<-time.After(time.Duration(random.IntN(3000)) * time.Millisecond)
						if deny == "" {
							session.tool("PostToolUse", "Edit", "", map[string]any{"file_path": file})
						}
						if random.IntN(4) == 0 {
							end()
							<-time.After(time.Duration(random.IntN(20)) * time.Second)
						}
					}
					end()
				})
			}
			running.Wait()
			if edits < 100 {
				r.Errorf("seed %d: there were only %d edits", seed, edits)
			}
		})
	}
}
