package gate

import (
	"bytes"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// # A call that a person allowed from now on
//
// A line of his may hold a whole call: the tool, and every argument there is but its
// free texts (R14), of which it says where they stood. A call that is this one in each of
// them, and has a text in these places and in no other, passes by the line, and no other
// does: neither one value, text or place of a list more or less nor two lines that are half
// of it each. To empty a text is another call, and so is to write another one. So
// nobody chooses anything by it but when, and how often: whoever can have the agent make
// a call can have it make this one, and say in its texts what `content: open` lets him
// say to those whom the line names. A call whose text holds more than that is kept with
// the text, to the letter.
//
// Not kept is what destroys, pays or grants: there, when is all that matters. An effect
// that the draft of a policy assumes because nobody said otherwise does not count, but a
// value that speaks of destroying does (mode: delete, DROP TABLE, force: true). All that is no
// question of what a value rests on holds as before: schema, forms, Writ's own files,
// steering files, budgets, R23, R24 and R37. What is read back of such a call is worth
// what a call is that passed by a person's yes, and the readers are not the operator's
// for a secret (R30).
//
// A click does what the page makes of it. Where a contract says where its acts are done (R28), a
// line holds at the host where the person looked at one, and there alone. It may be of every call
// of the tool there: what he said is that the site is his to work on, whoever writes what
// stands on its pages, but for what destroys in so many words, and until a secret is told. Which of several pages it is the call has to show by itself.

// keptCall is the rule of a value that rests on such a line.
const keptCall = "grown:call"

// kept is how far a call is one that a person allowed from now on.
type kept uint8

const (
	keptNot   kept = iota
	keptTexts      // but for its free texts
	keptWhole
	keptPlace // as every call of its tool where it is done
)

// keepable reports whether a call may be kept whole.
func (j *judge) keepable() bool {
	const never = policy.Delete | policy.Transfer | policy.Auth
	c := j.contract
	return c != nil && !j.strict && !j.governed() && j.in.Call.Method == policy.CallTool && !j.in.Call.Answers.Exists() &&
		j.d.Effect&^c.Assumed&never == 0 && !j.speaksOfDestroying(false)
}

// speaksOfDestroying reports whether a value does, or where texts count what the agent writes.
func (j *judge) speaksOfDestroying(texts bool) bool {
	return slices.ContainsFunc(j.leaves, func(l *leaf) bool {
		said := l.text
		if string(l.value.Raw()) == "true" {
			said = l.pointer
		}
		return (texts || !j.isLocal(l) && !j.isOpen(l)) && policy.Destroying(said)
	})
}

// isFree reports whether a leaf is free text that is judged each time: a local one is
// not. What stands below a key that the caller chose goes with the key, which is none.
func (j *judge) isFree(l *leaf) bool {
	return j.isOpen(l) && !slices.ContainsFunc(j.leaves, func(k *leaf) bool {
		return k.key && strings.HasPrefix(l.pointer+"/", k.pointer+"/")
	})
}

// isColumn reports whether a leaf is a column of a statement that is judged by its parts: which those are a
// person who keeps a row sees, and no other row is that call.
func (j *judge) isColumn(l *leaf) bool { return j.isPart(l) && l.path[1] == "columns" }

// isPart reports whether a leaf stands within such a statement.
func (j *judge) isPart(l *leaf) bool {
	return j.apart && !l.answer && len(l.path) > 1 && l.path[0] == j.contract.PartsAt
}

// keptBy says by which line the call passes.
func (j *judge) keptBy() kept {
	if j.contract == nil || len(j.contract.Kept) == 0 || !j.keepable() {
		return keptNot
	}
	on := j.place(true)
	for _, k := range []kept{keptPlace, keptWhole, keptTexts} {
		args, texts := j.callOf(k)
		if (k != keptPlace || j.keptAnyway(on)) && slices.ContainsFunc(j.contract.Kept, func(line policy.KeptCall) bool {
			return line.On == on && bytes.Equal(line.Args, args) && slices.Equal(line.Texts, texts)
		}) {
			return k
		}
	}
	return keptNot
}

// keptAnyway reports whether a line may hold a call whatever it says, where it is done: none that
// destroys in so many words, or says which file or address is to go there, nor once a secret was
// told (R30).
func (j *judge) keptAnyway(on string) bool {
	return on != "" && !j.speaksOfDestroying(true) && !j.session().ledger.Secrets() && !slices.ContainsFunc(j.leaves, func(l *leaf) bool {
		return l.typ() == provenance.Path || l.typ() == provenance.URL
	})
}

// callOf are the arguments as a line has them, in canonical form, and where the free texts
// stand that it does not have: nothing of a line that is of every call.
func (j *judge) callOf(k kept) (args []byte, texts []string) {
	if k == keptPlace {
		return nil, nil
	}
	free := map[string]bool{}
	for _, l := range j.leaves {
		if k == keptTexts && j.isFree(l) && l.text != "" && !j.isColumn(l) {
			free[l.pointer] = true
			texts = append(texts, l.pointer)
		}
	}
	slices.Sort(texts)
	raw := []byte("{}")
	if rest, ok := without(j.parts, nil, free); ok {
		raw = rest
	}
	canonical, _ := strictjson.Canonical(raw) // checked: it has a canonical form
	return canonical, texts
}

// without is a value but for some leaves, and for what held nothing else. It is not ok
// where nothing is left.
func without(v strictjson.Value, path []string, leaves map[string]bool) (out []byte, ok bool) {
	if leaves[strictjson.Pointer(path)] {
		return nil, false
	}
	switch {
	case v.Len() == 0:
		return v.Literal(), true
	case v.Kind() == strictjson.Object:
		out = []byte{'{'}
		for name, m := range v.Members() {
			if b, ok := without(m, append(path, name), leaves); ok {
				if len(out) > 1 {
					out = append(out, ',')
				}
				out = append(append(append(out, strictjson.Quote(name)...), ':'), b...)
			}
		}
		return append(out, '}'), len(out) > 1
	}
	out = []byte{'['}
	for i, e := range v.Elements() {
		if b, ok := without(e, append(path, itoa(i)), leaves); ok {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, b...)
		}
	}
	return append(out, ']'), len(out) > 1
}

// byKept lets a leaf rest on the line. An operator's list, a secret and which page it is do not, and
// of controls none but what a person may allow, where every call is.
func (j *judge) byKept(l *leaf) bool {
	named := l.key || l.role == policy.Target || l.role == policy.Selector || l.role == policy.Amount || l.role == policy.TimeRole
	switch {
	case j.kept == keptNot || l.shut || l.answer || j.isPage(l):
		return false
	case named:
		l.founded = founded{rule_: keptCall, label: writ.User, open: true}
	case j.kept == keptPlace && l.role == policy.Control && j.mayAllow(l):
		l.founded = founded{rule_: keptCall, label: writ.User, open: true}
	case j.kept == keptWhole && j.isFree(l), j.kept == keptPlace && l.role == policy.Content && !j.isFree(l):
		l.founded = founded{rule_: keptCall, label: writ.Model}
	default:
		return false
	}
	return true
}

// mayAllow reports whether a person may allow a control what its constants do not have.
func (j *judge) mayAllow(l *leaf) bool {
	return slices.ContainsFunc(j.sources(l), func(s policy.Source) bool { return s.Kind == policy.FromApproval })
}

// keeps are the lines by which a call that a person is asked about would pass from now
// on, the wider first.
func (j *judge) keeps() (out []policy.Grown) {
	if !j.keepable() {
		return nil
	}
	on, all := j.place(true), []kept{keptTexts, keptWhole}
	switch {
	case j.keptAnyway(on):
		all = []kept{keptPlace, keptTexts, keptWhole}
	case on == "" && len(j.contract.Where) > 0:
		return nil // what it does there nobody could say again
	}
	for _, k := range all {
		args, texts := j.callOf(k)
		out = policy.WithLine(out, policy.Grown{Tool: j.in.Call.Server + "/" + toolOf(j.in.Call), Call: args, Texts: texts, On: on})
	}
	return out
}
