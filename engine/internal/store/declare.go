package store

// sessionIndex lists the live sessions of a namespace by their public names and their agents'
// names.
type sessionIndex struct {
	ByName  map[string]*Session // by public name
	ByAgent map[string]*Session // the latest one of each agent; the others follow it
}

func (l *sessionIndex) add(s *Session) {
	if l.ByName == nil {
		l.ByName, l.ByAgent = map[string]*Session{}, map[string]*Session{}
	}
	l.ByName[s.Name] = s
	if s.SameAgent = l.ByAgent[s.Agent]; s.SameAgent != nil {
		s.SameAgent.sameAgentBefore = s
	}
	l.ByAgent[s.Agent] = s
}

func (l *sessionIndex) remove(s *Session) {
	delete(l.ByName, s.Name)
	next, before := s.SameAgent, s.sameAgentBefore
	if next != nil {
		next.sameAgentBefore = before
	}
	switch {
	case before != nil:
		before.SameAgent = next
	case next != nil:
		l.ByAgent[s.Agent] = next
	default:
		delete(l.ByAgent, s.Agent)
	}
	s.SameAgent, s.sameAgentBefore = nil, nil
}
