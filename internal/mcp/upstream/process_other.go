//go:build !unix

package upstream

import "os/exec"

// systemEnv is what programs here need beside PATH and HOME.
var systemEnv = []string{"SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP", "PATHEXT"}

// There are no process groups here: only the child itself is ended, and what it
// started ends when it reads the end of its input.
func setAttributes(*exec.Cmd) {}

func waitAndKillGroup(cmd *exec.Cmd) { cmd.Wait() }

// signalGroup kills: there is no gentler signal here.
func signalGroup(cmd *exec.Cmd, kill bool) { cmd.Process.Kill() }

const hasGroups = false

func ownGroup(*exec.Cmd) {}

func killGroup(int) {}

// writeNow writes to the child what its pipe has room for. What that is cannot be had
// without waiting here.
func (p *process) writeNow([]byte) int { return 0 }
