package sim

import (
	"fmt"

	"github.com/interlockdev/interlock/engine"
)

// headOf gives what all commands share.
func headOf(cmd engine.Command) *engine.Head {
	switch c := cmd.(type) {
	case *engine.Acquire:
		return &c.Head
	case *engine.Release:
		return &c.Head
	case *engine.Heartbeat:
		return &c.Head
	case *engine.Poll:
		return &c.Head
	case *engine.Leave:
		return &c.Head
	case *engine.Renew:
		return &c.Head
	case *engine.GetLease:
		return &c.Head
	case *engine.CheckFence:
		return &c.Head
	case *engine.OpenSession:
		return &c.Head
	case *engine.CloseSession:
		return &c.Head
	case *engine.Attach:
		return &c.Head
	case *engine.KeepAlive:
		return &c.Head
	case *engine.Detach:
		return &c.Head
	case *engine.Revoke:
		return &c.Head
	case *engine.Convert:
		return &c.Head
	case *engine.Arrive:
		return &c.Head
	case *engine.Park:
		return &c.Head
	case *engine.Resume:
		return &c.Head
	case *engine.Declare:
		return &c.Head
	case *engine.SetPattern:
		return &c.Head
	case *engine.DropPattern:
		return &c.Head
	case *engine.Configure:
		return &c.Head
	case *engine.DeleteNamespace:
		return &c.Head
	case *engine.Commit:
		return &c.Head
	case *engine.ClaimEffect:
		return &c.Head
	case *engine.SettleEffect:
		return &c.Head
	case *engine.ForgetEffects:
		return &c.Head
	case *engine.SetQueue:
		return &c.Head
	case *engine.DropQueue:
		return &c.Head
	case *engine.Submit:
		return &c.Head
	case *engine.Pull:
		return &c.Head
	case *engine.Ack:
		return &c.Head
	case *engine.Nack:
		return &c.Head
	case *engine.AskHuman:
		return &c.Head
	case *engine.Answer:
		return &c.Head
	case *engine.ChangeTask:
		return &c.Head
	case *engine.FollowTask:
		return &c.Head
	case *engine.StartRun:
		return &c.Head
	case *engine.RevertPattern:
		return &c.Head
	}
	panic(fmt.Sprintf("sim: command %T is not known here", cmd))
}
