package memory

import (
	writ "github.com/writ-project/writ"
)

// Clean reports whether the texts that this reader has shown are all of those that
// pass the one gate, and its own or a trusted tool's: whoever reads one that is not
// has read what somebody else may have written, or what the agent wrote after
// reading such.
func (r *Reader) Clean() bool { return !r.unclean }

// shows says of what is shown whether it is clean.
func (r *Reader) shows(clean bool) { r.unclean = r.unclean || !clean }

// showsWords says that the agent's words for a claim are shown.
func (r *Reader) showsWords(p *Proposition) { r.shows(p.Gone || r.worded(p.Decision)) }

func (r *Reader) clean(o *Observation) bool {
	return r.passes(o) && (o.Principal == r.Principal || o.Label == writ.System || o.Label == writ.Operator)
}

// worded reports whether the words of a decision's proposal were written by the
// reader's own agent, before its session saw others'.
func (r *Reader) worded(decision string) bool {
	d := r.State.decided.get(decision)
	return d != nil && !d.Exposed && (d.Principal == r.Principal || d.Kind == KindCommand)
}
