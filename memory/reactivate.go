package memory

// HasTask reports whether anything was proposed in a task of a session.
func (s *State) HasTask(session, task string) bool {
	return s.workspaces.get(join(session, task)) != nil
}
