package contracts

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// Change is how a tool of a server differs from the one a contract was made for.
type Change struct {
	Tool  string
	New   bool     // the contract knows no tool of that name
	Lines []string // for a person, each in one line: + what is new, - what is gone, ~ what is another
}

// changeLines is how much a person reads of one change.
const changeLines = 12

// Differences says, in a few lines for a person, what one definition or skeleton has and another
// has not, by the arguments and fields of results that they name. What is new comes first, and
// what is new or gone is told once, with all that is below it. Words of theirs are escaped,
// and cut; of words that changed the part that did not is.
func Differences(was, is []byte) (lines []string) {
	before, after := outline(was), outline(is)
	more, said := 0, map[string]bool{"": true}
	say := func(line string) {
		told := said[line]
		said[line] = true
		switch {
		case told:
		case len(lines) == changeLines:
			more++
		default:
			lines = append(lines, line)
		}
	}
	for _, at := range after.order {
		if _, has := before.leaf[pointer(at)]; !has {
			say(lacks("+", at, after, before))
		}
	}
	for _, at := range before.order {
		if now, has := after.leaf[pointer(at)]; !has {
			say(lacks("-", at, before, after))
		} else if old := before.leaf[pointer(at)]; now != old {
			say("~ " + place(at) + ": " + change(old, now))
		}
	}
	if more > 0 {
		lines[changeLines-1] = fmt.Sprintf("and %d more", more+1)
	}
	return lines
}

// parts are the leaves of a value, and every place above one. An element of a list whose
// order says nothing stands at itself.
type parts struct {
	order [][]string
	leaf  map[string]string
	at    map[string]bool
}

func outline(raw []byte) *parts {
	p := &parts{leaf: map[string]string{}, at: map[string]bool{}}
	strictjson.Walk(raw, func(path []string, raw []byte) bool {
		path = slices.Clone(path)
		if n := len(path); n > 1 && unordered(path[n-2]) && strings.Trim(path[n-1], "0123456789") == "" {
			path[n-1] = string(raw)
			if s, ok := strictjson.Text(raw); ok {
				path[n-1] = s
			}
		}
		p.order, p.leaf[pointer(path)] = append(p.order, path), string(raw)
		for n := range path {
			p.at[pointer(path[:n+1])] = true
		}
		return true
	}, func([]string, string) bool { return true })
	return p
}

func unordered(keyword string) bool {
	return keyword == "enum" || keyword == "required" || keyword == "type"
}

func pointer(path []string) string { return strictjson.Pointer(path) }

// lacks says that one of two has something and the other has not: the argument, where all
// of it is missing. That an argument has to be given is said with the argument.
func lacks(sign string, at []string, has, lacks *parts) string {
	for n := range at {
		if !lacks.at[pointer(at[:n+1])] && !(unordered(at[n]) && n+2 == len(at)) {
			at = at[:n+1]
			break
		}
	}
	n := len(at)
	if n > 1 && at[n-2] == "required" {
		of := slices.Concat(at[:n-2], []string{"properties", at[n-1]})
		switch {
		case !lacks.at[pointer(of)] && has.at[pointer(of)]:
			return ""
		case sign == "+":
			return "~ " + place(of) + " must be given now"
		}
		return "~ " + place(of) + " may be left out now"
	}
	line := sign + " " + place(at)
	switch value, leaf := has.leaf[pointer(at)]; {
	case n > 1 && at[n-2] == "enum":
		return sign + " " + place(at[:n-2]) + ": the value " + text.OneLine(value, 60)
	case n > 1 && at[n-2] == "type" && leaf:
		return sign + " " + place(at[:n-1]) + ": " + text.OneLine(value, 60)
	case leaf && !digest(value):
		return line + ": " + text.OneLine(value, 60)
	}
	if n > 1 && at[n-2] == "properties" {
		if kind, ok := has.leaf[pointer(slices.Concat(at, []string{"type"}))]; ok {
			line += ": " + text.OneLine(strings.Trim(kind, `"`), 60)
		}
		if has.at[pointer(slices.Concat(at[:n-2], []string{"required", at[n-1]}))] {
			line += ", which must be given"
		}
	}
	return line
}

// place is where something stands in a definition, for who does not read schemas.
func place(at []string) string {
	what := map[string]string{"inputSchema": "argument", "outputSchema": "result field"}[at[0]]
	if what == "" {
		return text.OneLine(strings.Join(at, "/"), 80)
	}
	name, i := "", 1
	for i < len(at) {
		switch step := at[i]; {
		case step == "properties" && i+1 < len(at):
			if i++; name != "" {
				name += "."
			}
			name += at[i]
		case step == "items":
			name += "[]"
		default:
			rest := strings.Join(at[i:], " ")
			if name == "" {
				return text.OneLine("the "+what+"s: "+rest, 80)
			}
			return text.OneLine(what+" "+name+": "+rest, 80)
		}
		i++
	}
	return text.OneLine(what+" "+name, 80)
}

// change is a value and what it was before.
func change(was, is string) string {
	if digest(was) && digest(is) {
		return "other words"
	}
	same, end := 0, 0 // of a long text, what stands before and behind the change says nothing
	for same < min(len(was), len(is)) && was[same] == is[same] {
		same++
	}
	for end < min(len(was), len(is))-same && was[len(was)-1-end] == is[len(is)-1-end] {
		end++
	}
	const about = 20
	part := func(s string) string {
		from, to, before, behind := 0, len(s), "", ""
		if same > 2*about {
			from, before = same-about, "… "
		}
		if end > 2*about {
			to, behind = len(s)-end+about, " …"
		}
		for from > 0 && !utf8.RuneStart(s[from]) {
			from--
		}
		for to < len(s) && !utf8.RuneStart(s[to]) {
			to++
		}
		return before + text.OneLine(s[from:to], maxChanged) + behind
	}
	return part(was) + " is now " + part(is)
}

// maxChanged is how many characters of changed words are said: they may hide behind others.
const maxChanged = 1000

// digest reports whether a value stands for a sentence.
func digest(value string) bool { return strings.HasPrefix(value, `"sha256:`) }
