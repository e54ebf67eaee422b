package localdoor

import (
	"context"
	"slices"
)

// Is reports whether the process at the other end of a request is the client itself.
func Is(ctx context.Context, client int) bool {
	by, ok := ctx.Value(peerKey{}).(peer)
	return ok && client > 1 && by.pid == client && by.runs()
}

// Below is an error, ErrKin, unless the process at the other end of a request is the
// client, or descends from it and runs this very program now. Any program can have run in
// it before, and can speak over its connection still: what it says is nobody's word.
func Below(ctx context.Context, client int) error {
	by, ok := ctx.Value(peerKey{}).(peer)
	if !Is(ctx, client) && (!ok || client <= 1 || !sameProgram(by.pid) || !slices.Contains(line(by.pid), client) || !by.runs()) {
		return ErrKin
	}
	return nil
}

// ByHand is an error unless a client provably has a terminal of its own and descends from
// none of these: the gateway, and the clients whose agents could have started it. It is
// ErrKin where it does, or cannot be traced, and ErrLoose where it may (see Apart).
func ByHand(client int, not ...int) error {
	return apartFrom(client, 1, not)
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
