package gate

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	writ "github.com/writ-project/writ"
)

// maxSaid bounds the failures that Say tells one by one.
const maxSaid = 10

// WhereAnswered says of a call that waits for a person where he answers, at a gateway that goes on.
const WhereAnswered = "The user answers in a terminal of his own: `writ watch`."

// Say is a refusal in words, for a person and for a model: that nothing was done and
// why, what would make it pass, and which lines of the policy an operator would change.
// The same outcome is said in the same words, whatever was seen of its values. file is
// the policy's, "" where it has none. Names that others chose are in it escaped.
func Say(o writ.Outcome, file string) string {
	r := o.Rejection
	if r == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("Not done: ")
	var clauses []string
	var lines []int
	for _, f := range Telling(r.Failures) {
		if c := clause(f); !slices.Contains(clauses, c) {
			clauses = append(clauses, c)
		}
		if f.Line > 0 && !isRepeat(f) && !slices.Contains(lines, f.Line) {
			lines = append(lines, f.Line)
		}
	}
	sayOnce(clauses)
	also := "Also"
	switch {
	case r.Reason == writ.ApprovalPending && slices.ContainsFunc(r.Failures, isRepeat):
		b.WriteString("a person was asked and has not answered; this call was not made, and it asks for what a call before it may have done.")
		also = "Without him it lacks this"
	case r.Reason == writ.ApprovalRefused: // what would make it pass all the same is no answer to that
		b.WriteString(saidNo + ".")
		clauses, lines = nil, nil
	case asked(r.Reason):
		b.WriteString(needs[r.Reason] + ".")
		also = "Without him it lacks this"
	case len(clauses) == 0:
		b.WriteString(needs[r.Reason] + ".")
	default:
		b.WriteString(clauses[0] + ".")
		clauses = clauses[1:]
	}
	if r.Reason == writ.ApprovalPending || r.Reason == writ.ApprovalExpired {
		b.WriteString(" " + WhereAnswered)
	}
	if len(clauses) > 0 {
		b.WriteString("\n" + also + ":")
	}
	for i, c := range clauses {
		if i == maxSaid {
			b.WriteString("\n- and " + strconv.Itoa(len(clauses)-i) + " more")
			break
		}
		b.WriteString("\n- " + c)
	}
	if len(lines) > 0 && file != "" {
		b.WriteString("\nAn operator would change " + places(lines) + " of " + shown(file))
		if open := func(f writ.Failure) bool { return f.Reason == writ.ProvenanceOpenTarget }; slices.ContainsFunc(r.Failures, open) {
			b.WriteString(", or say `closed: true` of its collection where only his own side can add to that")
		}
		b.WriteByte('.')
	}
	b.WriteString("\n(" + string(r.Code) + ", " + string(r.Reason) + ")")
	return b.String()
}

// Telling are failures in the order in which they are told: first what is lacking, then the
// texts that lack nothing else.
func Telling(failures []writ.Failure) []writ.Failure {
	return slices.SortedStableFunc(slices.Values(failures), func(a, b writ.Failure) int { return cmp.Compare(waits(a), waits(b)) })
}

// waits is 1 for a text that passes once what else the call lacks is there.
func waits(f writ.Failure) int {
	if strings.HasSuffix(f.Need, onceVouched) {
		return 1
	}
	return 0
}

// sayOnce leaves where the user may type something (sayThere) to the first clause that
// ends with it.
func sayOnce(clauses []string) {
	said := false
	for i, c := range clauses {
		if at := strings.LastIndex(c, ": "+sayHead); at >= 0 && strings.HasSuffix(c, sayTail) {
			if said {
				clauses[i] = c[:at]
			}
			said = true
		}
	}
}

// saidNo is all that is said of a call that a person said no to, whatever it lacks.
const saidNo = "a person said no to this very call; do not make it again unless the user orders it anew"

// asked reports whether a reason is how far a call was put to a person.
func asked(r writ.Reason) bool {
	return r == writ.ApprovalPending || r == writ.ApprovalRefused || r == writ.ApprovalExpired
}

// repeatHead begins what is said of an act that was made before.
const repeatHead = "the same act was made before"

// isRepeat reports whether a failure is of R23, a person asked about it or not. Whoever reads
// of one is not sent to the policy: without its line the act would be made twice.
func isRepeat(f writ.Failure) bool {
	return f.Reason == writ.PolicyRepeated || asked(f.Reason) && strings.HasPrefix(strings.TrimPrefix(f.Need, needs[f.Reason]+"; "), repeatHead)
}

// clause is one failure in words.
func clause(f writ.Failure) string {
	need := f.Need
	if asked(f.Reason) { // said once, of the call
		need = strings.TrimPrefix(need, needs[f.Reason]+"; ")
	}
	at := "`" + shown(f.Pointer) + "`"
	switch {
	case f.Pointer == "", strings.HasPrefix(need, at):
		return need
	case f.Reason == writ.SchemaMissingField, f.Reason == writ.SchemaUnknownField:
		return about(f.Pointer, needs[f.Reason])
	case f.Reason == writ.SchemaInvalid:
		return about(f.Pointer, invalid(need))
	}
	return about(f.Pointer, need)
}

// invalid says what a schema wants as a need.
func invalid(wants string) string {
	if says := needs[writ.SchemaInvalid]; !strings.HasPrefix(wants, says) {
		return says + ": " + wants
	}
	return wants
}

// about says a need of the argument at a pointer.
func about(pointer, need string) string {
	switch first, _, _ := strings.Cut(need, " "); first {
	case "must", "is", "was", "holds", "may":
		return "`" + shown(pointer) + "` " + need
	}
	return "`" + shown(pointer) + "`: " + need
}

// places names lines of a file.
func places(lines []int) string {
	slices.Sort(lines)
	var b strings.Builder
	b.WriteString("line")
	if len(lines) > 1 {
		b.WriteString("s")
	}
	for i, n := range lines {
		switch {
		case i == maxSaid:
			return b.String() + " …"
		case i > 0 && i == len(lines)-1:
			b.WriteString(" and")
		case i > 0:
			b.WriteString(",")
		}
		b.WriteString(" " + strconv.Itoa(n))
	}
	return b.String()
}

// governing is the line of the policy by which a failure stands: that of the argument's
// rule, else of the contract; 0 where no line of it would let the call pass.
func (j *judge) governing(f writ.Failure) int {
	switch writ.CodeOf(f.Reason) {
	case writ.MissingProvenance, writ.PolicyViolation:
	default:
		return 0
	}
	switch f.Reason {
	case writ.ProvenanceSession, writ.PolicyAbsent, writ.PolicySessionClosed, writ.PolicyPointerClosed, writ.PolicyClosed:
		return 0
	}
	if j.contract == nil {
		return 0
	}
	for _, l := range j.leaves {
		if l.pointer == f.Pointer && l.rule != nil && l.rule.Line > 0 {
			return l.rule.Line
		}
	}
	return j.contract.Line
}
