package certificate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
)

// Story tells in plain words, a line for each value of an accepted act, where it came
// from. It tells what the certificate says and checks nothing. Everything that came from
// a call or a server is escaped.
func Story(r *gate.Record) (lines []string) {
	if !Accepted(r) {
		return nil
	}
	for _, t := range r.Traces {
		lines = append(lines, "`"+shown(t.Pointer)+"` "+origin(&t))
	}
	return lines
}

// origin is what one trace says.
func origin(t *gate.Trace) string {
	base := 1
	from := func(i int) string {
		if i >= len(t.Evidence) {
			return "nothing"
		}
		return where(t.Evidence[i])
	}
	var s string
	switch op, derived := strings.CutPrefix(t.Rule, "derived:"); {
	case t.Rule == "const":
		return "is a constant of the operator's policy"
	case t.Rule == grownOutput:
		s = "is " + from(0) + ", where no stranger writes, as a person said from now on"
	case t.Rule == "grown":
		return "is a value that a person allowed from now on"
	case t.Rule == keptCall:
		return "is of a call that a person allowed from now on"
	case t.Rule == "catalog":
		return "is a value that the tool's approved definition lists"
	case t.Rule == "protocol":
		return "declines and carries nothing"
	case t.Rule == "governed":
		return "is for the memory's own policy to judge"
	case t.Rule == "local":
		return "is free text of the model's, into a local file"
	case t.Rule == "open":
		if s = "is free text of the model's"; len(t.Evidence) > 0 {
			s += ", and what in it could be acted on is " + all(t.Evidence)
		}
		return s
	case t.Rule == "approval":
		return "was allowed by a person, for this call alone (" + evidence(t.Evidence) + ")"
	case t.Rule == "user":
		return "is what you typed: " + from(0)
	case t.Rule == "user:within":
		return "is a name that you typed, and the directory it is in: " + all(t.Evidence)
	case t.Rule == "user:composite":
		return "is a part of what you typed as one word: " + from(0)
	case t.Rule == "user:time":
		return "is a day or time that you named: " + all(t.Evidence)
	case t.Rule == "user:day":
		return "is a time, which the model chose, of a day that you named: " + all(t.Evidence)
	case t.Rule == "user:amount":
		return "is an amount that you named: " + from(0)
	case t.Rule == ruleElement && len(t.Evidence) == 2:
		return "is what your words call on the page that " + from(0) + " was of: " + where(t.Evidence[1])
	case t.Rule == "seen":
		s = "is a link that stood in " + from(0)
	case t.Rule == "said_by" && len(t.Evidence) == 3:
		return "is what the one whom you named asked for: " + from(0) + ", of " + from(1) + ", " + from(2)
	case t.Rule == ofNamed && len(t.Evidence) == 4:
		return "is what you asked for, " + from(2) + ", of the record that you named, " + from(3) + ": " + from(0) + ", of " + from(1)
	case t.Rule == "party":
		return "is " + from(0) + ", which you typed as well"
	case op == "due":
		return "is what is due: the server takes no other"
	case op == "path_join":
		base = 2
		s = "joins a directory, " + from(0) + ", and a name, " + from(1)
	case op == "typed_in" && len(t.Evidence) == 2:
		return "is what you typed, " + from(1) + ", in a directory that is " + from(0)
	case op == "fresh":
		s = "is a new name in a directory that is " + from(0)
	case t.Rule == "invented":
		s = "is what this session newly made under a name of the agent's own, " + from(0)
	case op == "template_variable":
		return "is a variable of a template that the server listed"
	case op == "uri_template":
		return "is a listed template filled in, of " + all(t.Evidence)
	case derived:
		return "follows (" + shown(op) + ") from " + all(t.Evidence)
	default:
		s = "is " + from(0)
	}
	for _, e := range t.Evidence[min(base, len(t.Evidence)):] {
		if e.Tool == userTool {
			s += ", which you named (" + where(e) + ")"
		} else {
			s += ", which this session made itself (" + evidence([]gate.Ref{e}) + ")"
		}
	}
	if t.Contested {
		s += "; the same value also stands where a stranger can write it"
	}
	return s
}

func all(refs []gate.Ref) string {
	out := make([]string, len(refs))
	for i, e := range refs {
		out[i] = where(e)
	}
	return strings.Join(out, " and ")
}

func evidence(refs []gate.Ref) string {
	if len(refs) == 0 {
		return "no evidence"
	}
	return "ev" + strconv.FormatUint(uint64(refs[0].Evidence), 10)
}

// where says in words what a reference names.
func where(e gate.Ref) string {
	if e.Tool == userTool {
		return fmt.Sprintf("bytes %d to %d of turn %d", e.Start, e.End, e.Evidence)
	}
	_, tool, _ := strings.Cut(e.Tool, "/")
	result := fmt.Sprintf("result %d of `%s`", e.Evidence, shown(tool))
	if e.Line > 0 {
		return fmt.Sprintf("line %d of %s", e.Line, result)
	}
	pointer := e.Pointer
	if e.Inner != "" {
		pointer = e.Inner
	}
	path, err := strictjson.ParsePointer(pointer)
	if err != nil || len(path) == 0 {
		return "the text of " + result
	}
	last := len(path) - 1
	if path[0] == arguments && last > 0 {
		return fmt.Sprintf("the `%s` that the act of %s made", shown(strings.Join(path[1:], "/")), result)
	}
	if n, ok := ordinal(path[last]); ok {
		in := "the list"
		if last > 0 {
			in = "`" + shown(path[last-1]) + "`"
		}
		return fmt.Sprintf("item %d of %s in %s", n, in, result)
	}
	record := ""
	for _, token := range slices.Backward(path[:last]) {
		if n, ok := ordinal(token); ok {
			record = fmt.Sprintf(" of record %d", n)
			break
		}
	}
	return fmt.Sprintf("the `%s`%s in %s", shown(path[last]), record, result)
}

// ordinal is which of a list an index names, counted from 1.
func ordinal(token string) (int, bool) {
	n, err := strconv.Atoi(token)
	return n + 1, err == nil && n >= 0 && strconv.Itoa(n) == token
}

// shown spells a text so that it cannot break out of a line, a quotation or a terminal.
func shown(s string) string {
	q := strconv.QuoteToASCII(s)
	return strings.ReplaceAll(q[1:len(q)-1], "`", `\x60`)
}
