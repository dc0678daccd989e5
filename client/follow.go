package client

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// A call that waits for the end of a task has two answers, like one that stands in line.
// The server listens for no link but the present one, so after a reconnect the call
// follows the task anew. All functions are called with Client.mu held.

// follow takes the first answer to a call that waits for the end of a task, and reports whether
// the call continues to wait.
func (c *Client) follow(s *session, k *call, r *proto.Reply) bool {
	if r.Outcome != proto.Done || len(r.Tasks) == 0 || settled(r.Tasks[0].State) {
		return false
	}
	k.phase, k.task, k.second = standing, r.Tasks[0].ID, r.Seq
	s.waits[k.second] = k
	s.followers[k] = struct{}{}
	if k.forgotten {
		c.stopFollowing(k)
		c.free(k)
	}
	return true
}

// followed takes the last answer to such a call.
func (c *Client) followed(s *session, k *call, r *proto.Reply, at interlock.At) {
	s.unfollow(k)
	if k.forgotten {
		c.free(k)
		return
	}
	k.found = &found{Reply: *r, at: at}
	var err error
	if r.Outcome == proto.Refused {
		err = r.Error(uint32(at.Shard), at.Epoch)
	}
	k.finish(nil, err)
}

// followAgain makes a call that waits one that is to be sent anew.
func (k *call) followAgain() {
	flow := k.op.Flow
	k.op = proto.Op{Kind: proto.OpFollowTask, ID: k.task, Task: &proto.TaskOp{Attach: true}}
	k.op.Flow = flow
	k.phase, k.bulky = ready, false
}

// stopFollowing ends a wait for the end of a task. The server learns of it when no caller of
// this client waits for it any more.
func (c *Client) stopFollowing(k *call) {
	s := c.sess
	s.unfollow(k)
	for other := range s.followers {
		if other.task == k.task {
			return
		}
	}
	leave := c.newCall(proto.OpLeave)
	leave.op.ID, leave.forgotten = k.task, true
	c.submit(leave)
}

func (s *session) unfollow(k *call) {
	delete(s.followers, k)
	if s.waits[k.second] == k {
		delete(s.waits, k.second)
	}
}

func settled(state interlock.TaskState) bool { return state >= interlock.TaskDone }
