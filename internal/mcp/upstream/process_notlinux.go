//go:build unix && !linux

package upstream

import "os/exec"

// setAttributes gives the child a group of its own. There is no parent-death
// signal here: after a kill -9 of this process the guard ends it.
func setAttributes(cmd *exec.Cmd) { ownGroup(cmd) }

func waitAndKillGroup(cmd *exec.Cmd) {
	cmd.Wait()
	killGroup(cmd.Process.Pid)
}
