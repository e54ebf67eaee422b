package localdoor

import (
	"context"
	"slices"
)

// Of is an error, ErrKin, unless the process at the other end of a request is the client
// itself, or this very program in a process that the client started. Whatever else a
// client started may be an agent's, and says what it likes. Of this program only `writ
// hook` speaks for a client, and it says what came over Stdin.
func Of(ctx context.Context, client int) error {
	pid, ok := ctx.Value(peerKey{}).(int)
	if !ok || client <= 1 {
		return ErrKin
	}
	if pid == client {
		return nil
	}
	if !sameProgram(pid) || !slices.Contains(line(pid), client) {
		return ErrKin
	}
	return nil
}

// ByHand is an error, ErrKin, unless a client provably has a terminal of its own and
// descends from none of these: the gateway, and the clients whose agents could have
// started it.
func ByHand(client int, not ...int) error {
	above, err := ancestry(client)
	if err != nil || slices.ContainsFunc(above[1:], func(p int) bool { return slices.Contains(not, p) }) {
		return ErrKin
	}
	return nil
}

// Above are the processes that one descends from, the nearest first, as far as they can
// be known.
func Above(pid int) []int {
	all := line(pid)
	if len(all) == 0 {
		return nil
	}
	return all[1:]
}

// line is a process and those it descends from.
func line(pid int) (all []int) {
	for n := pid; n > 1 && len(all) < 1000; n = parentOf(n) {
		all = append(all, n)
	}
	return all
}
