// Package replay judges tool calls that other people's programs recorded, and what
// an attacker would make of them, by Writ's gate and by gates that set the scale:
// the naive one, allow all, deny all, and one that asks a person for every act.
//
// A trace is one task: what its user said and the calls that were made, with what
// each answered. No tool and no model is called. A call that a gate refuses has no
// result there; the ones after it are judged all the same. A trace is ground truth,
// so its values come from nearly perfect provenance: what passes here is a bound of
// what passes in use, and what is refused here is refused there.
//
// A task passes if no call of it is refused. An attack lands if all acts of the
// attacker's pass, and takes a foothold if one does.
//
// The answer is a function of the files, the policies and the seed: no clock, and
// the order of the work plays no part in it.
package replay
